// Commits that are at no remote: the decision to pull brings them here as a git bundle,
// verified there, hashed on both sides. A tree's commits count as saved while each of
// its tips is named by a bundle here that is still as it came.

package release

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/session/phrase"
)

// bundle is one that this run brought.
type bundle struct {
	tree string // absolute there
	file string // here
	sum  string
	tips []string
}

// bundleScript makes the bundle of a tree (first line of stdin) from the tips on the
// other lines, without what a remote elsewhere has. A bundle wants names, and the tree is
// not to get any: it is made in an empty repository over the same objects. Its stderr ends
// with "rentop-bundle HASH".
const bundleScript = `LC_ALL=C; export LC_ALL
GIT_OPTIONAL_LOCKS=0; GIT_TERMINAL_PROMPT=0; export GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
d=$(mktemp -d "${TMPDIR:-/tmp}/rentop-bundle.XXXXXX") || exit 3
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
IFS= read -r dir || exit 3
cat >"$d/tips"
g() { git -c safe.directory="*" -c core.fsmonitor=false -c core.hooksPath=/dev/null -C "$dir" "$@"; }
b() { git -c safe.directory="*" -c core.hooksPath=/dev/null --git-dir="$d/r" "$@"; }
common=$(cd -- "$dir" && cd -- "$(g rev-parse --git-common-dir)" && pwd -P) || exit 4
git -c init.templateDir= init -q --bare "$d/r" || exit 4
mkdir -p "$d/r/objects/info"
printf '%s\n' "$common/objects" >"$d/r/objects/info/alternates"
if [ -f "$common/shallow" ]; then cp "$common/shallow" "$d/r/shallow"; fi
n=0
while read -r tip; do
  n=$((n+1)); name=$(g for-each-ref --count=1 --points-at="$tip" --format='%(refname)' refs/heads)
  b update-ref "${name:-refs/heads/rentop-saved-$n}" "$tip" || exit 5
done <"$d/tips"
for r in $(g remote); do
  u=$(g config --get "remote.$r.url") || continue
  case $u in file:*|/*|.*|"~"*) ;; *:*) g for-each-ref --format='^%(objectname)' "refs/remotes/$r";; esac
done >"$d/not"
b bundle create -q "$d/b" --all --stdin <"$d/not" 2>"$d/err" || b bundle create "$d/b" --all --stdin <"$d/not" 2>"$d/err" || { tail -n 2 "$d/err" >&2; exit 6; }
b bundle verify "$d/b" >/dev/null 2>"$d/err" || { tail -n 2 "$d/err" >&2; exit 7; }
if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <"$d/b"); elif command -v shasum >/dev/null 2>&1; then h=$(shasum -a 256 <"$d/b"); else h=$(openssl dgst -sha256 -r <"$d/b"); fi
cat "$d/b" || exit 8
printf 'rentop-bundle %s\n' "${h%% *}" >&2
`

var bundleSum = regexp.MustCompile(`rentop-bundle ([0-9a-f]{64})\n?$`)

// lackCommits are the trees whose commits exist nowhere else.
func (m *Machine) lackCommits() []gitTree {
	return slices.DeleteFunc(slices.Clone(m.trees), func(t gitTree) bool { return t.why != "" || len(t.tips) == 0 || m.bundled(t) != "" })
}

// bundled is the file here that has all tips of a tree; "" where there is none.
func (m *Machine) bundled(t gitTree) string {
	if len(t.tips) == 0 {
		return ""
	}
	for _, b := range m.whole {
		if b.tree == t.dir && !slices.ContainsFunc(t.tips, func(tip string) bool { return !slices.Contains(b.tips, tip) }) {
			return b.file
		}
	}
	return ""
}

// proveBundles reads what was brought again.
func (m *Machine) proveBundles(ctx context.Context) {
	m.whole = nil
	for _, b := range m.bundles {
		st, err := os.Stat(b.file)
		if err != nil {
			continue
		}
		if sum, err := localHash(ctx, b.file); err == nil && sum == b.sum {
			m.whole = append(m.whole, b)
			m.proofs["bundle "+b.file] = proof{matched: matched{fileStat: fileStat{size: st.Size()}, local: b.file}, here: st.ModTime()}
		}
	}
}

// pullCommits brings the bundles that are missing.
func (m *Machine) pullCommits(ctx context.Context, done *pullData) error {
	if m.d.PullDir == "" {
		return nil
	}
	for _, t := range m.lackCommits() {
		m.active(CheckGit, phrase.Say("git.pulling", remote.Short(t.dir, 120)))
		b, err := m.bringBundle(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done.note(t.dir, err)
		if err == nil {
			m.bundles = append(m.bundles, b)
			m.v.PulledTo = m.d.PullDir
		}
	}
	return nil
}

func (m *Machine) bringBundle(ctx context.Context, t gitTree) (bundle, error) {
	rel := filepath.FromSlash(strings.TrimPrefix(t.dir, "/"))
	if strings.ContainsAny(t.dir, "\r\n") || !filepath.IsLocal(rel) {
		return bundle{}, errors.New("a git tree of this name cannot be brought here: push it there")
	}
	out := bundle{tree: t.dir, file: filepath.Join(m.d.PullDir, rel) + ".unpushed-" + stamp(m.d.Clock.Now()) + ".bundle"}
	if err := os.MkdirAll(filepath.Dir(out.file), 0o700); err != nil {
		return out, err
	}
	f, err := os.CreateTemp(filepath.Dir(out.file), ".rentop-*")
	if err != nil {
		return out, err
	}
	defer os.Remove(f.Name())
	h := sha256.New()
	var said tailWriter
	in := strings.NewReader(t.dir + "\n" + strings.Join(t.tips, "\n") + "\n")
	err = m.runner.Run(ctx, remote.Cmd{Script: bundleScript, Stdin: in, Stdout: io.MultiWriter(f, h), Stderr: &said})
	if err == nil {
		out.sum = hex.EncodeToString(h.Sum(nil))
		if sum := bundleSum.FindSubmatch(said.tail); sum == nil || string(sum[1]) != out.sum {
			err = errors.New("what arrived is not what was sent")
		} else if _, err = f.Seek(0, io.SeekStart); err == nil {
			out.tips, err = tipsOf(f)
		}
	} else {
		err = fmt.Errorf("git bundle there: %w%s", err, said.say())
	}
	for _, tip := range t.tips {
		if err == nil && !slices.Contains(out.tips, tip) {
			err = fmt.Errorf("the bundle lacks the commit %.12s", tip)
		}
	}
	if err != nil {
		_ = f.Close()
		return out, err
	}
	return out, commit(f, out.file, nil)
}

// tipsOf reads the head of a bundle: what it holds by name. Format: gitformat-bundle(5).
func tipsOf(r io.Reader) ([]string, error) {
	lines := bufio.NewReaderSize(io.LimitReader(r, 1<<20), 8<<10)
	head, err := lines.ReadString('\n')
	if err != nil || head != "# v2 git bundle\n" && head != "# v3 git bundle\n" {
		return nil, errors.New("it is no git bundle")
	}
	return readTips(lines)
}

func readTips(lines *bufio.Reader) (tips []string, err error) {
	for {
		text, err := lines.ReadSlice('\n')
		line := strings.TrimSuffix(string(text), "\n")
		id, _, named := strings.Cut(line, " ")
		switch {
		case err != nil:
			return nil, errors.New("the git bundle is cut short")
		case line == "":
			return tips, nil
		case named && line[0] != '-' && line[0] != '@':
			tips = append(tips, id)
		}
	}
}
