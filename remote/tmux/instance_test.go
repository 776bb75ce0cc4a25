package tmux

// A test's instance: a real server, and a runner that connects again after a cut.

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote"
	"rentop/remote/sshtest"
)

type instance struct {
	*sshtest.Server
	t    *testing.T
	addr string // the server's, or a proxy's
	keys *remote.HostKeys

	mu sync.Mutex
	c  *remote.Conn
}

func newInstance(t *testing.T, o sshtest.Options) *instance {
	t.Helper()
	s := sshtest.Start(t, o)
	keys, err := remote.OpenHostKeys(filepath.Join(t.TempDir(), "known_hosts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{Server: s, t: t, addr: s.Addr, keys: keys}
	t.Cleanup(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.c != nil {
			i.c.Close()
		}
	})
	return i
}

func (i *instance) conn(ctx context.Context) (*remote.Conn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.c != nil {
		select {
		case <-i.c.Done():
			i.c.Close()
			i.c = nil
		default:
			return i.c, nil
		}
	}
	host, port, _ := net.SplitHostPort(i.addr)
	p, _ := strconv.Atoi(port)
	ep := remote.DirectEndpoint(i.User, host, p)
	ep.IdentityFiles, ep.IdentityAgent = []string{i.KeyFile}, "none"
	c, err := remote.Dial(ctx, ep, remote.DialOptions{HostKeys: i.keys, UID: "test", AcceptHostKey: ssh.FingerprintSHA256(i.HostKey())})
	i.c = c
	return c, err
}

func (i *instance) Run(ctx context.Context, c remote.Cmd) error {
	conn, err := i.conn(ctx)
	if err != nil {
		return err
	}
	return conn.Run(ctx, c)
}

// sh runs a script and returns its output.
func (i *instance) sh(script string) string {
	i.t.Helper()
	b, err := remote.Output(soon(i.t), i, script)
	if err != nil {
		i.t.Fatalf("%s: %v", script, err)
	}
	return string(bytes.TrimSpace(b))
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ended waits until job id no longer runs.
func (i *instance) ended(j *Jobs, id string) Job {
	i.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		job := find(i.t, j, id)
		if job.State != Running && job.State != Starting {
			return job
		}
		if time.Now().After(end) {
			i.t.Fatalf("job %s still runs: %+v", id, job)
		}
	}
}

func find(t *testing.T, j *Jobs, id string) Job {
	t.Helper()
	jobs, err := j.List(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		if job.ID == id {
			return job
		}
	}
	t.Fatalf("no job %s in %+v", id, jobs)
	return Job{}
}

func logOf(t *testing.T, j *Jobs, id string) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := j.Follow(soon(t), id, 0, false, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func code(j Job) int {
	if j.ExitCode == nil {
		return -1
	}
	return *j.ExitCode
}
