//go:build linux

package agent

// Instances that make it hard, and ends that nobody wished for.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/agent/serve"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
)

// userID is the number of the server's user.
func userID(t *testing.T, srv *sshtest.Server) string {
	t.Helper()
	out, err := exec.Command("id", "-u", srv.User).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestWhere: the helper goes to the first folder that holds and runs it.
func TestWhere(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     sshtest.Options
		setup func(t *testing.T, srv *sshtest.Server)
		want  string // %s is the user's number
		why   string // of the home's cache
	}{
		{name: "read-only home", setup: func(t *testing.T, srv *sshtest.Server) {
			os.Chown(srv.Home, 0, 0)
			os.Chmod(srv.Home, 0o755)
		}, want: "/var/tmp/rentop-%s"},
		{name: "full disk", o: sshtest.Options{SmallHome: "1m"}, want: "/var/tmp/rentop-%s"},
		{name: "noexec home", o: sshtest.Options{SmallHome: "64m,noexec"}, want: "/var/tmp/rentop-%s"},
		{name: "an open cache folder is closed", setup: func(t *testing.T, srv *sshtest.Server) {
			run(t, "install", "-d", "-o", srv.User, "-m", "755", srv.Home+"/.cache", srv.Home+"/.cache/rentop")
		}, want: "HOME/.cache/rentop"},
		{name: "a link in place of the folder", setup: func(t *testing.T, srv *sshtest.Server) {
			run(t, "install", "-d", "-o", srv.User, "-m", "700", srv.Home+"/.cache", srv.Home+"/real")
			run(t, "ln", "-s", srv.Home+"/real", srv.Home+"/.cache/rentop")
			run(t, "chown", "-h", srv.User, srv.Home+"/.cache/rentop")
		}, want: "/var/tmp/rentop-%s"},
		{name: "someone else's folder and program", o: sshtest.Options{SmallHome: "1m"}, setup: func(t *testing.T, srv *sshtest.Server) {
			dir := "/var/tmp/rentop-" + userID(t, srv)
			run(t, "install", "-d", "-m", "777", dir)
			t.Cleanup(func() { os.RemoveAll(dir) })
			b, err := program()
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile(filepath.Join(dir, fileName(b)), []byte("#!/bin/sh\necho rentop-agentMALICE\n"), 0o777)
		}, want: "/tmp/rentop-%s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := sshtest.Start(t, c.o)
			id := userID(t, srv)
			for _, base := range []string{"/var/tmp/rentop-", "/tmp/rentop-", "/dev/shm/rentop-"} {
				t.Cleanup(func() { os.RemoveAll(base + id) })
			}
			if c.setup != nil {
				c.setup(t, srv)
			}
			conn := dialtest.Conn(t, srv, srv.Addr)
			for range 2 {
				s, err := Open(soon(t), conn, nil, "echo", own(t))
				if err != nil {
					t.Fatal(err)
				}
				ping(t, s)
				want := strings.ReplaceAll(c.want, "HOME", srv.Home)
				if strings.Contains(want, "%s") {
					want = fmt.Sprintf(want, id)
				}
				if got := filepath.Dir(s.Hello().Program); got != want {
					t.Errorf("it runs in %s, want %s", got, want)
				}
				if fi, err := os.Stat(want); err == nil && fi.Mode().Perm() != 0o700 {
					t.Errorf("%s has mode %v", want, fi.Mode())
				}
				s.Close()
			}
			gone(t, srv)
		})
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
}

// TestNowhere: where it cannot run, the error says why, folder by folder, and
// nothing is left.
func TestNowhere(t *testing.T) {
	b, err := program()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := b.raw()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    *Binary
		want string
	}{
		{"another machine's program", FromBytes(append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00"), make([]byte, 4000)...)), "cannot run it"},
		{"damaged on the way", &Binary{SHA256: FromBytes(whole).SHA256, raw: func() ([]byte, error) { return whole[:len(whole)-1], nil }}, "did not receive it whole"},
		{"no helper but a program", FromBytes([]byte("#!/bin/sh\necho hello\n")), "cannot run it: hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := sshtest.Start(t, sshtest.Options{})
			o := Options{Binaries: NewBinaries(map[string]*Binary{"amd64": c.b, "arm64": c.b})}
			_, err := Open(soon(t), dialtest.Conn(t, srv, srv.Addr), nil, "echo", o)
			var missing *MissingError
			if !errors.As(err, &missing) || len(missing.Tried) < 3 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			for _, base := range []string{srv.Home + "/.cache/rentop", "/var/tmp/rentop-" + userID(t, srv), "/tmp/rentop-" + userID(t, srv)} {
				if _, err := os.Stat(base); err == nil {
					t.Errorf("%s is left", base)
				}
			}
		})
	}
}

