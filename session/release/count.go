// A quick count of what exists nowhere else, for a column on a screen. It hashes
// nothing and proves nothing: the checklist does.

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
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
	for _, f := range s.files {
		if saved[f.path] || s.ownedByPackages(f.path) || stillHere(known[f.path], f) {
			continue
		}
		files++
		bytes += f.size
	}
	return files + s.more, bytes + s.moreSize, nil
}

// stillHere says whether k still describes f and its copy is still here.
func stillHere(k KnownFile, f fileStat) bool {
	if k.Local == "" || k.Size != f.size {
		return false
	}
	if secs, _, _ := strings.Cut(f.mtime, "."); secs != strconv.FormatInt(k.ModTime.Unix(), 10) {
		return false
	}
	st, err := os.Stat(k.Local)
	return err == nil && st.Mode().IsRegular() && st.Size() == f.size
}
