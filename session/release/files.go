// The line of the unsaved files: what changed on the instance and exists nowhere
// else. A file is left out only for a reason that was proven in this round.

package release

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

// checkFiles looks once at the file systems and at the git trees found there.
func (m *Machine) checkFiles(ctx context.Context) (finding, []gitTree, error) {
	m.proven = map[string]bool{}
	m.active(CheckUnsaved, looking(m.d.Since))
	s, err := m.scan(ctx)
	m.scanned = s
	if err != nil {
		return unknown(CheckUnsaved, why(err), phrase.Say("release.cure.check")), nil, err
	}
	m.home = s.home
	trees, gitErr := m.readGit(ctx, s.gits)
	lost, err := m.nowhereElse(ctx, s, trees)
	if err != nil {
		return unknown(CheckUnsaved, why(err), phrase.Say("release.cure.check")), trees, gitErr
	}
	f := finding{Check: Check{ID: CheckUnsaved, State: Passed}, rests: map[string]string{}, files: lost}
	size := s.moreSize
	list := make([]Evidence, 0, len(lost))
	for _, l := range lost {
		size += l.size
		e := Evidence{What: remote.Short(l.path, 200), Size: l.size, Lost: true}
		f.rests[l.path] = l.version()
		if m.moving[l.path] {
			// It is shown, and waived, as what it is: the next line of a log
			// must not make the list endless.
			e.Detail, f.rests[l.path] = phrase.Say("unsaved.moving"), "moving"
		}
		list = append(list, e)
	}
	if s.more > 0 {
		list = append(list, Evidence{What: theRest, Size: s.moreSize, Detail: phrase.Say("unsaved.more", s.more), Lost: true, More: s.more})
		f.rests["more"] = strconv.Itoa(s.more) + " " + strconv.FormatInt(s.moreSize, 10)
	}
	f.Evidence = bounded(list)
	for _, n := range s.network {
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(n, 120), Size: -1, Detail: phrase.Say("unsaved.network")})
	}
	for _, d := range s.downloads[:min(len(s.downloads), 20)] {
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(d, 160), Size: -1, Detail: phrase.Say("unsaved.cache")})
	}
	n := len(lost) + s.more
	f.Summary = phrase.Say("unsaved.equal")
	if n == 0 && len(s.files) == 0 {
		f.Summary = phrase.Say("unsaved.none")
	}
	if n > 0 {
		f.State = Failed
		f.Summary = phrase.Count("unsaved.files", n, treesync.Size(size))
		f.Cure = phrase.Say("unsaved.cure")
	}
	if s.unread > 0 {
		f.Summary = f.Summary.Then(phrase.Count("unsaved.unread", s.unread))
	}
	return f, trees, gitErr
}

func looking(since time.Time) phrase.Text {
	if since.IsZero() {
		return phrase.Say("unsaved.lookall")
	}
	return phrase.Say("unsaved.looking", since.UTC().Format("2006-01-02 15:04 UTC"))
}

