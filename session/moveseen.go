package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"rentop/sync"
	"rentop/sync/tree"
)

// This file remembers what a move saw on the instance that it left. Where that is gone
// before all was carried, it says what is lost, and which checkpoints are not whole.

// seenFile is a file that a move set out to bring, by its path on the other.
type seenFile struct {
	Path string    `json:"path"`
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
}

func (m *mover) seenPath() string {
	return filepath.Join(m.f.opt.Dirs.State, "moves", m.log.data.Run+".jsonl")
}

// keepSeen adds to the list before the first of them is sent.
func (m *mover) keepSeen(root string, files []sync.Entry) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(m.seenPath()), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(m.seenPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, e := range files {
		err = errors.Join(err, enc.Encode(seenFile{path.Join(root, e.Path), e.Size, e.ModTime}))
	}
	if err = errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write down what is to be carried, in %s: %w", m.seenPath(), err)
	}
	return nil
}

// readSeen reads the list; a line that a crash cut, and what is behind it, was not sent.
func (m *mover) readSeen() error {
	m.seen = map[string]seenFile{}
	if !m.log.under {
		return nil
	}
	f, err := os.Open(m.seenPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var one seenFile
		if d.Decode(&one) != nil || !path.IsAbs(one.Path) {
			return nil
		}
		m.seen[one.Path] = one // the later one is the newer
	}
}

// dropSeen forgets the list of a move that ended.
func (m *mover) dropSeen() { _ = os.Remove(m.seenPath()) }

// count says which of the files that the move saw are not on the other as they were, or
// not at all.
func (m *mover) count(ctx context.Context, p *MovePlan) error {
	p.Seen, p.Lost, p.LostBytes, p.Older, m.lacks = len(m.seen), nil, 0, nil, map[string]bool{}
	if len(m.seen) == 0 {
		return nil
	}
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	var paths []string
	for full := range m.seen {
		paths = append(paths, full[1:])
	}
	slices.Sort(paths)
	have := map[string]sync.Entry{}
	if err := t.Stat(ctx, "/", paths, func(e sync.Entry) error { have["/"+e.Path] = e; return nil }); err != nil {
		return err
	}
	comes := map[string]bool{}
	for _, k := range m.kept {
		for _, e := range k.send {
			comes[path.Join(k.root, e.Path)] = true
		}
	}
	for _, rel := range paths {
		was := m.seen["/"+rel]
		now, there := have["/"+rel]
		switch {
		case there && now.Size == was.Size && tree.SameTime(now.ModTime, was.Time):
			continue
		case there || comes[was.Path]:
			p.Older = append(p.Older, was.Path)
		default:
			p.Lost = append(p.Lost, was.Path)
			p.LostBytes += was.Size
		}
		m.lacks[was.Path] = true
	}
	return nil
}
