package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"rentop/remote/agent"
	"rentop/remote/agent/agenttest"
	"rentop/remote/sshtest"
	"rentop/session/config"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

const fakePath = "PATH=$HOME/.fake:$PATH\n"

// fakePip is a python3 that is nothing but a pip, quick and without a network. What it
// has is in ~/.fake/has.
const fakePip = `#!/bin/sh
h=$HOME/.fake/has
case "$*" in
*"pip --version") ;;
*"pip freeze"*) cat "$h" 2>/dev/null ;;
*"pip install"*-r*) for f; do :; done; grep -q broken "$f" && { echo "no matching distribution"; exit 1; }; cat "$f" >>"$h" ;;
-V) echo Python 3.99 ;;
*) exit 1 ;;
esac
`

// instanceOf starts a server whose login has fakePip.
func instanceOf(t *testing.T, has string) *sshtest.Server {
	t.Helper()
	srv := sshtest.Start(t, sshtest.Options{Files: map[string]string{".bashrc": fakePath, ".bash_profile": fakePath}})
	put(t, srv.Home, ".fake/has", has)
	if err := os.Chmod(put(t, srv.Home, ".fake/python3", fakePip), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(srv.Home, ".fake/has"), 0o666); err != nil {
		t.Fatal(err)
	}
	return srv
}

