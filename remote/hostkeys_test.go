package remote

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"rentop/remote/sshtest"
)

func testKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	_, pub := newKeyFile(t, t.TempDir(), "k", "")
	return pub
}

func openKeys(t *testing.T, user string) (*HostKeys, string) {
	t.Helper()
	dir := t.TempDir()
	var files []string
	if user != "" {
		f := filepath.Join(dir, "user_known_hosts")
		if err := os.WriteFile(f, []byte(user), 0o600); err != nil {
			t.Fatal(err)
		}
		files = []string{f, filepath.Join(dir, "missing"), dir, os.DevNull}
	}
	h, err := OpenHostKeys(filepath.Join(dir, "state", "known_hosts"), files)
	if err != nil {
		t.Fatal(err)
	}
	return h, filepath.Join(dir, "state", "known_hosts")
}

func khLine(host string, k ssh.PublicKey) string {
	return host + " " + string(ssh.MarshalAuthorizedKey(k))
}

func TestHostKeysOfUser(t *testing.T) {
	k, other := testKey(t), testKey(t)
	hash := func(host string, k ssh.PublicKey) string {
		f := filepath.Join(t.TempDir(), "kh")
		os.WriteFile(f, []byte(khLine(host, k)), 0o600)
		if out, err := exec.Command("ssh-keygen", "-H", "-f", f).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v %s", err, out)
		}
		b, _ := os.ReadFile(f)
		return string(b)
	}
	for _, tc := range []struct {
		name, user, addr string
		want             verdict
	}{
		{"none", "", "h:22", keyUnknown},
		{"match", khLine("h", k), "h:22", keyUsers},
		{"port", khLine("[h]:2222", k), "h:2222", keyUsers},
		{"other port", khLine("h", k), "h:2222", keyUnknown},
		{"ipv6", khLine("[::1]:2222", k), "[::1]:2222", keyUsers},
		{"hashed", hash("h", k), "h:22", keyUsers},
		{"wildcard on another port", khLine("*.example", k), "a.example:2222", keyUsers},
		{"another key", khLine("h", other), "h:22", keyOther},
		{"two keys", khLine("h", other) + khLine("h", k), "h:22", keyUsers},
		{"garbage beside it", "what is this\n\xff\xfe\n" + khLine("h", k), "h:22", keyUsers},
		{"garbage only", "what is this\n", "h:22", keyUnknown},
		{"revoked", khLine("h", k) + "@revoked * " + string(ssh.MarshalAuthorizedKey(k)), "h:22", keyRevoked},
		{"an authority, a plain key", "@cert-authority * " + string(ssh.MarshalAuthorizedKey(other)), "h:22", keyUnknown},
	} {
		h, _ := openKeys(t, tc.user)
		l, err := h.look("uid", tc.addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.judge(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 22}, k); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestHostKeysForgetAndTornLines(t *testing.T) {
	h, file := openKeys(t, "")
	k := testKey(t)
	for _, uid := range []string{"a", "weird uid,*?|@", "中"} {
		if err := h.Add(uid, k); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := h.Known("weird uid,*?|@"); err != nil || len(got) != 1 || got[0] != ssh.FingerprintSHA256(k) {
		t.Error(got, err)
	}
	if got, _ := h.Known("weird"); got != nil {
		t.Error("found", got)
	}
	f, _ := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprint(f, "a ssh-ed2551") // a full disk
	f.Close()
	if err := h.Forget("a"); err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Known("a"); got != nil {
		t.Error("not forgotten:", got)
	}
	if got, _ := h.Known("中"); len(got) != 1 {
		t.Error("forgot another's")
	}
	h.Add("a", k)
	if got, _ := h.Known("a"); len(got) != 1 {
		t.Error("not found again")
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Error(fi.Mode(), err)
	}
}

// Two rentops write at the same time: no line is lost or torn.
func TestHostKeysOfTwoProcesses(t *testing.T) {
	h1, file := openKeys(t, "")
	h2, err := OpenHostKeys(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := testKey(t)
	var wg sync.WaitGroup
	for i, h := range []*HostKeys{h1, h2} {
		wg.Go(func() {
			for n := range 50 {
				if err := h.Add(fmt.Sprintf("p%d-%d", i, n), k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		for n := range 50 {
			if got, err := h1.Known(fmt.Sprintf("p%d-%d", i, n)); err != nil || len(got) != 1 {
				t.Errorf("p%d-%d: %v %v", i, n, got, err)
			}
		}
	}
}

// A server with several keys must show the type that is known; an ssh-rsa line
// stands for its SHA-2 signatures (golang/go#29286, skeema/knownhosts#6).
func TestKnownTypeIsAskedFor(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	var extra []string
	keys := map[string]ssh.PublicKey{}
	for _, typ := range []string{"rsa", "ecdsa"} {
		file := filepath.Join(dir, typ)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", typ, "-N", "", "-f", file).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v %s", err, out)
		}
		extra = append(extra, "HostKey "+file)
		keys[typ] = publicKeyBeside(file)
	}
	s := sshtest.Start(t, sshtest.Options{Extra: append(extra, "HostKeyAlgorithms rsa-sha2-512,ecdsa-sha2-nistp256,ssh-ed25519")})
	keys["ed25519"] = s.HostKey()
	for typ, k := range keys {
		p := &person{answer: yes("", "")}
		o := testOptions(t, p)
		o.HostKeys.Add(o.UID, k)
		if c, err := Dial(t.Context(), serverEndpoint(s, ""), o); err != nil || p.kinds() != "" || c.Info().HostKey != ssh.FingerprintSHA256(k) {
			t.Errorf("%s kept: %v, asked %q", typ, err, p.kinds())
		} else {
			c.Close()
		}
		// The same from the person's own file, through ssh_config.
		user := filepath.Join(dir, "kh-"+typ)
		host, port, _ := net.SplitHostPort(s.Addr)
		os.WriteFile(user, []byte(khLine("other.example", testKey(t))+khLine("["+host+"]:"+port, k)), 0o600)
		ep := serverEndpoint(s, "")
		ep.KnownHosts = []string{user}
		o = testOptions(t, p)
		if c, err := Dial(t.Context(), ep, o); err != nil || p.kinds() != "" {
			t.Errorf("%s in known_hosts: %v, asked %q", typ, err, p.kinds())
		} else {
			c.Close()
		}
		if known, _ := o.HostKeys.Known(o.UID); len(known) != 1 || known[0] != ssh.FingerprintSHA256(k) {
			t.Errorf("%s was not kept for the instance: %v", typ, known)
		}
	}
	// Another type than the kept one counts as changed, never as new.
	p := &person{answer: yes("", "")}
	o := testOptions(t, p)
	o.HostKeys.Add(o.UID, mustRSA(t))
	var changed *HostKeyChangedError
	if _, err := Dial(t.Context(), serverEndpoint(s, ""), o); !errors.As(err, &changed) || p.kinds() != "" {
		t.Error(err, p.kinds())
	}
}

func mustRSA(t *testing.T) ssh.PublicKey {
	t.Helper()
	file := filepath.Join(t.TempDir(), "k")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v %s", err, out)
	}
	return publicKeyBeside(file)
}

// A key exchange in mid-connection asks nothing.
func TestRekeyAsksNothing(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Extra: []string{"RekeyLimit 1M"}})
	p := &person{answer: yes("", "")}
	c := mustDial(t, serverEndpoint(s, ""), testOptions(t, p))
	sess, err := c.Client().NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	out, err := sess.Output("head -c 8000000 /dev/zero")
	if err != nil || len(out) != 8000000 || p.kinds() != "h" {
		t.Error(len(out), err, p.kinds())
	}
}

// The address was another machine's before: the person is told, and decides.
func TestReusedAddressAsksWithAWarning(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	host, port, _ := net.SplitHostPort(s.Addr)
	user := filepath.Join(t.TempDir(), "kh")
	os.WriteFile(user, []byte(khLine("["+host+"]:"+port, testKey(t))), 0o600)
	ep := serverEndpoint(s, "")
	ep.KnownHosts, ep.AcceptNew = []string{user}, true // accept-new is for new ones only
	p := &person{answer: yes("", "")}
	mustDial(t, ep, testOptions(t, p))
	if p.kinds() != "h" || !strings.Contains(p.asked[0].Prompt, "another key for") {
		t.Errorf("%+v", p.asked)
	}
	var unknown *HostKeyUnknownError
	if _, err := Dial(t.Context(), ep, testOptions(t, nil)); !errors.As(err, &unknown) || !unknown.Conflict {
		t.Error(err)
	}
	ep.KnownHosts = nil
	mustDial(t, ep, testOptions(t, nil))
}

func TestCertifiedHost(t *testing.T) {
	quiet(t)
	_, ca := newSigner(t)
	s := sshtest.Start(t, sshtest.Options{})
	cert := &ssh.Certificate{Key: s.HostKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Dir, "host_cert.pub")
	os.WriteFile(file, ssh.MarshalAuthorizedKey(cert), 0o644)
	s2 := sshtest.Start(t, sshtest.Options{Extra: []string{"HostKey " + filepath.Join(s.Dir, "host_key"), "HostCertificate " + file}})
	user := filepath.Join(t.TempDir(), "kh")
	os.WriteFile(user, bytes.Join([][]byte{[]byte("@cert-authority * "), ssh.MarshalAuthorizedKey(ca.PublicKey())}, nil), 0o600)
	ep := serverEndpoint(s2, "")
	ep.KnownHosts = []string{user}
	mustDial(t, ep, testOptions(t, nil)) // nobody is asked
}

func FuzzHostKeys(f *testing.F) {
	f.Add("a ssh-ed25519 AAAA\n#forget a\n", "a")
	f.Add("a ssh-ed25519", "b c")
	f.Fuzz(func(t *testing.T, text, uid string) {
		file := filepath.Join(t.TempDir(), "kh")
		os.WriteFile(file, []byte(text), 0o600)
		h, err := OpenHostKeys(file, []string{file})
		if err != nil {
			return
		}
		h.look(uid, "h:22", nil)
		if strings.ContainsAny(hostName(uid), " \t\n,*?!|@#") {
			t.Fatalf("%q becomes %q", uid, hostName(uid))
		}
	})
}
