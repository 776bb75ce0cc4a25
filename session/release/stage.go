// A portable snapshot that goes on after a cut: its files are brought here one by one,
// as a pull does, and packed here. What came before a cut is read on both sides again
// and not brought again.

package release

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"rentop/remote"
	"rentop/session/phrase"
	treesync "rentop/sync"
	"rentop/sync/tree"
)

// errUnstaged says that a stream must do: what it would take is not here.
var errUnstaged = errors.New("its files cannot be brought one by one")

// spareHere is left free on this computer.
const spareHere = 256 << 20

// staged is what was brought here to be packed.
type staged struct {
	dir   string
	list  []treesync.Entry
	sums  map[string]string // hex SHA-256 as the instance told it
	bytes int64
}

// stagedDir is of this rental alone.
func (m *Machine) stagedDir() string {
	return filepath.Join(m.d.SnapshotDir, ".staged-"+notPlain.ReplaceAllString(m.d.UID, "_"))
}

// stage brings what is at the paths of list here; paths are from the root.
func (m *Machine) stage(ctx context.Context, list []string) (staged, error) {
	s := staged{dir: m.stagedDir(), sums: map[string]string{}}
	if m.d.OpenTransport == nil || m.d.UID == "" {
		return s, errUnstaged
	}
	t, err := m.d.OpenTransport(ctx)
	if err != nil {
		return s, err
	}
	defer t.Close()
	if err := m.listStaged(ctx, t, list, &s); err != nil {
		return s, err
	}
	if !nameable(s.list) {
		return s, errUnstaged
	}
	lack, have := s.missing()
	var toCome int64
	for _, e := range lack {
		toCome += e.Size
	}
	if free, known := treesync.Room(ctx, treesync.Local{}, filepath.ToSlash(m.d.SnapshotDir)); known && toCome+s.bytes+spareHere > free {
		return s, errUnstaged
	}
	if err := m.proveStaged(ctx, have, &s); err != nil {
		return s, err
	}
	for _, e := range have {
		if s.sums[e.Path] == "" {
			lack = append(lack, e)
			toCome += e.Size
		}
	}
	return s, m.bringStaged(ctx, t, lack, toCome, &s)
}

// listStaged lists what is at the paths there.
func (m *Machine) listStaged(ctx context.Context, t treesync.Transport, list []string, s *staged) error {
	found := map[string]bool{}
	add := func(e treesync.Entry) error {
		special := !e.Mode.IsDir() && !e.Mode.IsRegular() && e.Mode.Type() != fs.ModeSymlink
		if found[e.Path] || special || tree.OursIn(e.Path) {
			return nil
		}
		if err := tree.CheckPath(e.Path); err != nil {
			return fmt.Errorf("%s: %w", remote.Short(e.Path, 120), err)
		}
		found[e.Path] = true
		s.list = append(s.list, e)
		if e.Mode.IsRegular() {
			s.bytes += e.Size
		}
		return nil
	}
	paths := make([]string, len(list))
	for i, p := range list {
		paths[i] = strings.TrimPrefix(p, "./")
	}
	if err := t.Stat(ctx, "/", paths, add); err != nil {
		return err
	}
	for _, p := range paths {
		if !found[p] && !tree.OursIn(p) {
			return fmt.Errorf("take a portable snapshot: %s is not there", remote.Short("/"+p, 120))
		}
	}
	for _, top := range slices.Clone(s.list) {
		if !top.Mode.IsDir() {
			continue
		}
		err := t.List(ctx, "/"+top.Path, func(e treesync.Entry) error {
			e.Path = path.Join(top.Path, e.Path)
			return add(e)
		})
		if err != nil {
			return fmt.Errorf("take a portable snapshot: list /%s: %w", remote.Short(top.Path, 120), err)
		}
	}
	slices.SortFunc(s.list, func(a, b treesync.Entry) int { return tree.Compare(a.Path, b.Path) })
	return nil
}

// nameable says whether this computer can hold all names beside each other.
func nameable(list []treesync.Entry) bool {
	if runtime.GOOS == "linux" {
		return true
	}
	seen := map[string]bool{}
	for _, e := range list {
		folded := strings.ToLower(e.Path)
		if seen[folded] || runtime.GOOS == "windows" && tree.WindowsName(e.Path) != "" {
			return false
		}
		seen[folded] = true
	}
	return true
}

// missing tells apart what is to be brought and what an earlier run brought.
func (s *staged) missing() (lack, have []treesync.Entry) {
	for _, e := range s.list {
		if !e.Mode.IsRegular() {
			continue
		}
		st, err := os.Lstat(s.at(e))
		if err == nil && st.Mode().IsRegular() && st.Size() == e.Size && tree.SameTime(st.ModTime(), e.ModTime) {
			have = append(have, e)
		} else {
			lack = append(lack, e)
		}
	}
	return lack, have
}

