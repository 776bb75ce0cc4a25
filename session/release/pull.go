// The decision to pull: artifacts that differ go to their destination, unsaved
// files and commits that are at no remote to Deps.PullDir. The next round proves what arrived.

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rentop/remote"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

type pullData struct {
	Files  int    `json:"files"`
	Failed int    `json:"failed,omitempty"`
	First  string `json:"first,omitempty"` // why the first file failed
	Error  string `json:"error,omitempty"`
}

// note counts one file; name says which one failed where its error does not.
func (d *pullData) note(name string, err error) {
	d.Files++
	if err == nil {
		return
	}
	d.Failed++
	text := err.Error()
	if name != "" {
		text = name + ": " + text
	}
	d.First = cmp.Or(d.First, remote.Short(text, 300))
}

// pull shows a failure in Why; the checks then show what is still missing.
func (m *Machine) pull(ctx context.Context) error {
	if err := m.log(ctx, stepPull, nil); err != nil {
		return err
	}
	m.phase(Saving)
	var done pullData
	err := m.cancellable(ctx, func(ctx context.Context) error {
		t, err := m.d.OpenTransport(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		if err := m.pullArtifacts(ctx, t, &done); err != nil {
			return err
		}
		if err := m.pullUnsaved(ctx, t, &done); err != nil {
			return err
		}
		return m.pullCommits(ctx, &done)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		done.Error = remote.Short(err.Error(), 300)
		m.v.Why = phrase.Say("why.pull", done.Error)
	} else if done.Failed > 0 {
		m.v.Why = phrase.Count("why.pulled", done.Failed, done.First)
	}
	return m.log(ctx, stepPulled, done)
}

func (m *Machine) pullArtifacts(ctx context.Context, t treesync.Transport, done *pullData) error {
	for _, a := range m.d.Artifacts {
		if a.To == "" {
			continue
		}
		if a.elsewhere() {
			if err := m.saveThere(ctx, a, done); err != nil {
				return err
			}
			continue
		}
		list, _, err := m.matchArtifact(ctx, a)
		if err != nil {
			continue // the check says why
		}
		var lack []Found
		for _, l := range list {
			if _, ok := m.verified[l.path]; !ok && l.local != "" {
				lack = append(lack, l.found())
			}
		}
		n, say := 0, m.counting(CheckArtifacts, "why.pulling", len(lack))
		err = Fetch(ctx, t, lack, func(_ Found, err error) {
			n++
			say(n)
			done.note("", err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Fetch brings files to their places here, Found.Local. One whose name is another
// there is left out, as is one that has no place.
func Fetch(ctx context.Context, t treesync.Transport, files []Found, done func(Found, error)) error {
	byDir, names := map[string][]treesync.Entry{}, map[string]Found{}
	for _, f := range files {
		// A transport keeps the last element of a path; its folder is the root on
		// either side.
		if f.Local == "" || filepath.Base(f.Local) != path.Base(f.Path) {
			continue
		}
		key := path.Dir(f.Path) + "\x00" + filepath.Dir(f.Local)
		byDir[key] = append(byDir[key], treesync.Entry{Path: path.Base(f.Path), Size: f.Size, Mode: 0o644, ModTime: f.ModTime})
		names[key+"\x00"+path.Base(f.Path)] = f
	}
	for _, key := range sortedKeys(byDir) {
		from, to, _ := strings.Cut(key, "\x00")
		if err := makeFolders(to, byDir[key]); err != nil {
			return err
		}
		err := t.Fetch(ctx, from, to, byDir[key], quiet{}, func(e treesync.Entry, err error) { done(names[key+"\x00"+e.Path], err) })
		if err != nil {
			return fmt.Errorf("pull from %s: %w", from, err)
		}
	}
	return nil
}

func (m *Machine) pullUnsaved(ctx context.Context, t treesync.Transport, done *pullData) error {
	if m.d.PullDir == "" {
		return nil
	}
	var list []treesync.Entry
	for _, f := range m.round[CheckUnsaved].files {
		rel := strings.TrimPrefix(f.path, "/")
		if filepath.IsLocal(filepath.FromSlash(rel)) {
			list = append(list, treesync.Entry{Path: rel, Size: f.size, Mode: 0o600, ModTime: f.modTime()})
		}
	}
	if err := m.keepOlder(list); err != nil {
		return err
	}
	return m.fetch(ctx, t, "/", m.d.PullDir, list, CheckUnsaved, done)
}

// keepOlder moves aside what lies where unsaved files will come: it differs from
// them, and may be all that is left of an instance that had this name before. What
// this run itself pulled is an older state of the same file and may go.
func (m *Machine) keepOlder(list []treesync.Entry) error {
	root, err := os.OpenRoot(m.d.PullDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range list {
		name := filepath.FromSlash(e.Path)
		st, err := root.Lstat(name)
		if err != nil || !st.Mode().IsRegular() || m.pulled[e.Path] {
			continue
		}
		aside := name + "." + stamp(st.ModTime())
		for n := 2; ; n++ {
			if _, err := root.Lstat(aside); err != nil {
				break
			}
			aside = fmt.Sprintf("%s.%s-%d", name, stamp(st.ModTime()), n)
		}
		if err := root.Rename(name, aside); err != nil {
			return fmt.Errorf("keep the older %s: %w", filepath.Join(m.d.PullDir, name), err)
		}
	}
	return nil
}

func (m *Machine) fetch(ctx context.Context, t treesync.Transport, from, to string, list []treesync.Entry, id CheckID, done *pullData) error {
	if len(list) == 0 {
		return nil
	}
	if err := makeFolders(to, list); err != nil {
		return err
	}
	n := 0
	say := m.counting(id, "why.pulling", len(list))
	err := t.Fetch(ctx, from, to, list, quiet{}, func(e treesync.Entry, err error) {
		n++
		say(n)
		done.note("", err)
		if err == nil && id == CheckUnsaved {
			m.pulled[e.Path] = true
			m.v.Pulled, m.v.PulledTo = len(m.pulled), m.d.PullDir
		}
	})
	if err != nil {
		return fmt.Errorf("pull from %s: %w", from, err)
	}
	return nil
}

// makeFolders makes what the files lie in: a transport writes files and no folders.
// The names are the instance's, so nothing is made outside of to.
func makeFolders(to string, list []treesync.Entry) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	made := ""
	for _, e := range list {
		if dir := path.Dir(e.Path); dir != made && dir != "." {
			if err := root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
				return err
			}
			made = dir
		}
	}
	return nil
}

// quiet is a Meter for transfers whose progress is counted in files.
type quiet struct{}

func (quiet) Content(int64)  {}
func (quiet) Wire(int64)     {}
func (quiet) Current(string) {}
