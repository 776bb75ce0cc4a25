package release

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/remote/needtest"
)

// tool puts a made-up program into a folder of the PATH.
func tool(t *testing.T, dir, name, script string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	bin := t.TempDir()
	tool(t, bin, "nvidia-smi", `case $1 in --query*) echo "0, NVIDIA A100 80GB PCIe, 550.54.15, 81920 MiB";; *) echo "| NVIDIA-SMI 550.54.15  Driver Version: 550.54.15  CUDA Version: 12.4 |";; esac`)
	tool(t, bin, "conda", `case "$1 $2" in "env list") printf '# conda environments:\n#\nbase  *  /opt/conda\nx y      /opt/conda/envs/x y\n';; "list -p") echo "@EXPLICIT $3";; "env export") echo "name: $4";; esac`)
	tool(t, bin, "python3", `case "$*" in "-m pip --version") echo pip 24;; "-m pip freeze --all") echo "torch==2.4.0"; echo "mine @ git+https://tok3n:x@git.example/mine.git@abc";; -V) echo Python 3.11.2;; esac`)
	tool(t, bin, "apt-mark", "echo tmux; echo htop")
	w.sh.path = bin + ":" + os.Getenv("PATH")
	t.Setenv("SECRET_TOKEN", "hunter2-value")
	c := line(w.inspect(), CheckEnv)
	if c.State != Passed {
		t.Fatalf("%+v", c)
	}
	for name, want := range map[string]string{
		"system.txt":                         "gpu: 0, NVIDIA A100 80GB PCIe, 550.54.15, 81920 MiB\ndriver supports cuda: 12.4",
		"pip-freeze.txt":                     "mine @ git+https://***@git.example/mine.git@abc",
		"apt-manual.txt":                     "tmux\nhtop",
		"conda-env-_opt_conda.yml":           "name: /opt/conda",
		"conda-list-_opt_conda_envs_x_y.txt": "@EXPLICIT /opt/conda/envs/x y",
		"env-names.txt":                      "SECRET_TOKEN\n",
	} {
		b, err := os.ReadFile(filepath.Join(w.deps.EnvDir, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
		if strings.Contains(string(b), "hunter2") || strings.Contains(string(b), "tok3n") {
			t.Errorf("%s holds a secret", name)
		}
	}
}

func TestEnvironmentToolFails(t *testing.T) {
	w := newWorld(t)
	bin := t.TempDir()
	tool(t, bin, "python3", `case "$*" in "-m pip --version") echo pip 24;; *) exit 1;; esac`)
	w.sh.path = bin + ":" + os.Getenv("PATH")
	if c := line(w.inspect(), CheckEnv); c.State != Failed || !strings.Contains(c.Summary.String(), "could not be captured") {
		t.Errorf("%+v", c)
	}
}

type answer string

func (a answer) Run(_ context.Context, c remote.Cmd) error {
	_, err := c.Stdout.Write([]byte(a))
	return err
}

func TestHostileEnvironment(t *testing.T) {
	for _, a := range []string{
		"../../evil\x00x\x00end\x00\x00", "/etc/passwd\x00x\x00end\x00\x00", ".hidden\x00x\x00end\x00\x00", "a/b\x00x\x00end\x00\x00", "system.txt\x00cut",
		"", "end", strings.Repeat("n", 300) + "\x00x\x00end\x00\x00",
	} {
		if files, _, err := readEnv(t.Context(), answer(a)); err == nil {
			t.Errorf("%q is believed: %v", a, files)
		}
	}
}

// Everything again where busybox is all there is.
func TestBusybox(t *testing.T) {
	box := needtest.Program(t, "busybox")
	bin := t.TempDir()
	list, err := exec.Command(box, "--list").Output()
	must(t, err)
	for _, name := range strings.Fields(string(list)) {
		must(t, os.Symlink(box, filepath.Join(bin, name)))
	}
	w := newWorld(t)
	w.sh.sh, w.sh.path = []string{box, "sh"}, bin
	w.there("data/labels.csv", "labels")
	w.there("miniconda3/conda-meta/h.json", "x")
	w.there("miniconda3/lib/x", "x")
	w.there("hf/hub/models--a/b", "x")
	for _, n := range hostileNames {
		w.there("odd/"+n, "x"+n)
		w.local("odd/"+n, "x"+n)
	}
	w.deps.Artifacts = append(w.deps.Artifacts, Artifact{Path: "~/odd", To: "odd"})
	v := w.inspect()
	if c := line(v, CheckArtifacts); c.State != Passed {
		t.Errorf("%s", text(v))
	}
	if got := lostNames(v); len(got) != 1 || !got[filepath.Join(w.home, "data/labels.csv")] {
		t.Errorf("lost: %v\n%s", got, text(v))
	}
	v, p, err := w.release(Destroy, takePortable("~/data"), typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 2 || len(p.seen[1].Lost) != 0 {
		t.Fatalf("%v\n%s", err, text(p.seen[len(p.seen)-1]))
	}
	if list, _ := filepath.Glob(filepath.Join(w.deps.SnapshotDir, "*.tar.gz")); len(list) != 1 {
		t.Errorf("archives: %v", list)
	}
}