func (s *staged) at(e treesync.Entry) string {
	return filepath.Join(s.dir, filepath.FromSlash(e.Path))
}

// proveStaged reads on both sides what an earlier run brought.
func (m *Machine) proveStaged(ctx context.Context, have []treesync.Entry, s *staged) error {
	paths := make([]string, len(have))
	for i, e := range have {
		paths[i] = "/" + e.Path
	}
	there, err := remoteHash(ctx, m.runner, paths, m.counting(CheckSnapshot, "snapshot.again", len(paths)))
	if err != nil {
		return err
	}
	for _, e := range have {
		here, err := localHash(ctx, s.at(e))
		if err != nil {
			return err
		}
		if here == there["/"+e.Path] {
			s.sums[e.Path] = here
		}
	}
	return nil
}

// bringStaged fetches. Whatever does not come as it was listed fails the snapshot.
func (m *Machine) bringStaged(ctx context.Context, t treesync.Transport, lack []treesync.Entry, bytes int64, s *staged) error {
	for _, e := range lack { // what is there is another
		if err := os.Remove(s.at(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := makeFolders(s.dir, lack); err != nil || len(lack) == 0 {
		return err
	}
	var first error
	count := &arriving{next: m.d.Clock.Now(), now: m.d.Clock.Now, say: func(n int64) {
		m.active(CheckSnapshot, phrase.Say("snapshot.arrived.of", treesync.Size(min(n, bytes)), treesync.Size(bytes)))
	}}
	err := t.Fetch(ctx, "/", s.dir, lack, count, func(e treesync.Entry, err error) {
		if s.sums[e.Path] = e.SHA256; err != nil && first == nil {
			first = fmt.Errorf("take a portable snapshot: /%s: %w. Files changed or could not be read while they were archived: end the job, or name what to keep with --path; what is here already is not brought again",
				remote.Short(e.Path, 120), err)
		}
	})
	if err != nil {
		return fmt.Errorf("take a portable snapshot: %w", err)
	}
	return first
}

// arriving shows what comes, from whichever goroutine, a few times a second.
type arriving struct {
	now func() time.Time
	say func(int64)

	mu   sync.Mutex // guards what follows, and say
	n    int64
	next time.Time
}

func (a *arriving) Content(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n += n
	if now := a.now(); !now.Before(a.next) {
		a.next = now.Add(200 * time.Millisecond)
		a.say(a.n)
	}
}

func (a *arriving) Wire(int64)     {}
func (a *arriving) Current(string) {}

// pack writes the archive of what was brought; each file is read once more on the way.
func (s *staged) pack(ctx context.Context, to io.Writer) (contents, error) {
	c := contents{manifest: map[string]string{}}
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return c, err
	}
	w := tar.NewWriter(z)
	for _, e := range s.list {
		if err := s.packOne(ctx, w, e, &c); err != nil {
			_ = z.Close()
			return c, fmt.Errorf("pack /%s: %w", remote.Short(e.Path, 120), err)
		}
	}
	return c, errors.Join(w.Close(), z.Close())
}

func (s *staged) packOne(ctx context.Context, w *tar.Writer, e treesync.Entry, c *contents) error {
	h := &tar.Header{Name: e.Path, Mode: int64(e.Mode.Perm()), ModTime: e.ModTime, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
	switch {
	case e.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	case e.Mode.Type() == fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
		return w.WriteHeader(h)
	}
	h.Size = e.Size
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	f, err := os.Open(s.at(e))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), ctxReader{ctx, f}); err != nil {
		return err
	}
	is := hexOf(sum)
	if is != s.sums[e.Path] {
		return errors.New("what is here is not what the instance sent")
	}
	c.manifest["/"+e.Path] = is
	c.bytes += e.Size
	return nil
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// packed stages and packs into f; errUnstaged says that nothing was done.
func (m *Machine) packed(ctx context.Context, f io.Writer, list []string) (c contents, sum string, size int64, err error) {
	s, err := m.stage(ctx, list)
	if err != nil {
		return c, "", 0, err
	}
	m.active(CheckSnapshot, phrase.Say("snapshot.packing", treesync.Size(s.bytes)))
	h := sha256.New()
	out := &sized{w: io.MultiWriter(f, h)}
	if c, err = s.pack(ctx, out); err != nil {
		return c, "", 0, fmt.Errorf("take a portable snapshot: %w", err)
	}
	return c, hexOf(h), out.n, nil
}

type sized struct {
	w io.Writer
	n int64
}

func (s *sized) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	return n, err
}
