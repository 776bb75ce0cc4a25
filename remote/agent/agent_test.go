//go:build linux

package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"rentop/remote"
	"rentop/remote/agent/serve"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
)

// here is this machine as an instance.
type here struct{ remote.Local }

func (here) SFTP(context.Context) (*sftp.Client, error) { return nil, errors.New("no SFTP here") }

func (here) Streams(context.Context, int, int, string) []*remote.Stream { return nil }

// program is testdata/helper, built and compressed once for all tests: this test
// program itself, with the race detector in it, takes a minute to compress.
var program = sync.OnceValues(func() (*Binary, error) {
	dir, err := os.MkdirTemp("", "helper")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "helper")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", name, "./testdata/helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return FromBytes(data), nil
})

// own is testdata/helper as the helper.
func own(t testing.TB) Options {
	t.Helper()
	b, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Binaries: NewBinaries(map[string]*Binary{"amd64": b, "arm64": b})}
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ping proves that a session works.
func ping(t testing.TB, s *Session) {
	t.Helper()
	data := make([]byte, 300<<10)
	rand.Read(data)
	if err := s.Link().Send(7, data); err != nil {
		t.Fatal(s.Explain(err))
	}
	m, err := s.Link().Recv()
	if err != nil || m.Kind != 7 || !bytes.Equal(m.Payload, data) {
		t.Fatal(m.Kind, len(m.Payload), s.Explain(err))
	}
}

// gone waits until no helper of the server's user runs, and nothing of it is left.
func gone(t *testing.T, srv *sshtest.Server) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := strings.Join(srv.Processes(), "\n")
		if !strings.Contains(left, serve.Prefix) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("helpers live on:\n%s", left)
		}
	}
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), "rentop-join-*"))
	for _, d := range found {
		if fi, err := os.Stat(d); err == nil && ownerName(t, fi) == srv.User {
			t.Errorf("%s is left", d)
		}
	}
}

func ownerName(t *testing.T, fi os.FileInfo) string {
	t.Helper()
	out, err := exec.Command("id", "-un", fmt.Sprint(uid(fi))).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestOpen: installed once, started again, with difficult shells, servers and
// instances that lack programs.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		o    sshtest.Options
	}{
		{"sshd", sshtest.Options{}},
		{"fish, noise", sshtest.Options{Shell: "fish", Noise: true}},
		{"tcsh, noise", sshtest.Options{Shell: "tcsh", Noise: true}},
		{"dropbear, noise", sshtest.Options{Dropbear: true, Noise: true}},
		{"no zstd", sshtest.Options{Hide: []string{"zstd"}}},
		{"no zstd, no gzip", sshtest.Options{Hide: []string{"zstd", "gzip"}}},
		{"only sftp takes files", sshtest.Options{Hide: []string{"zstd", "gzip", "cat"}}},
		{"nothing for sha-256", sshtest.Options{Hide: []string{"sha256sum", "openssl", "busybox", "shasum"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := sshtest.Start(t, c.o)
			conn := dialtest.Conn(t, srv, srv.Addr)
			installs := 0
			o := own(t)
			o.Installing = func() { installs++ }
			for range 2 {
				s, err := Open(soon(t), conn, nil, "echo", o)
				if err != nil {
					t.Fatal(err)
				}
				ping(t, s)
				if got := filepath.Dir(s.Hello().Program); got != filepath.Join(srv.Home, ".cache/rentop") {
					t.Errorf("it runs in %s", got)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if installs != 1 {
				t.Errorf("installed %d times", installs)
			}
			gone(t, srv)
			left, _ := os.ReadDir(filepath.Join(srv.Home, ".cache/rentop"))
			if len(left) != 1 {
				t.Errorf("left in its folder: %v", left)
			}
		})
	}
}
