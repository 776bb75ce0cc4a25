// Package dialtest connects tests to a server of sshtest as rentop connects. It is
// apart from sshtest, which the tests of remote itself use.
package dialtest

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote"
	"rentop/remote/sshtest"
)

// Conn is a connection to s by its key, closed when the test ends. addr is s.Addr or
// a Proxy's before it.
func Conn(t testing.TB, s *sshtest.Server, addr string) *remote.Conn {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	ep := remote.DirectEndpoint(s.User, host, n)
	ep.IdentityFiles, ep.IdentitiesOnly, ep.IdentityAgent = []string{s.KeyFile}, true, "none"
	hk, err := remote.OpenHostKeys(filepath.Join(t.TempDir(), "known_hosts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := remote.Dial(t.Context(), ep, remote.DialOptions{Instance: "a100", UID: "u", HostKeys: hk,
		AcceptHostKey: ssh.FingerprintSHA256(s.HostKey()), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