// nowhereElse drops the files that are provably elsewhere: an artifact's file
// as it was hashed moments ago, a clean file of a pushed commit, what a package
// manager installed, and a file whose copy here hashes equal now.
func (m *Machine) nowhereElse(ctx context.Context, s *scan, trees []gitTree) ([]fileStat, error) {
	clean := map[string]bool{}
	for _, t := range trees {
		for _, p := range t.clean {
			clean[p] = true
		}
	}
	copies, err := m.copies(ctx, s.home)
	if err != nil {
		return nil, err
	}
	skel, err := m.fromSkel(ctx, s)
	if err != nil {
		return nil, err
	}
	var rest []fileStat
	var compare []string
	for _, f := range s.files {
		if v, ok := m.verified[f.path]; ok && v == f {
			m.proven[f.path] = true
			continue
		}
		if clean[f.path] || skel[f.path] || s.ownedByPackages(f.path) {
			continue
		}
		rest = append(rest, f)
		if copies.of(f) {
			compare = append(compare, f.path)
		}
	}
	sums, err := remoteHash(ctx, m.runner, compare, m.counting(CheckUnsaved, "unsaved.comparing", len(compare)))
	if err != nil {
		return nil, err
	}
	lost := rest[:0]
	for _, f := range rest {
		sum, ok := sums[f.path]
		if place, at, equal := copies.equal(ctx, f, sum); ok && equal {
			m.proven[f.path] = true
			if place != "" {
				m.proofs["copy "+f.path] = proof{matched: matched{fileStat: f, local: place}, here: at}
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lost = append(lost, f)
	}
	slices.SortStableFunc(lost, func(a, b fileStat) int {
		if a.size != b.size {
			return int(max(-1, min(1, b.size-a.size)))
		}
		return strings.Compare(a.path, b.path)
	})
	return lost, nil
}

// fromSkel finds the start-up files in the login's home that are as the system put
// them there when the login was made.
func (m *Machine) fromSkel(ctx context.Context, s *scan) (map[string]bool, error) {
	var paths []string
	for _, f := range s.files {
		if base := path.Base(f.path); path.Dir(f.path) == path.Clean(s.home) && base[0] == '.' && f.size < 64<<10 {
			paths = append(paths, f.path, "/etc/skel/"+base, "/usr/share/base-files/dot"+base)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	sums, err := remoteHash(ctx, m.runner, paths, func(int) {})
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for i := 0; i < len(paths); i += 3 {
		if sum := sums[paths[i]]; sum != "" && (sum == sums[paths[i+1]] || sum == sums[paths[i+2]]) {
			same[paths[i]] = true
		}
	}
	return same, nil
}

// filesMoved looks once more and names the files that are not as the last scan
// saw them.
func (m *Machine) filesMoved(ctx context.Context) []string {
	was := m.scanned
	now, err := m.scan(ctx)
	switch {
	case err != nil && was == nil:
		return nil // it cannot be read, as was shown and waived
	case err != nil || was == nil:
		return []string{"the file systems can be read at one time and not at another"}
	}
	before := make(map[string]string, len(was.files))
	for _, f := range was.files {
		before[f.path] = f.version()
	}
	var changed []string
	for _, f := range now.files {
		v, ok := before[f.path]
		delete(before, f.path)
		if ok && v == f.version() || m.moving[f.path] || now.ownedByPackages(f.path) {
			continue
		}
		if ok {
			m.moving[f.path] = true
		}
		changed = append(changed, remote.Short(f.path, 120))
	}
	for p := range before {
		if !m.moving[p] && !was.ownedByPackages(p) {
			changed = append(changed, remote.Short(p, 120)+" (gone)")
		}
	}
	slices.Sort(changed)
	if was.more != now.more || was.moreSize != now.moreSize {
		changed = append(changed, "files beyond the first "+strconv.Itoa(maxFiles))
	}
	return changed
}

// copies knows where a file of the instance may have an equal one: here, or in
// a portable snapshot that was just proven whole.
type copies struct {
	local    map[string][]string // path there: paths here
	pullDir  string
	archived map[string]string // path there: SHA-256 in the archive
}

func (m *Machine) copies(ctx context.Context, home string) (*copies, error) {
	c := &copies{local: map[string][]string{}, pullDir: m.d.PullDir, archived: m.provenArchives(ctx)}
	if m.d.Pushed == nil {
		return c, nil
	}
	pushed, err := m.d.Pushed(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what was pushed: %w", err)
	}
	for _, k := range pushed {
		p := k.Remote
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = strings.TrimSuffix(home, "/") + "/" + rest
		}
		c.local[p] = append(c.local[p], k.Local)
	}
	return c, nil
}

// places lists the files here that may equal f.
func (c *copies) places(f fileStat) []string {
	list := c.local[f.path]
	if c.pullDir != "" {
		if rel := filepath.FromSlash(strings.TrimPrefix(f.path, "/")); filepath.IsLocal(rel) {
			list = append(slices.Clip(list), filepath.Join(c.pullDir, rel))
		}
	}
	return list
}

// of says whether it is worth hashing f there.
func (c *copies) of(f fileStat) bool {
	if c.archived[f.path] != "" {
		return true
	}
	return slices.ContainsFunc(c.places(f), func(p string) bool {
		st, err := os.Stat(p)
		return err == nil && st.Mode().IsRegular() && st.Size() == f.size
	})
}

// equal finds a copy that hashes equal now, with its size and time before it
// was read; an archive was read already.
func (c *copies) equal(ctx context.Context, f fileStat, sum string) (place string, at time.Time, ok bool) {
	for _, p := range c.places(f) {
		st, err := os.Stat(p)
		if err != nil || st.Size() != f.size {
			continue
		}
		if here, err := localHash(ctx, p); err == nil && here == sum {
			return p, st.ModTime(), true
		}
	}
	return "", at, sum != "" && c.archived[f.path] == sum
}