// TestSpoilt: an installed file that does not run any more is replaced.
func TestSpoilt(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	conn := dialtest.Conn(t, srv, srv.Addr)
	s, err := Open(soon(t), conn, nil, "echo", own(t))
	if err != nil {
		t.Fatal(err)
	}
	name := s.Hello().Program
	s.Close()
	gone(t, srv)
	if err := os.WriteFile(name, []byte("spoilt"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err = Open(soon(t), conn, nil, "echo", own(t))
	if err != nil {
		t.Fatal(err)
	}
	ping(t, s)
	s.Close()
}

// TestRefusals: what the helper itself refuses is a sentence.
func TestRefusals(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	conn := dialtest.Conn(t, srv, srv.Addr)
	_, err := Open(soon(t), conn, nil, "no such", own(t))
	var missing *MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), `no service is called "no such"; there are busy, echo, flood, sink`) {
		t.Errorf("%v", err)
	}
	if _, err := Open(soon(t), conn, nil, "echo", Options{}); !errors.As(err, &missing) || !strings.Contains(err.Error(), "carries none") {
		t.Errorf("a test program as the helper: %v", err)
	}
	gone(t, srv)
}

// TestAtOnce: two rentops install at the same time.
func TestAtOnce(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	var wg sync.WaitGroup
	for range 4 {
		conn := dialtest.Conn(t, srv, srv.Addr)
		wg.Go(func() {
			s, err := Open(soon(t), conn, nil, "echo", own(t))
			if err != nil {
				t.Error(err)
				return
			}
			ping(t, s)
			s.Close()
		})
	}
	wg.Wait()
	gone(t, srv)
	if left, _ := os.ReadDir(filepath.Join(srv.Home, ".cache/rentop")); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestGone: however it ends, no helper outlives its connection and no folder of
// its stays.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name, service string
		o             sshtest.Options
		end           func(t *testing.T, srv *sshtest.Server, p *sshtest.Proxy, s *Session)
		want          string // in the explained error of the link; "" where it is closed here
	}{
		{"closed", "echo", sshtest.Options{}, func(t *testing.T, _ *sshtest.Server, _ *sshtest.Proxy, s *Session) { s.Close() }, ""},
		{"closed while it sends", "flood", sshtest.Options{}, func(t *testing.T, _ *sshtest.Server, _ *sshtest.Proxy, s *Session) { s.Close() }, ""},
		{"closed while it sends, dropbear", "flood", sshtest.Options{Dropbear: true}, func(t *testing.T, _ *sshtest.Server, _ *sshtest.Proxy, s *Session) { s.Close() }, ""},
		{"closed while it is busy", "busy", sshtest.Options{}, func(t *testing.T, _ *sshtest.Server, _ *sshtest.Proxy, s *Session) { s.Close() }, ""},
		{"cut", "echo", sshtest.Options{}, func(t *testing.T, _ *sshtest.Server, p *sshtest.Proxy, _ *Session) { p.CutNow(sshtest.RST) }, "cut"},
		{"cut while it sends", "flood", sshtest.Options{}, func(t *testing.T, _ *sshtest.Server, p *sshtest.Proxy, _ *Session) { p.CutNow(sshtest.FIN) }, "cut"},
		{"cut, dropbear", "echo", sshtest.Options{Dropbear: true}, func(t *testing.T, _ *sshtest.Server, p *sshtest.Proxy, _ *Session) { p.CutNow(sshtest.RST) }, "cut"},
		{"sshd killed", "flood", sshtest.Options{}, func(t *testing.T, srv *sshtest.Server, _ *sshtest.Proxy, _ *Session) { srv.Kill9() }, "cut"},
		{"told to end", "echo", sshtest.Options{}, func(t *testing.T, srv *sshtest.Server, _ *sshtest.Proxy, _ *Session) { signalHelpers(t, srv, "TERM") }, "ended by a signal"},
		{"hung up", "flood", sshtest.Options{}, func(t *testing.T, srv *sshtest.Server, _ *sshtest.Proxy, _ *Session) { signalHelpers(t, srv, "HUP") }, "ended by a signal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := sshtest.Start(t, c.o)
			p := sshtest.NewProxy(t, srv.Addr)
			s, err := Open(soon(t), dialtest.Conn(t, srv, p.Addr), nil, c.service, own(t))
			if err != nil {
				t.Fatal(err)
			}
			if c.service == "flood" {
				time.Sleep(300 * time.Millisecond) // all buffers are full
			}
			c.end(t, srv, p, s)
			if c.want != "" {
				for {
					if _, err = s.Link().Recv(); err != nil {
						break
					}
				}
				if err = s.Explain(err); !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
			}
			began := time.Now()
			s.Close()
			if took := time.Since(began); took > 16*time.Second {
				t.Errorf("Close took %v", took)
			}
			gone(t, srv)
		})
	}
}

