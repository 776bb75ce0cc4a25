// The line of the artifacts: each must exist at its destination, byte for byte,
// as read on both sides now.

package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"rentop/remote"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

// matched is one file of an artifact.
type matched struct {
	fileStat
	local string // "" where its name cannot lie in the destination; of a place elsewhere what is shown
	rel   string // below the destination
	far   bool   // the destination is elsewhere
}

// verdict is a comparison of one file with its destination.
type verdict struct {
	sum     string
	problem phrase.Text // none: equal
	here    time.Time   // the copy's time before it was read, of a folder here
	there   string      // its version at a place elsewhere
}

// listing is what stands at an artifact's path.
type listing struct {
	isDir    bool
	files    []fileStat // paths relative to base
	base     string     // with links resolved
	dangling int
}

func (m *Machine) checkArtifacts(ctx context.Context) finding {
	f := finding{Check: Check{ID: CheckArtifacts, State: Passed}, rests: map[string]string{}}
	m.verified = map[string]fileStat{}
	if len(m.d.Artifacts) == 0 {
		f.Summary = phrase.Say("artifacts.none")
		return f
	}
	if m.runner == nil {
		return unknown(CheckArtifacts, m.offline, phrase.Say("release.cure.connect"))
	}
	var files, bad, unread int
	var size, badSize int64
	for i, a := range m.d.Artifacts {
		name := a.Path + " → " + a.To
		fail := func(detail phrase.Text) {
			bad++
			f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 160), Size: -1, Detail: detail, Lost: true})
			f.rests["artifact "+name] = "failed"
		}
		if a.elsewhere() && m.d.Place == nil {
			fail(phrase.Say("artifacts.unsupported", remote.Short(a.To, 120)))
			continue
		}
		if a.To == "" {
			fail(phrase.Say("artifacts.nowhere"))
			continue
		}
		m.active(CheckArtifacts, phrase.Say("artifacts.listing", remote.Short(a.Path, 60), i+1, len(m.d.Artifacts)))
		list, dangling, err := m.matchArtifact(ctx, a)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
			fail(phrase.Say("artifacts.nomatch"))
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return f
			}
			unread++
			f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 160), Size: -1, Detail: phrase.Say("release.unchecked").Then(why(err)), Lost: true})
			f.rests["artifact "+name] = "unknown"
			continue
		}
		if dangling > 0 {
			f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 160), Size: -1, Detail: phrase.Count("artifacts.links", dangling)})
		}
		verdicts, err := m.compare(ctx, a, list)
		if ctx.Err() != nil {
			return f
		}
		if err != nil {
			unread++
			f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 160), Size: -1, Detail: phrase.Say("release.unchecked").Then(why(err)), Lost: true})
			f.rests["artifact "+name] = "unknown"
			continue
		}
		for i, l := range list {
			sum, problem := verdicts[i].sum, verdicts[i].problem
			files++
			size += l.size
			key := l.path + " → " + l.local
			f.rests[key] = sum + " " + problem.String()
			if len(problem) > 0 {
				bad++
				badSize += l.size
				if m.moving[key] {
					problem = problem.Then(phrase.Say("artifacts.moving"))
					f.rests[key] = "moving"
				}
				f.Evidence = append(f.Evidence, Evidence{What: remote.Short(l.path, 160), Size: l.size, Detail: problem, Lost: true})
				continue
			}
			m.verified[l.path] = l.fileStat
			m.proofs[key] = proof{matched: l, here: verdicts[i].here, there: verdicts[i].there}
			if a.elsewhere() {
				p := m.proofs[key]
				p.to = a.To
				m.proofs[key] = p
			}
		}
	}
	f.Evidence = bounded(f.Evidence)
	switch {
	case bad > 0:
		f.State = Failed
		f.Summary = phrase.Count("artifacts.bad", bad)
		if badSize > 0 {
			f.Summary = f.Summary.Then(phrase.Say("artifacts.size", treesync.Size(badSize)))
		}
		f.Cure = phrase.Say("artifacts.cure", m.d.Instance)
	case unread > 0:
		f.State = Unknown
		f.Summary = phrase.Count("artifacts.unread", unread)
		f.Cure = phrase.Say("release.cure.again")
	default:
		f.Summary = phrase.Count("artifacts.equal", files, treesync.Size(size))
	}
	return f
}