// two is a fleet with the instances a and b, each a real sshd with a home of its own.
func two(t *testing.T, dir string, more ...func(*config.Instance)) (f *Fleet, a, b *sshtest.Server) {
	t.Helper()
	a, b = instanceOf(t, "numpy==1.26.4\nbroken==1\n"), instanceOf(t, "numpy==1.0\n")
	f = reopen(t, dir, a)
	for name, srv := range map[string]*sshtest.Server{"a": a, "b": b} {
		in := config.Instance{Name: name, SSH: sshLine(srv, srv.Addr), LookIn: []string{"~"}}
		for _, m := range more {
			m(&in)
		}
		f.opt.AcceptHostKey = ssh.FingerprintSHA256(srv.HostKey())
		if err := f.Add(in); err != nil {
			t.Fatal(err)
		}
		if err := session(t, f, name).Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return f, a, b
}

// reopen is rentop started once more over the same folders.
func reopen(t *testing.T, dir string, srv *sshtest.Server) *Fleet {
	t.Helper()
	f, err := Open(t.Context(), Options{
		Dirs: Dirs{Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}, Secrets: noKeyring{},
		AcceptHostKey: ssh.FingerprintSHA256(srv.HostKey()), helper: agent.Options{Binaries: agenttest.Binaries(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func put(t *testing.T, home, rel, text string) string {
	t.Helper()
	full := filepath.Join(home, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	for d := filepath.Dir(full); d != home; d = filepath.Dir(d) { // the login there is another user
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return full
}

func reads(t *testing.T, home, rel string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(rel)))
	if err != nil {
		return "?"
	}
	return string(b)
}

func takeOf(t *testing.T, f *Fleet, name string, paths ...string) Snapshot {
	t.Helper()
	snap, err := session(t, f, name).TakeSnapshot(t.Context(), SnapshotSpec{Kind: release.PortableSnapshot, Paths: paths}, func(phrase.Text) {})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestRestore: what a snapshot of one instance holds is on another, in its own home;
// nothing that differs there is lost.
func TestRestore(t *testing.T) {
	t.Parallel()
	f, a, b := two(t, t.TempDir())
	put(t, a.Home, "p/main.py", "code")
	put(t, a.Home, "p/odd \n'name", "odd")
	put(t, a.Home, "p/sub/deep/x.txt", "x")
	put(t, a.Home, "p/was/file.txt", "f")
	put(t, a.Home, ".rentop/jobs/old/log", "log")
	for link, to := range map[string]string{"p/in": filepath.Join(a.Home, "p/main.py"), "p/rel": "main.py"} {
		if err := os.Symlink(to, filepath.Join(a.Home, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(a.Home, "p/main.py"), filepath.Join(a.Home, "p/twice.py")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(a.Home, "p/main.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	snap := takeOf(t, f, "a", "~/p", "~/.rentop/jobs")
	s := session(t, f, "b")
	put(t, b.Home, "p/sub/deep/x.txt", "another x")
	if err := os.Symlink("/nowhere", filepath.Join(b.Home, "p/was")); err != nil {
		t.Fatal(err)
	}

	var taken *OccupiedError
	_, err := s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil)
	if !errors.As(err, &taken) || len(taken.Differ) != 2 {
		t.Fatalf("what differs is refused: %v", err)
	}
	if reads(t, b.Home, "p/main.py") != "?" {
		t.Error("a refused restore brought something")
	}

	got, err := s.Restore(t.Context(), RestoreSpec{Snapshot: "a", Skip: true}, nil, nil)
	if err != nil || got.Files != 3 || got.Proven != 3 || got.Plan.LeftOut == 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if reads(t, b.Home, "p/sub/deep/x.txt") != "another x" || reads(t, b.Home, ".rentop/jobs/old/log") != "?" {
		t.Error("what differs, or is rentop's own, was touched")
	}

	got, err = s.Restore(t.Context(), RestoreSpec{Snapshot: snap.Portable.File, Overwrite: true}, nil, nil)
	if err != nil || got.Files != 2 || got.Proven != 5 || len(got.Trash) != 1 {
		t.Fatalf("%v: %+v", err, got)
	}
	for rel, want := range map[string]string{"p/main.py": "code", "p/twice.py": "code", "p/odd \n'name": "odd", "p/sub/deep/x.txt": "x", "p/was/file.txt": "f", "p/in": "code", "p/rel": "code"} {
		if have := reads(t, b.Home, rel); have != want {
			t.Errorf("%q is %q", rel, have)
		}
	}
	if to, _ := os.Readlink(filepath.Join(b.Home, "p/in")); to != filepath.Join(b.Home, "p/main.py") {
		t.Errorf("a link into the home points to %q", to)
	}
	if st, err := os.Stat(filepath.Join(b.Home, "p/main.py")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", st, err)
	}
	trash := strings.TrimPrefix(got.Trash[0], b.Home)
	if reads(t, b.Home, trash+"/p/sub/deep/x.txt") != "another x" {
		t.Errorf("the older one is not in %s", got.Trash[0])
	}

	got, err = s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil)
	if err != nil || got.Files != 0 || got.Proven != 5 {
		t.Errorf("once more: %v %+v", err, got)
	}
	if left, _ := filepath.Glob(filepath.Join(f.opt.Dirs.State, "restoring", "*")); len(left) > 0 {
		t.Errorf("left behind here: %q", left)
	}
}

// TestRestoreGoesOn: after an end in the midst a later run brings only what is missing,
// and a snapshot that is not as it was made brings nothing.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	f, a, b := two(t, t.TempDir())
	big := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16*8)
	for i := range big {
		big[i] ^= byte(i * 2654435761 >> 13)
	}
	for _, n := range []string{"1", "2", "3"} {
		put(t, a.Home, "d/big"+n, n+string(big))
	}
	snap := takeOf(t, f, "a", "d")
	s := session(t, f, "b")
	ctx, stop := context.WithCancel(t.Context())
	_, err := s.Restore(ctx, RestoreSpec{Snapshot: snap.ID}, nil, func(p sync.Progress) {
		if p.Stage == "send" && p.Bytes > p.BytesAll/2 {
			stop()
		}
	})
	stop()
	if err == nil {
		t.Fatal("it was not ended in the midst")
	}
	whole := 0
	for _, n := range []string{"1", "2", "3"} {
		switch have := reads(t, b.Home, "d/big"+n); have {
		case n + string(big):
			whole++
		case "?":
		default:
			t.Errorf("big%s has its name and not its content", n)
		}
	}
	got, err := s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil)
	if err != nil || got.Plan.Equal != whole || got.Proven != 3 {
		t.Errorf("%d were whole; %v %+v", whole, err, got)
	}

	if err := os.WriteFile(snap.Portable.File+".sha256", []byte(strings.Repeat("0", 64)+"  x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil); err == nil || !strings.Contains(err.Error(), "not as it was made") {
		t.Errorf("a manifest of another: %v", err)
	}
	if _, err := s.Restore(t.Context(), RestoreSpec{Snapshot: "nothing"}, nil, nil); !errors.Is(err, errNoSnapshot) {
		t.Error(err)
	}
}

// TestRestoreEnvironment: what is missing is told as commands; those of pip are run as
// jobs, and what became of them is told as it is.
func TestRestoreEnvironment(t *testing.T) {
	t.Parallel()
	f, a, b := two(t, t.TempDir())
	put(t, a.Home, "x", "x")
	snap := takeOf(t, f, "a", "x")
	s := session(t, f, "b")
	got, err := s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil)
	if err != nil || got.EnvErr != nil {
		t.Fatal(err, got.EnvErr)
	}
	want := "python3 -m pip install -r " + b.Home + "/.rentop/environment/" + snap.ID + "/pip-missing.txt"
	if len(got.Env.Steps) != 1 || got.Env.Steps[0].Command != want {
		t.Fatalf("%+v", got.Env.Steps)
	}
	got, err = s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID, Install: true}, nil, nil)
	if err != nil || got.Installed.Failed() != 1 || !strings.Contains(got.Installed.Steps[0].Job.LastLine, "no matching distribution") || got.Env.Equal() {
		t.Fatalf("a failed install: %v %+v", err, got.Installed)
	}
	put(t, b.Home, ".fake/has", "broken==1\n")
	got, err = s.Restore(t.Context(), RestoreSpec{Snapshot: snap.ID, Install: true}, nil, nil)
	if err != nil || got.Installed.Failed() != 0 || !got.Env.Equal() {
		t.Errorf("%v %+v %+v", err, got.Installed, got.Env)
	}
}

func TestRootOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"/root/p/x": {"~", "p/x"}, "/root": {"~", ""}, "/rootless/x": {"/rootless", "x"}, "/run.sh": {"/", "run.sh"}, "/data/a/b": {"/data", "a/b"},
	} {
		root, rel := rootOf(in, "/root")
		if !slices.Equal([]string{root, rel}, want[:]) {
			t.Errorf("%s: %s %s", in, root, rel)
		}
	}
	if root, rel := rootOf("/x/y", ""); root != "/x" || rel != "y" {
		t.Error(root, rel)
	}
}