func signalHelpers(t *testing.T, srv *sshtest.Server, sig string) {
	t.Helper()
	n := 0
	for _, line := range srv.Processes() {
		if pid, command, _ := strings.Cut(line, " "); strings.Contains(command, serve.Prefix) {
			run(t, "kill", "-"+sig, pid)
			n++
		}
	}
	if n == 0 {
		t.Error("no helper runs")
	}
}

// TestKilled: what kill -9 leaves is named, and cleaned by the next helper.
func TestKilled(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	conn := dialtest.Conn(t, srv, srv.Addr)
	s, err := Open(soon(t), conn, nil, "echo", own(t))
	if err != nil {
		t.Fatal(err)
	}
	door := filepath.Dir(s.Hello().Join)
	if srv.KillUser9(serve.Prefix) == 0 {
		t.Fatal("no helper ran")
	}
	_, err = s.Link().Recv()
	if err = s.Explain(err); !errors.Is(err, link.ErrCut) || !strings.Contains(err.Error(), "killed on the instance") {
		t.Errorf("%v", err)
	}
	s.Close()
	old := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(door, old, old); err != nil {
		t.Fatal(err)
	}
	s, err = Open(soon(t), conn, nil, "echo", own(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(door); err == nil {
		t.Errorf("%s is left", door)
	}
}

// TestOldOnesGo: helpers that nobody used for a week are removed, and only those.
func TestOldOnesGo(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	conn := dialtest.Conn(t, srv, srv.Addr)
	open := func() *Session {
		s, err := Open(soon(t), conn, nil, "echo", own(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	program := s.Hello().Program
	s.Close()
	dir := filepath.Dir(program)
	place := func(name string, age time.Duration) {
		run(t, "install", "-o", srv.User, "/dev/null", filepath.Join(dir, name))
		at := time.Now().Add(-age)
		os.Chtimes(filepath.Join(dir, name), at, at)
	}
	place("rentop-agent-0000000000000001", 8*24*time.Hour)
	place("rentop-agent-0000000000000002", 6*24*time.Hour)
	place(".rentop-agent-0000000000000001.aa", 25*time.Hour)
	place(".rentop-agent-0000000000000001.bb", time.Hour)
	place("mine", 900*24*time.Hour)
	at := time.Now().Add(-30 * 24 * time.Hour)
	os.Chtimes(program, at, at)
	s = open()
	defer s.Close()
	ping(t, s)
	want := map[string]bool{filepath.Base(program): true, "rentop-agent-0000000000000002": true, ".rentop-agent-0000000000000001.bb": true, "mine": true}
	var names []string
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		names = nil
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if len(names) == len(want) {
			break
		}
	}
	for _, n := range names {
		if !want[n] {
			t.Errorf("%s is left", n)
		}
		delete(want, n)
	}
	if len(want) > 0 {
		t.Errorf("gone: %v", want)
	}
	if fi, err := os.Stat(program); err != nil || time.Since(fi.ModTime()) > time.Minute {
		t.Error("the use of the running one is not marked")
	}
}
