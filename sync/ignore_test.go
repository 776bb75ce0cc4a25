package sync

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/sync/tree"
)

func TestIgnoreRules(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		dir, want   bool
	}{
		{"*.o", "a/b.o", false, true},
		{"/a.o", "b/a.o", false, false},
		{"out/", "out", false, false},
		{"out/", "out", true, true},
		{"out/", "out/model.pt", false, true},
		{"out/\n!out/keep", "out/keep", false, true}, // no re-include below an excluded folder
		{"out/*\n!out/keep", "out/keep", false, false},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"**/b", "x/b", false, true},
		{"a/**", "a", true, false},
		{"a/**", "a/x", false, true},
		{"trail  ", "trail", false, true},
		{"trail\\ ", "trail ", false, true},
		{"\\#x", "#x", false, true},
		{"\\!x", "!x", false, true},
		{"[a-c].txt", "b.txt", false, true},
		{"[!a-c].txt", "b.txt", false, false},
		{"x\\", "x", false, false},
		{"foo*bar", "foo/bar", false, false},
		{"a*a*a*a*a*a*a*b", strings.Repeat("a", 60), false, false},
	} {
		g := (*tree.Ignore)(nil).With(tree.GitIgnoreFile, "", []byte(c.rules))
		if got := g.Excluded(c.path, c.dir); got != c.want {
			t.Errorf("%q on %q (dir %v): %v, want %v", c.rules, c.path, c.dir, got, c.want)
		}
	}
}