// compare reads an artifact's files on both sides.
func (m *Machine) compare(ctx context.Context, a Artifact, list []matched) ([]verdict, error) {
	if a.elsewhere() {
		return m.proveThere(ctx, a, list)
	}
	paths := make([]string, len(list))
	for i, l := range list {
		paths[i] = l.path
	}
	sums, err := remoteHash(ctx, m.runner, paths, m.counting(CheckArtifacts, "artifacts.there", len(paths)))
	if err != nil {
		return nil, err
	}
	counted := m.counting(CheckArtifacts, "artifacts.here", len(list))
	out := make([]verdict, len(list))
	for i, l := range list {
		counted(i)
		v := &out[i]
		if v.sum = sums[l.path]; v.sum == "" {
			v.problem = phrase.Say("artifacts.unreadable")
		} else {
			v.problem, v.here = sameHere(ctx, l, v.sum)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// proof is a file as it was when it hashed equal to its copy.
type proof struct {
	matched
	here time.Time // the modification time of the copy here
	// Of a copy at a place elsewhere.
	to    string // the artifact's destination
	there string // its version there
}

// sameHere compares with the file here; no problem is equal. The time is the
// copy's before it was read.
func sameHere(ctx context.Context, l matched, sum string) (problem phrase.Text, at time.Time) {
	if l.local == "" {
		return phrase.Say("artifacts.name"), at
	}
	st, err := os.Stat(l.local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return phrase.Say("artifacts.missing", l.local), at
	case err != nil:
		return phrase.Say("artifacts.local", why(err)), at
	case st.IsDir():
		return phrase.Say("artifacts.folder", l.local), at
	case st.Size() != l.size:
		return phrase.Say("artifacts.differs", treesync.Size(st.Size()), l.local), at
	}
	here, err := localHash(ctx, l.local)
	if err != nil {
		return phrase.Say("artifacts.local", why(err)), at
	}
	if here != sum {
		return phrase.Say("artifacts.content", l.local), at
	}
	return nil, st.ModTime()
}

// matchArtifact lists the files that an artifact names, with the place of each.
// A folder's and a pattern's files keep their path below the last folder
// without * ? [ {; a file goes to To, or into it where it is a folder. A place
// elsewhere is always one. With Keep only the newest checkpoints are listed.
func (m *Machine) matchArtifact(ctx context.Context, a Artifact) ([]matched, int, error) {
	base, pattern := path.Clean(a.Path), ""
	if b, p := doublestar.SplitPattern(base); p != path.Base(base) || strings.ContainsAny(p, "*?[{") {
		base, pattern = b, p
	}
	if pattern != "" && !doublestar.ValidatePattern(pattern) {
		return nil, 0, fmt.Errorf("the pattern %q is malformed", a.Path)
	}
	l, err := m.list(ctx, base)
	if err != nil {
		return nil, 0, err
	}
	to := ""
	if !a.elsewhere() {
		if to, err = m.localPath(a.To); err != nil {
			return nil, 0, err
		}
	}
	var out []matched
	for _, f := range l.files {
		if pattern != "" {
			ok, err := doublestar.Match(pattern, f.path)
			if err != nil {
				return nil, 0, err
			}
			if !ok {
				continue
			}
		}
		local, below := "", f.path
		if a.elsewhere() {
			local = placed(a, below)
		} else if rel := filepath.FromSlash(f.path); filepath.IsLocal(rel) {
			local = filepath.Join(to, rel)
		}
		if !l.isDir && !a.elsewhere() {
			local = to
			if st, err := os.Stat(to); err == nil && st.IsDir() || strings.HasSuffix(a.To, "/") {
				local = filepath.Join(to, f.path)
			}
		}
		f.path = path.Join(l.base, f.path)
		out = append(out, matched{f, local, below, a.elsewhere()})
	}
	if a.Keep > 0 && m.d.Newest != nil {
		out = m.newest(out, a.Keep)
	}
	return out, l.dangling, nil
}

func (m *Machine) localPath(to string) (string, error) {
	if rest, ok := strings.CutPrefix(to, "~/"); ok || to == "~" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, filepath.FromSlash(rest)), nil
	}
	to = filepath.FromSlash(to)
	if filepath.IsAbs(to) {
		return to, nil
	}
	return filepath.Join(m.d.Base, to), nil
}

// list reads what stands at a path of the instance, following links: a link's
// content is what must be saved.
func (m *Machine) list(ctx context.Context, base string) (listing, error) {
	script := statTools + "b=" + homeWord(base) + `
case $b in /*) ;; *) b=$HOME/$b;; esac
[ -e "$b" ] || { printf 'm \0'; exit 0; }
if [ -d "$b" ]; then cd -- "$b" || exit 5; printf 'd %s\0' "$(pwd -P)"; set -- .
else cd -- "$(dirname -- "$b")" || exit 5; printf 'b %s\0' "$(pwd -P)"; set -- "./${b##*/}"; fi
if [ -n "$gnu" ]; then find -L "$@" -type f -printf 'f %s %T@ %C@ %p\0' -o -type l -printf 'l %p\0' || exit 6
else find -L "$@" \( -type f -o -type l \) -print0 | xargs -0 sh -c '
for f; do [ -f "$f" ] || { printf "l %s\0" "$f"; continue; }
s=$(stat -L -c "%s %Y %Z" -- "$f") && printf "f %s %s\0" "$s" "$f"; done; exit 0' sh; fi
printf 'e \0'
`
	var l listing
	whole, missing := false, false
	err := records(ctx, m.runner, script, nil, func(rec []byte) error {
		if len(rec) < 2 || rec[1] != ' ' {
			return fmt.Errorf("a record that is not understood: %s", remote.Short(string(rec), 100))
		}
		rest := rec[2:]
		switch rec[0] {
		case 'm':
			whole, missing = true, true
		case 'd', 'b':
			l.base, l.isDir = string(rest), rec[0] == 'd'
		case 'l':
			l.dangling++
		case 'e':
			whole = true
		case 'f':
			f, err := parseStat(rest)
			if err != nil {
				return err
			}
			f.path = strings.TrimPrefix(f.path, "./")
			if len(l.files) >= 5*maxFiles {
				return fmt.Errorf("more than %d files: %w", 5*maxFiles, remote.ErrTooLong)
			}
			l.files = append(l.files, f)
		}
		return nil
	})
	switch {
	case err != nil:
		return l, fmt.Errorf("list %s: %w", remote.Short(base, 100), err)
	case missing:
		return l, fs.ErrNotExist
	case !whole || !path.IsAbs(l.base):
		return l, fmt.Errorf("list %s: the list ended early", remote.Short(base, 100))
	}
	return l, nil
}

// artifactsMoved lists the artifacts once more and names what is not as it was
// when it was hashed: the last look before the teardown.
func (m *Machine) artifactsMoved(ctx context.Context) []string {
	var changed []string
	for _, a := range m.d.Artifacts {
		if a.To == "" || m.runner == nil || m.round[CheckArtifacts].rests["artifact "+a.Path+" → "+a.To] == "unknown" {
			continue // as not known: waived
		}
		list, _, err := m.matchArtifact(ctx, a)
		if err != nil {
			if m.round[CheckArtifacts].rests["artifact "+a.Path+" → "+a.To] == "" {
				changed = append(changed, remote.Short(a.Path, 120)+" (cannot be listed any more)")
			}
			continue
		}
		for _, l := range list {
			key := l.path + " → " + l.local
			was, ok := m.proofs[key]
			if _, shown := m.round[CheckArtifacts].rests[key]; !ok && shown {
				continue // as failing: waived
			}
			if !ok || was.fileStat != l.fileStat {
				changed = append(changed, remote.Short(l.path, 120))
			}
		}
	}
	return changed
}

// copiesMoved looks at the copies here that the proof rests upon.
func (m *Machine) copiesMoved() []string {
	var changed []string
	for _, key := range sortedKeys(m.proofs) {
		p := m.proofs[key]
		if p.to != "" {
			continue // see placesMoved
		}
		if st, err := os.Stat(p.local); err != nil || st.Size() != p.size || !st.ModTime().Equal(p.here) {
			changed = append(changed, p.local)
		}
	}
	return changed
}

// counting reports progress of n things, not for each one: what takes both numbers.
func (m *Machine) counting(id CheckID, what phrase.ID, n int) func(int) {
	next := m.d.Clock.Now()
	return func(done int) {
		if now := m.d.Clock.Now(); !now.Before(next) {
			next = now.Add(200 * time.Millisecond)
			m.active(id, phrase.Say(what, done, n))
		}
	}
}
