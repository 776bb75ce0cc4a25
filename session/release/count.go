// A quick count of what exists nowhere else, for a column on a screen. It hashes
// nothing and proves nothing: the checklist does.

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CountUnsaved counts the files on the instance that changed since Deps.Since and
// have no copy here: none that was recorded with this path, size and time. A file
// of a clean, pushed git tree does not count either.
func CountUnsaved(ctx context.Context, d Deps) (files int, bytes int64, err error) {
	d = d.filled()
	d.Journal = &MemoryJournal{}
	m := newMachine(d, CheckOnly, newRunID())
	m.connect(ctx)
	s, err := m.scan(ctx)
	if err != nil {
		return 0, 0, err
	}
	trees, err := m.readGit(ctx, s.gits)
	if err != nil && !errors.Is(err, errNoGit) { // without git every file of a tree counts
		return 0, 0, err
	}
	saved := map[string]bool{}
	for _, t := range trees {
		for _, p := range t.clean {
			saved[p] = true
		}
	}
	known := map[string]KnownFile{}
	if d.Pushed != nil {
		list, err := d.Pushed(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("read what was pushed: %w", err)
		}
		for _, k := range list {
			if rest, ok := strings.CutPrefix(k.Remote, "~/"); ok {
				k.Remote = strings.TrimSuffix(s.home, "/") + "/" + rest
			}
			known[k.Remote] = k
		}
	}
	skel, err := m.fromSkel(ctx, s)
	if err != nil {
		return 0, 0, err
	}
	for _, f := range s.files {
		if saved[f.path] || skel[f.path] || s.ownedByPackages(f.path) || stillHere(known[f.path], f) || pulledAs(d.PullDir, f) {
			continue
		}
		files++
		bytes += f.size
	}
	return files + s.more, bytes + s.moreSize, nil
}

// wasWritten compares whole seconds: not every file system and tool keeps more.
func (f fileStat) wasWritten(at time.Time) bool {
	secs, _, _ := strings.Cut(f.mtime, ".")
	return secs == strconv.FormatInt(at.Unix(), 10)
}

// pulledAs says whether an earlier release pulled f as it is now.
func pulledAs(dir string, f fileStat) bool {
	rel := filepath.FromSlash(strings.TrimPrefix(f.path, "/"))
	if dir == "" || !filepath.IsLocal(rel) {
		return false
	}
	st, err := os.Lstat(filepath.Join(dir, rel))
	return err == nil && st.Mode().IsRegular() && st.Size() == f.size && f.wasWritten(st.ModTime())
}

// stillHere says whether k still describes f and its copy is still here.
func stillHere(k KnownFile, f fileStat) bool {
	if k.Local == "" || k.Size != f.size {
		return false
	}
	if !f.wasWritten(k.ModTime) {
		return false
	}
	st, err := os.Stat(k.Local)
	return err == nil && st.Mode().IsRegular() && st.Size() == f.size
}
