//go:build !linux

package tree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// This file reads a folder where the system is not Linux.

type reader struct{ root string }

func openReader(root string) (*reader, error) { return &reader{root}, nil }

func (r *reader) close() {}

func (r *reader) read(ctx context.Context, w *walker, f *folder) error {
	dir := filepath.Join(r.root, filepath.FromSlash(f.path))
	if f.path != "" { // a symlink that has come into its place is not followed
		if fi, err := os.Lstat(dir); err != nil {
			return err
		} else if !fi.IsDir() {
			return &fs.PathError{Op: "open", Path: f.path, Err: errors.New("is no folder any more")}
		}
	}
	list, err := os.ReadDir(dir)
	names := make([]found, 0, len(list))
	byName := make(map[string]fs.DirEntry, len(list))
	for _, d := range list {
		names = append(names, found{name: d.Name(), mode: d.Type()})
		byName[d.Name()] = d
		if d.Type().IsRegular() && w.wantsRules(d.Name()) {
			if text, ok := ruleText(filepath.Join(dir, d.Name())); ok {
				w.addRules(f, d.Name(), text)
			}
		}
	}
	kept := w.keep(f, names)
	f.records = make([]record, len(kept))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for from := 0; from < len(kept) && gctx.Err() == nil; from += statChunk {
		g.Go(func() error {
			for i := from; i < min(from+statChunk, len(kept)); i++ {
				f.records[i] = stat(dir, kept[i], byName[kept[i].name])
			}
			return nil
		})
	}
	g.Wait()
	if ctx.Err() != nil {
		f.records = nil
		return ctx.Err()
	}
	there := f.records[:0]
	for _, rec := range f.records {
		if rec.rare == nil || !errors.Is(rec.rare.err, fs.ErrNotExist) {
			there = append(there, rec)
		}
	}
	f.records = there
	return err
}

// stat looks at one name of dir.
func stat(dir string, n found, d fs.DirEntry) record {
	r := record{name: n.name, mode: n.mode, only: n.only}
	fi, err := d.Info()
	if err != nil {
		r.rare = &rare{err: err}
		return r
	}
	r.mode = fi.Mode() & (fs.ModeType | fs.ModePerm)
	r.sec, r.nsec = fi.ModTime().Unix(), int32(fi.ModTime().Nanosecond())
	switch {
	case r.mode.IsRegular():
		r.size = fi.Size()
		if id, ok := identify(fi); ok && id.links > 1 {
			r.rare = &rare{id: id.inode, links: id.links}
		}
	case r.mode.IsDir():
		r.enter = goInto(n.name)
	case r.mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(dir, n.name))
		if runtime.GOOS == "windows" {
			target = filepath.ToSlash(target)
		}
		r.rare = &rare{target: target, err: err}
	}
	return r
}

// ruleText reads an ignore file.
func ruleText(name string) ([]byte, bool) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false // it is named when it is sent
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxIgnoreFile))
	return text, err == nil
}
