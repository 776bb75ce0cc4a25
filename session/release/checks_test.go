package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/tmux"
)

func TestNothingToLose(t *testing.T) {
	w := newWorld(t)
	v := w.inspect()
	if f := v.Fails(); len(f) != 0 {
		t.Fatalf("nothing would be lost, yet:\n%s", text(v))
	}
	if c := line(v, CheckArtifacts); !strings.Contains(c.Summary.String(), "2 files") {
		t.Errorf("artifacts: %q", c.Summary.String())
	}
	if b, err := os.ReadFile(filepath.Join(w.deps.EnvDir, "system.txt")); err != nil || !strings.Contains(string(b), "kernel: ") {
		t.Errorf("environment: %v %q", err, b)
	}
	names, _ := os.ReadFile(filepath.Join(w.deps.EnvDir, "env-names.txt"))
	if !strings.Contains(string(names), "HOME\n") || strings.Contains(string(names), w.home) {
		t.Errorf("environment names: %q", names)
	}
}

func TestJobs(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.jobs = []tmux.Job{{ID: "1", Name: "train\x1b[31m", State: tmux.Running}, {ID: "2", State: tmux.Done}}
	c := line(w.inspect(), CheckJobs)
	if c.State != Failed || len(c.Evidence) != 1 || strings.Contains(c.Evidence[0].What, "\x1b") {
		t.Errorf("%+v", c)
	}
	w.deps.Jobs = func(context.Context) ([]tmux.Job, error) { return nil, errors.New("no answer") }
	if c := line(w.inspect(), CheckJobs); c.State != Unknown || !strings.Contains(c.Summary.String(), "could not be checked") {
		t.Errorf("%+v", c)
	}
}

func TestArtifacts(t *testing.T) {
	for _, c := range []struct {
		name  string
		art   Artifact
		setup func(*world)
		want  CheckState
		says  string // in a line of evidence or the summary
	}{
		{"equal", Artifact{Path: "~/out", To: "out"}, nil, Passed, "2 files"},
		{"pattern", Artifact{Path: "~/out/*.pt", To: "out"}, nil, Passed, "1 file,"},
		{"deep pattern", Artifact{Path: "~/out/**/*.txt", To: "out"}, nil, Passed, "1 file,"},
		{"relative path", Artifact{Path: "out", To: "out"}, nil, Passed, "2 files"},
		{"one file", Artifact{Path: "~/out/model.pt", To: "out/model.pt"}, nil, Passed, "1 file,"},
		{"one file into a folder", Artifact{Path: "~/out/model.pt", To: "out"}, nil, Passed, "1 file,"},
		{"one file, folder missing", Artifact{Path: "~/out/model.pt", To: "new/"}, nil, Failed, "missing at"},
		{"missing there", Artifact{Path: "~/nothing", To: "out"}, nil, Failed, "nothing matches"},
		{"pattern without match", Artifact{Path: "~/out/*.ckpt", To: "out"}, nil, Failed, "nothing matches"},
		{"empty folder", Artifact{Path: "~/empty", To: "out"}, func(w *world) { must(t, os.MkdirAll(filepath.Join(w.home, "empty"), 0o755)) }, Failed, "nothing matches"},
		{"missing here", Artifact{Path: "~/out", To: "elsewhere"}, nil, Failed, "missing at"},
		{"same size, other content", Artifact{Path: "~/out", To: "out"}, func(w *world) { w.local("out/model.pt", "WEIGHTS") }, Failed, "differs in content"},
		{"shorter here", Artifact{Path: "~/out", To: "out"}, func(w *world) { w.local("out/model.pt", "weight") }, Failed, "differs: 6 B"},
		{"a folder in its place", Artifact{Path: "~/out", To: "out"}, func(w *world) {
			must(t, os.Remove(filepath.Join(w.here, "out/model.pt")))
			must(t, os.MkdirAll(filepath.Join(w.here, "out/model.pt"), 0o755))
		}, Failed, "a folder stands"},
		{"s3", Artifact{Path: "~/out", To: "s3://bucket/run"}, nil, Failed, "cannot be reached from here"},
		{"another instance", Artifact{Path: "~/out", To: "b200:~/in"}, nil, Failed, "cannot be reached from here"},
		{"no destination", Artifact{Path: "~/out", To: ""}, nil, Failed, "no destination"},
		{"link to a file", Artifact{Path: "~/out", To: "out"}, func(w *world) {
			w.there("elsewhere/best.pt", "best")
			must(t, os.Symlink(filepath.Join(w.home, "elsewhere/best.pt"), filepath.Join(w.home, "out/best.pt")))
		}, Failed, "missing at"},
		{"link to nothing", Artifact{Path: "~/out", To: "out"}, func(w *world) {
			must(t, os.Symlink("/nowhere/at/all", filepath.Join(w.home, "out/best.pt")))
		}, Passed, "to nothing"},
		{"hostile names", Artifact{Path: "~/odd", To: "odd"}, func(w *world) {
			for _, n := range hostileNames {
				w.there("odd/"+n, "x"+n)
				w.local("odd/"+n, "x"+n)
			}
		}, Passed, fmt.Sprintf("%d files", len(hostileNames))},
		{"hostile names, one differs", Artifact{Path: "~/odd", To: "odd"}, func(w *world) {
			for _, n := range hostileNames {
				w.there("odd/"+n, "x"+n)
				w.local("odd/"+n, "x"+n)
			}
			w.local("odd/"+hostileNames[1], "y"+hostileNames[1])
		}, Failed, "differs in content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			w.deps.Artifacts = []Artifact{c.art}
			if c.setup != nil {
				c.setup(w)
			}
			v := w.inspect()
			got := line(v, CheckArtifacts)
			all := got.Summary.String()
			for _, e := range got.Evidence {
				all += "\n" + e.What + " " + e.Detail.String()
				if strings.ContainsAny(e.What+e.Detail.String(), "\x1b\n\r") {
					t.Errorf("not cleaned: %q", e.What)
				}
			}
			if got.State != c.want || !strings.Contains(all, c.says) {
				t.Errorf("%s, want %s with %q:\n%s", got.State, c.want, c.says, all)
			}
		})
	}
}

