//go:build linux

package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/remote/agent/serve"
	"rentop/remote/sshtest"
)

// TestMain makes this test program its own helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(serve.Main(context.Background(), os.Args[1:], map[string]serve.Service{"echo": echo, "flood": flood, "sink": sink, "busy": busy}))
	}
	os.Exit(m.Run())
}

// echo sends back what it gets.
func echo(_ context.Context, l link.Link) error {
	for {
		m, err := l.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = l.Send(m.Kind, m.Payload)
		}
		if err != nil {
			return err
		}
		m.Free()
	}
}

// flood sends until nobody takes it.
func flood(_ context.Context, l link.Link) error {
	block := make([]byte, 1<<20)
	for {
		if err := l.Send(1, block); err != nil {
			return err
		}
	}
}

// sink takes all.
func sink(_ context.Context, l link.Link) error {
	for {
		m, err := l.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		m.Free()
	}
}

// busy never looks at its link.
func busy(context.Context, link.Link) error {
	time.Sleep(time.Hour)
	return nil
}

// here is this machine as an instance.
type here struct{ remote.Local }

func (here) SFTP(context.Context) (*sftp.Client, error) { return nil, errors.New("no SFTP here") }

func (here) Streams(context.Context, int, int, string) []*remote.Stream { return nil }

// program is this test program as the helper, compressed once for all tests.
var program = sync.OnceValues(func() (*Binary, error) { return FromFile("/proc/self/exe") })

// own is this program as the helper.
func own(t testing.TB) Options {
	t.Helper()
	b, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Binaries: NewBinaries(map[string]*Binary{"amd64": b, "arm64": b})}
}

func dial(t testing.TB, s *sshtest.Server, addr string) *remote.Conn {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(port)
	ep := remote.DirectEndpoint(s.User, host, n)
	ep.IdentityFiles, ep.IdentitiesOnly, ep.IdentityAgent = []string{s.KeyFile}, true, "none"
	hk, err := remote.OpenHostKeys(filepath.Join(t.TempDir(), "known_hosts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := remote.Dial(soon(t), ep, remote.DialOptions{Instance: "a100", UID: "u", HostKeys: hk,
		AcceptHostKey: ssh.FingerprintSHA256(s.HostKey()), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
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
			conn := dial(t, srv, srv.Addr)
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
