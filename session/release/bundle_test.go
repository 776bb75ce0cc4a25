package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote/needtest"
)

// TestPullCommits: a pull brings what is at no remote, so that the release passes; a
// clone of the remote takes it, branches and each stash, and the tree there is as it was.
func TestPullCommits(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	w := newWorld(t)
	w.fastEnv()
	d := cloned(t, w, "it's a tree")
	put(t, d, "a.py", "first stash")
	git(t, d, "stash", "-q")
	put(t, d, "a.py", "second stash")
	git(t, d, "stash", "-q")
	git(t, d, "checkout", "-q", "-b", "side")
	put(t, d, "side.py", "on a branch")
	git(t, d, "add", ".")
	git(t, d, "commit", "-q", "-m", "side")
	git(t, d, "checkout", "-q", "--detach", "main")
	put(t, d, "c.py", "on no branch")
	git(t, d, "add", ".")
	git(t, d, "commit", "-q", "-m", "detached")
	refs := func(dir string) string {
		out, err := exec.Command("git", "-C", dir, "for-each-ref").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := refs(d)
	v, p, err := w.release(Destroy, func(v View) Decision {
		if v.Commits != 1 {
			t.Errorf("%d trees to bring", v.Commits)
		}
		return Decision{Kind: DecidePull}
	}, typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 2 || len(p.seen[1].Fails()) != 0 {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
	if refs(d) != before {
		t.Errorf("the tree got names:\n%s", refs(d))
	}
	list, err := filepath.Glob(filepath.Join(w.deps.PullDir, d) + ".unpushed-*.bundle")
	if err != nil || len(list) != 1 {
		t.Fatalf("bundles %q %v", list, err)
	}
	clone := filepath.Join(w.here, "clone")
	git(t, w.here, "clone", "-q", filepath.Join(w.here, "bare", "it's a tree"), clone)
	git(t, clone, "bundle", "verify", list[0])
	git(t, clone, "fetch", "-q", list[0], "refs/heads/*:refs/heads/got/*")
	all, err := exec.Command("git", "-C", clone, "log", "-p", "--all", "-m", "--format=%s").Output()
	for _, want := range []string{"+first stash", "+second stash", "+on a branch", "+on no branch"} {
		if err != nil || !strings.Contains(string(all), want) {
			t.Errorf("%q is not in the bundle: %v\n%s", want, err, all)
		}
	}
}

// TestBundleChanged: a bundle that is not as it came saves nothing, and neither does one
// that lacks a commit that came later.
func TestBundleChanged(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	for name, change := range map[string]func(t *testing.T, d, file string){
		"altered": func(t *testing.T, _, file string) { must(t, os.WriteFile(file, []byte("# v2 git bundle\n"), 0o600)) },
		"removed": func(t *testing.T, _, file string) { must(t, os.Remove(file)) },
		"a commit more": func(t *testing.T, d, _ string) {
			git(t, d, "commit", "-q", "--allow-empty", "-m", "three")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fastEnv()
			d := cloned(t, w, "proj")
			git(t, d, "commit", "-q", "--allow-empty", "-m", "two")
			v, p, err := w.release(Destroy, func(View) Decision { return Decision{Kind: DecidePull} }, func(View) Decision {
				list, err := filepath.Glob(filepath.Join(w.deps.PullDir, d) + ".unpushed-*.bundle")
				if err != nil || len(list) != 1 {
					t.Fatalf("bundles %q %v", list, err)
				}
				change(t, d, list[0])
				return Decision{Kind: DecideAgain}
			}, func(View) Decision { return Decision{Kind: DecideCancel} })
			if err != nil || len(p.seen) != 3 || line(p.seen[1], CheckGit).State != Passed || line(p.seen[2], CheckGit).State != Failed {
				t.Errorf("%v, %d pictures\n%s", err, len(p.seen), text(v))
			}
		})
	}
}

func FuzzTips(f *testing.F) {
	f.Add("# v2 git bundle\n-" + strings.Repeat("a", 40) + " base\n" + strings.Repeat("b", 40) + " refs/heads/main\n\nPACK")
	f.Add("# v3 git bundle\n@object-format=sha256\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		tips, err := tipsOf(strings.NewReader(text))
		if err != nil && tips != nil {
			t.Error(tips, err)
		}
	})
}