var hostileNames = []string{
	"plain", "new\nline", "esc\x1b[2J", "-rf", "$(touch pwned)", "`id`", "a'b\"c", "back\\slash", " lead", "trail ", "tab\there", "cr\rname",
	"\xff\xfe", "*?[x]", "中文", "--help", "a\\nb",
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lostNames(v View) map[string]bool {
	out := map[string]bool{}
	for _, e := range line(v, CheckUnsaved).Evidence {
		if e.Lost {
			out[e.What] = true
		}
	}
	return out
}

func TestUnsaved(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	old := time.Now().Add(-48 * time.Hour)
	lost := []string{
		"data/labels.csv", "project/notes.md", ".rentop/jobs/j1/log", "miniconda3/mine/x.py", "venvy/main.py", "venvy/lib/z.py", "venvy/share/labels.csv", ".cache/huggingface/lerobot/demo/ep1.mp4",
		".bashrc", "out/new.pt",
	}
	kept := []string{
		".ssh/id", ".cache/pip/x", ".cache/huggingface/hub/models--a/blob", "hf/hub/models--b/blob", ".rentop/jobs/j1/exit", "proj/node_modules/a/b.js",
		"miniconda3/conda-meta/h.json", "miniconda3/lib/python3.11/x.py", "miniconda3/bin/python", "miniconda3/envs/e/conda-meta/h", "miniconda3/envs/e/lib/y",
		"venvy/pyvenv.cfg", "venvy/lib/python3.11/z.py", "venvy/share/jupyter/kernel.json", "venvy/bin/activate", "p/__pycache__/x.pyc", "l/site-packages/t/a.py", ".bash_history",
	}
	for _, n := range append(append([]string{}, lost...), kept...) {
		w.there(n, "content of "+n)
	}
	// A file whose mtime was set back (cp -p, tar) is new all the same.
	must(t, os.Chtimes(filepath.Join(w.home, "data/labels.csv"), old, old))
	v := w.inspect()
	got := lostNames(v)
	for _, n := range lost {
		if !got[filepath.Join(w.home, n)] {
			t.Errorf("%s would be lost and is not listed", n)
		}
		delete(got, filepath.Join(w.home, n))
	}
	for n := range got {
		t.Errorf("%s is listed but belongs to the system, a package or a cache, or is saved", n)
	}
	if c := line(v, CheckArtifacts); c.State != Failed {
		t.Errorf("out/new.pt is an artifact that is not here: %+v", c)
	}
	downloads := 0
	for _, e := range line(v, CheckUnsaved).Evidence {
		if strings.Contains(e.Detail.String(), "cache of downloads") {
			downloads++
		}
	}
	if downloads != 3 {
		t.Errorf("caches of downloads named: %d, want 3", downloads)
	}

	w.deps.Since = time.Now().Add(time.Hour)
	if c := line(w.inspect(), CheckUnsaved); c.State != Passed {
		t.Errorf("nothing changed since then: %+v", c)
	}
}

func TestKnownFiles(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("code/train.py", "print(1)")
	w.there("code/edited.py", "print(2)")
	w.there("code/gone-here.py", "print(3)")
	w.local("src/train.py", "print(1)")
	w.local("src/edited.py", "print(9)")
	w.deps.Pushed = func(context.Context) ([]KnownFile, error) {
		var out []KnownFile
		for _, n := range []string{"train.py", "edited.py", "gone-here.py"} {
			// The record's own hash is never believed.
			out = append(out, KnownFile{Remote: "~/code/" + n, Local: filepath.Join(w.here, "src", n), Size: 8, SHA256: sum("print(2)")})
		}
		return out, nil
	}
	// A pulled copy counts only while it is equal.
	w.there("data/pulled.bin", "pulled")
	w.there("data/stale.bin", "newer!")
	put(t, w.deps.PullDir, filepath.Join(w.home, "data/pulled.bin"), "pulled")
	put(t, w.deps.PullDir, filepath.Join(w.home, "data/stale.bin"), "older!")
	got := lostNames(w.inspect())
	for n, want := range map[string]bool{
		"code/train.py": false, "code/edited.py": true, "code/gone-here.py": true, "data/pulled.bin": false, "data/stale.bin": true,
	} {
		if got[filepath.Join(w.home, n)] != want {
			t.Errorf("%s: lost %t, want %t", n, !want, want)
		}
	}
	w.deps.Pushed = func(context.Context) ([]KnownFile, error) { return nil, errors.New("disk error") }
	if c := line(w.inspect(), CheckUnsaved); c.State != Unknown {
		t.Errorf("the record could not be read, yet %+v", c)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@e", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// cloned makes a tree whose commits are at a remote with a network address.
func cloned(t *testing.T, w *world, name string) string {
	t.Helper()
	bare := filepath.Join(w.here, "bare", name)
	must(t, os.MkdirAll(bare, 0o755))
	git(t, bare, "init", "-q", "--bare")
	dir := filepath.Join(w.home, name)
	must(t, os.MkdirAll(dir, 0o755))
	git(t, dir, "init", "-q")
	put(t, dir, "a.py", "a")
	put(t, dir, "b.py", "b")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "one")
	git(t, dir, "remote", "add", "origin", bare)
	git(t, dir, "push", "-q", "-u", "origin", "main")
	git(t, dir, "remote", "set-url", "origin", "https://git.example/"+name)
	return dir
}

func TestGit(t *testing.T) {
	needtest.Program(t, "git")
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, w *world, dir string)
		want  CheckState
		says  string
		lostN int // unsaved files
	}{
		{"pushed", func(*testing.T, *world, string) {}, Passed, "all committed and pushed", 0},
		{"edited", func(t *testing.T, _ *world, d string) { put(t, d, "a.py", "edited") }, Failed, "1 uncommitted: ", 1},
		{"untracked", func(t *testing.T, _ *world, d string) { put(t, d, "new/c.py", "c") }, Failed, "1 uncommitted: ", 1},
		{"ignored file", func(t *testing.T, _ *world, d string) {
			put(t, d, ".git/info/exclude", "*.ckpt\n")
			put(t, d, "x.ckpt", "x")
		}, Passed, "all committed", 1},
		{"unpushed", func(t *testing.T, _ *world, d string) {
			put(t, d, "a.py", "two")
			git(t, d, "commit", "-q", "-a", "-m", "two")
		}, Failed, "1 commit not at any remote", 2},
		{"branch without upstream", func(t *testing.T, _ *world, d string) {
			git(t, d, "checkout", "-q", "-b", "side")
			git(t, d, "commit", "-q", "--allow-empty", "-m", "two")
			git(t, d, "checkout", "-q", "main")
		}, Failed, "1 commit not at any remote", 0},
		{"detached", func(t *testing.T, _ *world, d string) {
			git(t, d, "checkout", "-q", "--detach")
			git(t, d, "commit", "-q", "--allow-empty", "-m", "two")
		}, Failed, "1 commit not", 2},
		{"stash", func(t *testing.T, _ *world, d string) {
			put(t, d, "a.py", "stashed")
			git(t, d, "stash", "-q")
		}, Failed, "1 stashed", 0},
		{"remote on the same machine", func(t *testing.T, w *world, d string) {
			git(t, d, "remote", "set-url", "origin", filepath.Join(w.here, "bare", "proj"))
		}, Failed, "1 commit not at any remote", 2},
		{"no remote", func(t *testing.T, _ *world, d string) { git(t, d, "remote", "remove", "origin") }, Failed, "not at any remote", 2},
		{"assume-unchanged hides an edit", func(t *testing.T, _ *world, d string) {
			git(t, d, "update-index", "--assume-unchanged", "a.py")
			put(t, d, "a.py", "hidden")
		}, Passed, "", 1},
		{"broken", func(t *testing.T, _ *world, d string) {
			must(t, os.WriteFile(filepath.Join(d, ".git/HEAD"), []byte("junk"), 0o644))
		}, Unknown, "could not be read", 2},
		{"unborn with files", func(t *testing.T, w *world, _ string) {
			d := filepath.Join(w.home, "fresh")
			must(t, os.MkdirAll(d, 0o755))
			git(t, d, "init", "-q")
			put(t, d, "idea.py", "x")
		}, Failed, "1 uncommitted: ", 1},
		{"unborn and empty", func(t *testing.T, w *world, _ string) {
			d := filepath.Join(w.home, "fresh")
			must(t, os.MkdirAll(d, 0o755))
			git(t, d, "init", "-q")
		}, Passed, "2 git trees", 0},
		{"the edit is saved here", func(t *testing.T, w *world, d string) {
			p := put(t, d, "a.py", "edited")
			put(t, w.deps.PullDir, p, "edited")
		}, Passed, "", 0},
		{"hostile names", func(t *testing.T, _ *world, d string) {
			for _, n := range hostileNames {
				put(t, d, n, "x")
			}
			git(t, d, "add", "--", ".")
		}, Failed, fmt.Sprintf("%d uncommitted", len(hostileNames)), len(hostileNames)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			c.do(t, w, cloned(t, w, "proj"))
			v := w.inspect()
			got := line(v, CheckGit)
			all := got.Summary.String()
			for _, e := range got.Evidence {
				all += "\n" + e.What + " " + e.Detail.String()
			}
			if got.State != c.want || !strings.Contains(all, c.says) {
				t.Errorf("%s, want %s with %q:\n%s", got.State, c.want, c.says, all)
			}
			if n := len(lostNames(v)); n != c.lostN {
				t.Errorf("%d unsaved files, want %d: %v", n, c.lostN, lostNames(v))
			}
		})
	}
}

