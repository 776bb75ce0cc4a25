// The line of the git trees: uncommitted, unpushed and stashed work. A commit is
// pushed where a remote-tracking branch of a remote elsewhere holds it.

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/session/phrase"
)

// Bounds on what one look at git trees holds.
const (
	maxTrees = 500
	maxDirty = 5_000
)

type gitTree struct {
	dir      string
	why      string // "": it could be read
	head     string
	unpushed int
	stashes  int
	tips     []string // commits, stashed ones too, that a remote lacks with what is behind them
	dirty    []string // "XY path", path relative to dir
	more     int      // dirty ones beyond maxDirty
	clean    []string // absolute: tracked files that are as a pushed commit has them
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

var errNoGit = errors.New("git is not installed there")

// gitScript reads folders on stdin. The instance's own git reads the instance's
// own repository: hooks and monitors are off, no lock is taken. Files marked
// assume-unchanged or skip-worktree are never called clean. An untracked symlink
// does not count, as in the scan: it holds no content.
const gitScript = `LC_ALL=C; export LC_ALL
command -v git >/dev/null 2>&1 || { printf 'X \0'; exit 0; }
GIT_OPTIONAL_LOCKS=0; GIT_TERMINAL_PROMPT=0; export GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
xargs -0 -n 1 sh -c '
dir=$1; export dir
mark() { tag=$1; export tag; xargs -0 sh -c "for f; do printf \"%s %s\\0\" \"\$tag\" \"\$f\"; done; exit 0" sh; }
g() { git -c safe.directory="*" -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=false -c status.renames=false -C "$dir" "$@"; }
printf "t %s\0" "$dir"
top=$(g rev-parse --is-inside-work-tree 2>&1) || { printf "x %s\0e \0" "$top"; exit 0; }
good=
for r in $(g remote); do
  u=$(g config --get "remote.$r.url") || continue
  case $u in file:*|/*|.*|"~"*) ;; *:*) good="$good --remotes=$r";; esac
done
if head=$(g rev-parse -q --verify HEAD 2>/dev/null); then h=HEAD; else head=unborn; h=; fi
printf "o %s\0" "$head"
n=0
if [ -n "$h" ] || [ -n "$(g for-each-ref --count=1 refs/heads)" ]; then
  n=$(g rev-list --count $h --branches --not $good 2>&1) || { printf "x %s\0e \0" "$n"; exit 0; }
fi
printf "u %s\0" "$n"
s=0
if g rev-parse -q --verify refs/stash >/dev/null 2>&1; then s=$(g rev-list --walk-reflogs --count refs/stash 2>/dev/null) || s=1; fi
printf "s %s\0" "$s"
if [ "$n" != 0 ]; then
  for tip in $( { g rev-parse -q --verify HEAD; g for-each-ref --format="%(objectname)" refs/heads; } 2>/dev/null | sort -u); do
    [ "$(g rev-list --count "$tip" --not $good 2>/dev/null)" = 0 ] || printf "b %s\0" "$tip"
  done
fi
if [ "$s" != 0 ]; then for tip in $(g rev-list --walk-reflogs refs/stash 2>/dev/null || g rev-parse refs/stash); do printf "b %s\0" "$tip"; done; fi
{ g status --porcelain=v1 -z --untracked-files=all || printf "!!failed\0"; } 2>/dev/null |
xargs -0 sh -c "for f; do case \$f in \"?? \"*) [ -L \"\$dir/\${f#???}\" ] && continue;; esac; printf \"w %s\\0\" \"\$f\"; done; exit 0" sh
if [ -n "$h" ] && [ "$(g rev-list --count HEAD --not $good 2>/dev/null)" = 0 ]; then g ls-files -v -z 2>/dev/null | mark k; fi
printf "e \0"
exit 0' sh
printf 'E \0'
`

func (m *Machine) readGit(ctx context.Context, dirs []string) ([]gitTree, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	if len(dirs) > maxTrees {
		return nil, fmt.Errorf("%d git trees are too many to check", len(dirs))
	}
	var trees []gitTree
	var t *gitTree
	whole, failed := false, false
	dirty := map[string]bool{}
	var tracked []string
	number := func(b []byte) int {
		n, err := strconv.Atoi(string(bytes.TrimSpace(b)))
		if err != nil || n < 0 {
			t.why = "git's answer is not understood"
		}
		return n
	}
	err := records(ctx, m.runner, gitScript, stdin(dirs), func(rec []byte) error {
		if len(rec) < 2 || rec[1] != ' ' || whole {
			return fmt.Errorf("a record that is not understood: %s", remote.Short(string(rec), 100))
		}
		rest := rec[2:]
		if rec[0] != 't' && rec[0] != 'E' && rec[0] != 'X' && t == nil {
			return fmt.Errorf("a record outside of a tree: %s", remote.Short(string(rec), 100))
		}
		switch rec[0] {
		case 'X':
			return errNoGit
		case 't':
			trees = append(trees, gitTree{dir: string(rest)})
			t = &trees[len(trees)-1]
			clear(dirty)
			tracked = tracked[:0]
		case 'x':
			t.why = remote.Short(string(rest), 200)
		case 'o':
			t.head = string(rest)
		case 'u':
			t.unpushed = number(rest)
		case 's':
			t.stashes = number(rest)
		case 'b':
			if !commitID.Match(rest) || len(t.tips) >= maxDirty {
				t.why = "git's answer is not understood"
				break
			}
			t.tips = append(t.tips, string(rest))
		case 'w':
			if string(rest) == "!!failed" {
				t.why = "git status failed there"
				break
			}
			if len(rest) < 4 {
				break
			}
			dirty[string(rest[3:])] = true
			if len(t.dirty) < maxDirty {
				t.dirty = append(t.dirty, string(rest))
			} else {
				t.more++
			}
		case 'k':
			if len(rest) > 2 && rest[0] == 'H' && len(tracked) < 5*maxFiles {
				tracked = append(tracked, string(rest[2:]))
			}
		case 'e':
			if t.why == "" {
				for _, p := range tracked {
					if !dirty[p] {
						t.clean = append(t.clean, path.Join(t.dir, p))
					}
				}
			}
			t = nil
		case 'E':
			whole = true
		default:
			failed = true
		}
		return nil
	})
	if err == nil && (!whole || failed || len(trees) != len(dirs)) {
		err = errors.New("the answer about git trees is not whole")
	}
	if err != nil {
		return nil, fmt.Errorf("look at %d git trees: %w", len(dirs), err)
	}
	return trees, nil
}

// checkGit follows checkFiles, which knows what was proven to exist elsewhere.
func (m *Machine) checkGit(trees []gitTree, err error) finding {
	m.trees, m.v.Commits = nil, 0
	if err != nil {
		return unknown(CheckGit, why(err), phrase.Say("git.cure.type"))
	}
	f := finding{Check: Check{ID: CheckGit, State: Passed}, rests: map[string]string{}}
	m.trees = trees
	lost, unread, commits := 0, 0, 0
	for _, t := range trees {
		e := Evidence{What: remote.Short(t.dir, 160), Size: -1}
		if t.why != "" {
			unread++
			e.Detail, e.Lost = phrase.Say("git.tree.unread", t.why), true
			f.Evidence = append(f.Evidence, e)
			f.rests[t.dir] = "unknown"
			continue
		}
		var dirty []string
		for _, d := range t.dirty {
			if !m.proven[path.Join(t.dir, d[3:])] {
				dirty = append(dirty, d)
			}
		}
		n := len(dirty) + t.more
		f.rests[t.dir] = fmt.Sprintf("%s %d %d %d %s", t.head, t.unpushed, t.stashes, n, strings.Join(dirty, "\x00"))
		saved := m.bundled(t)
		if saved != "" {
			f.rests[t.dir] += " " + saved + strings.Join(t.tips, " ")
			t.unpushed, t.stashes = 0, 0
		}
		var parts []phrase.Text
		if n > 0 {
			parts = append(parts, sayDirty(dirty, n))
		}
		commits += t.unpushed + t.stashes
		if t.unpushed > 0 {
			parts = append(parts, phrase.Count("git.unpushed", t.unpushed))
		}
		if t.stashes > 0 {
			parts = append(parts, phrase.Say("git.stashed", t.stashes))
		}
		if len(parts) > 0 {
			lost++
			e.Lost, e.Detail = true, phrase.List(parts...)
			f.Evidence = append(f.Evidence, e)
		} else if saved != "" {
			e.Detail = phrase.Say("git.bundled", saved)
			f.Evidence = append(f.Evidence, e)
		}
	}
	f.Evidence = bounded(f.Evidence)
	m.v.Commits = len(m.lackCommits())
	switch {
	case lost > 0:
		f.State = Failed
		f.Summary = phrase.Count("git.lost", len(trees), lost)
		if f.Cure = phrase.Say("git.cure"); commits > 0 {
			f.Cure = phrase.Say("git.cure.push")
		}
	case unread > 0:
		f.State = Unknown
		f.Summary = phrase.Count("git.unread", unread)
		f.Cure = phrase.Say("git.cure.look")
	case len(trees) == 0:
		f.Summary = phrase.Say("git.none")
	case len(m.whole) > 0:
		f.Summary = phrase.Count("git.safe", len(trees))
	default:
		f.Summary = phrase.Count("git.clean", len(trees))
	}
	return f
}

func sayDirty(dirty []string, n int) phrase.Text {
	if len(dirty) == 0 {
		return phrase.Say("git.uncommitted", n)
	}
	first := remote.Short(dirty[0][3:], 60)
	if n > 1 {
		first += ", …"
	}
	return phrase.Say("git.uncommitted.a", n, first)
}