// TestIgnoreAsGit compares with git itself on generated trees.
func TestIgnoreAsGit(t *testing.T) {
	needtest.Program(t, "git")
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for seed := -1; seed < rounds; seed++ {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		dir := t.TempDir()
		git := func(stdin []byte, args ...string) []byte {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Stdin = bytes.NewReader(stdin)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			out, err := cmd.Output()
			if x, ok := err.(*exec.ExitError); ok && x.ExitCode() != 1 {
				t.Fatalf("git %v: %v %s", args, err, x.Stderr)
			}
			return out
		}
		git(nil, "init", "-q")
		if seed < 0 {
			nestedRules(t, dir)
		} else {
			randomTree(t, rnd, dir)
		}
		var all []string
		types := map[string]bool{}
		if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(dir, p)
			if rel == "." {
				return err
			}
			if rel == ".git" {
				return fs.SkipDir
			}
			all = append(all, filepath.ToSlash(rel))
			types[filepath.ToSlash(rel)] = d.IsDir()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(git([]byte(strings.Join(all, "\x00")+"\x00"), "check-ignore", "-z", "--no-index", "--stdin")), "\x00"), "\x00")
		// as a pull from dir reads it
		j := &job{t: Local{}, s: Spec{Direction: Pull, GitIgnore: true}, sides: sides{remote: dir}, tr: newTracker(Local{}, time.Now, nil)}
		pulled, flat, err := j.ruledHere(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept := map[string]bool{}
		for pulled.peek() != nil {
			kept[pulled.take().Path] = true
		}
		rules, walked := &tree.Rules{}, map[string]bool{}
		if _, err := tree.Walk(t.Context(), dir, tree.Options{GitIgnore: true, Rules: rules}, func(e Entry) error { walked[e.Path] = true; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if ignored := slices.Contains(want, p); ignored == walked[p] || ignored != rules.Excluded(p, types[p]) {
				t.Errorf("seed %d: %q (dir %v): git ignores: %v, the walk keeps: %v, its rules leave out: %v\n%s", seed, p, types[p], ignored, walked[p], rules.Excluded(p, types[p]), rulesOf(dir, p))
			}
			if ignored := slices.Contains(want, p); ignored == kept[p] {
				t.Errorf("seed %d: %q (dir %v): git ignores: %v, we keep: %v\n%s", seed, p, types[p], ignored, kept[p], rulesOf(dir, p))
			}
			if g, ig := flat.Excluded(p, types[p]), slices.Contains(want, p); g != ig {
				t.Errorf("seed %d: Excluded(%q) = %v, git %v", seed, p, g, ig)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// nestedRules is a tree in which files deeper down take back, or narrow, what those
// above say.
func nestedRules(t *testing.T, dir string) {
	for name, text := range map[string]string{
		".gitignore":           "*.log\nbuild/\n/only-here\ndocs/*.txt\n!docs/keep.txt\na/**/deep\nlib/*\n!lib/own/\n",
		"src/.gitignore":       "!debug.log\n!build/\n/anchored\nsub/skip\n",
		"src/sub/.gitignore":   "!skip\ndebug.log\n*\n!*.py\n!.gitignore\n",
		"src/build/.gitignore": "tmp*\n",
		"build/.gitignore":     "!*\n", // below what is left out nothing comes back
		"lib/own/.gitignore":   "/*.so\n!lib.so\n",
		"x.log":                "", "src/x.log": "", "src/debug.log": "", "src/sub/debug.log": "", "src/deep/debug.log": "",
		"build/a": "", "src/build/a": "", "src/build/tmp1": "", "only-here": "", "src/only-here": "", "src/anchored": "", "src/deep/anchored": "",
		"docs/a.txt": "", "docs/keep.txt": "", "docs/more/b.txt": "", "a/deep/1": "", "a/b/c/deep": "", "a/deeper": "",
		"src/sub/skip": "", "src/sub/a.py": "", "src/sub/d/b.py": "", "lib/other/x": "", "lib/own/x": "", "lib/own/a.so": "", "lib/own/lib.so": "", "lib/own/d/a.so": "",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func rulesOf(dir, p string) string {
	var b strings.Builder
	for d := path.Dir(p); ; d = path.Dir(d) {
		if data, err := os.ReadFile(filepath.Join(dir, d, tree.GitIgnoreFile)); err == nil {
			fmt.Fprintf(&b, "%s: %q\n", d, data)
		}
		if d == "." {
			return b.String()
		}
	}
}

func randomTree(t *testing.T, rnd *rand.Rand, dir string) {
	t.Helper()
	names := []string{"a", "b", "ab", "a.o", "b.o", "foo", "bar", "foo bar", "x ", "#c", "!d", "é", "[z]", "a\\b", "-", "A"}
	pats := []string{"a", "b", "*", "*.o", "foo", "/foo", "foo/", "a/b", "a/", "/a/", "**/b", "a/**", "a/**/b", "**", "/*", "!a", "!*.o", "!foo/", "!/a/b", "x\\ ", "x ",
		"\\#c", "\\!d", "#c", "[ab]", "[!a]", "[a-b]*", "?", "a?", "*/b", "**/foo/**", "a**b", "f*o", "[[:alpha:]]", "[[:upper:]]", "\\a", "a\\\\b", "\\[z\\]", "[\\[]z]", "", " ", "/", "!",
		"foo bar", "é", "[]z]", "*a*", "a/*/b", "!a/**", "[-a]", "a\\", "[a", "/**/b", "**/", "foo/*\t", "*/", "!*/", "**/a/", "[^b]", "[[:bogus:]]", "[[:al", "[a-", "***/b", "a/***", "\\*", "./a", "a//b", "a/./b", "\\/a", "**\\/b", "[a/]b", "a[/]b", "?[!x]b"}
	var fill func(d string, depth int)
	fill = func(d string, depth int) {
		for _, n := range names {
			if rnd.IntN(3) > 0 {
				continue
			}
			p := filepath.Join(d, n)
			if depth < 3 && rnd.IntN(2) == 0 {
				if os.Mkdir(p, 0o755) == nil {
					fill(p, depth+1)
				}
			} else if err := os.WriteFile(p, []byte(n), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if depth == 0 || rnd.IntN(3) == 0 {
			var b strings.Builder
			for range 1 + rnd.IntN(5) {
				b.WriteString(pats[rnd.IntN(len(pats))])
				b.WriteString([]string{"\n", "\n", "\n", "\r\n"}[rnd.IntN(4)])
			}
			if err := os.WriteFile(filepath.Join(d, tree.GitIgnoreFile), []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(dir, 0)
}

func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*.o\n!a/**/b\n[a-"), "a/b.o", true)
	f.Fuzz(func(t *testing.T, rules []byte, p string, dir bool) {
		(*tree.Ignore)(nil).With(tree.GitIgnoreFile, "", rules).Excluded(p, dir)
	})
}