func TestGitMissing(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	cloned(t, w, "proj")
	bin := t.TempDir()
	for _, tool := range []string{"sh", "find", "xargs", "mktemp", "rm", "grep", "sha256sum", "dirname", "cat", "head"} {
		p := needtest.Program(t, tool)
		must(t, os.Symlink(p, filepath.Join(bin, tool)))
	}
	w.sh.path = bin
	v := w.inspect()
	if c := line(v, CheckGit); c.State != Unknown || !strings.Contains(c.Summary.String(), "git is not installed") {
		t.Errorf("%+v", c)
	}
	if n := len(lostNames(v)); n != 2 {
		t.Errorf("without git its files count as unsaved: %v", lostNames(v))
	}
}

func TestUnreachable(t *testing.T) {
	for name, cut := range map[string]func(*world){
		"cut":       func(w *world) { w.sh.down = true },
		"no runner": func(w *world) { w.deps.Runner = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cut(w)
			v := w.inspect()
			for _, id := range []CheckID{CheckJobs, CheckArtifacts, CheckUnsaved, CheckGit, CheckEnv} {
				if c := line(v, id); c.State != Unknown || !strings.Contains(c.Summary.String()+c.Evidence0(), "could not be checked") {
					t.Errorf("%s: %+v", id, c)
				}
			}
		})
	}
}

// Evidence0 is the first evidence's detail, for tests.
func (c Check) Evidence0() string {
	if len(c.Evidence) == 0 {
		return ""
	}
	return c.Evidence[0].Detail.String()
}

func TestManyFilesAreFast(t *testing.T) {
	needtest.Time(t, "makes 50,000 files")
	w := newWorld(t)
	w.fastEnv()
	const n = 50_000
	for d := range 50 {
		dir := filepath.Join(w.home, "data", fmt.Sprint(d))
		must(t, os.MkdirAll(dir, 0o755))
		for i := range n / 50 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o644))
		}
	}
	start := time.Now()
	v := w.inspect()
	took := time.Since(start)
	c := line(v, CheckUnsaved)
	if !strings.Contains(c.Summary.String(), "50000 files") || len(c.Evidence) > maxEvidence+1 {
		t.Errorf("%s, %d lines", c.Summary.String(), len(c.Evidence))
	}
	t.Logf("50,000 files listed in %v", took)
	if took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
