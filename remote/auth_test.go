package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

// startAgent runs a real ssh-agent and returns its socket and a client.
func startAgent(t *testing.T) (string, agent.ExtendedAgent) {
	t.Helper()
	path := needtest.Program(t, "ssh-agent")
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	cmd := exec.Command(path, "-D", "-a", sock)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); os.RemoveAll(dir) })
	for range 100 {
		if c, err := net.Dial("unix", sock); err == nil {
			t.Cleanup(func() { c.Close() })
			return sock, agent.NewClient(c)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("ssh-agent did not start")
	return "", nil
}

func addKey(t *testing.T, a agent.ExtendedAgent, file, comment string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Add(agent.AddedKey{PrivateKey: key, Comment: comment}); err != nil {
		t.Fatal(err)
	}
}

func TestPassword(t *testing.T) {
	quiet(t)
	both(t, sshtest.Options{Password: "corräct horse"}, func(t *testing.T, s *sshtest.Server) {
		ep := serverEndpoint(s, "")
		ep.IdentityFiles = nil
		tries := 0
		p := &person{answer: func(q Question) Answer {
			if q.Kind == AskPassword {
				if tries++; tries == 1 {
					return Answer{OK: true, Text: "wrong", Remember: true}
				}
				return Answer{OK: true, Text: "corräct horse", Remember: true}
			}
			return Answer{OK: true}
		}}
		o := testOptions(t, p)
		secrets := &MemorySecrets{}
		o.Secrets = secrets
		c := mustDial(t, ep, o)
		if c.Info().Method != "password" || p.kinds() != "hpp" || p.asked[1].Retry || !p.asked[2].Retry || !p.asked[1].CanRemember {
			t.Fatalf("%+v, asked %+v", c.Info(), p.asked)
		}
		if got, _ := secrets.Get("uid-1/password"); got != "corräct horse" {
			t.Errorf("kept %q", got)
		}
		// A second connection of this run asks nothing, nor does the next run.
		again, err := c.Again(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		o.Memory = NewAuthMemory()
		mustDial(t, ep, o)
		if p.kinds() != "hpp" {
			t.Error("asked again:", p.kinds())
		}
		// A kept password that is no longer right is asked for anew, and dropped
		// once another was proven.
		secrets.Set("uid-1/password", "old")
		o.Memory = NewAuthMemory()
		p.answer = yes("corräct horse", "")
		mustDial(t, ep, o)
		if _, ok := secrets.Get("uid-1/password"); ok || p.kinds() != "hppp" || !p.asked[3].Retry {
			t.Error("the wrong secret stayed, or", p.kinds())
		}
	})
}

func TestPasswordIsNotKeptUnasked(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Password: "pw"})
	ep := serverEndpoint(s, "")
	ep.IdentityFiles = nil
	o := testOptions(t, &person{answer: yes("pw", "")})
	secrets := &MemorySecrets{}
	o.Secrets = secrets
	mustDial(t, ep, o)
	if len(secrets.m) != 0 {
		t.Error("kept", secrets.m)
	}
}

func TestPasswordGivenUp(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Password: "pw"})
	ep := serverEndpoint(s, "")
	ep.IdentityFiles = nil
	var auth *AuthError

	p := &person{answer: yes("wrong", "")}
	_, err := Dial(t.Context(), ep, testOptions(t, p))
	if !errors.As(err, &auth) || !auth.Password || !NeedsPerson(err) || p.kinds() != "hppp" {
		t.Errorf("%v, asked %s", err, p.kinds())
	}
	p = &person{answer: yes("", "")} // declines
	_, err = Dial(t.Context(), ep, testOptions(t, p))
	if !errors.Is(err, ErrDeclined) || !NeedsPerson(err) || p.kinds() != "hp" {
		t.Errorf("%v, asked %s", err, p.kinds())
	}
	o := testOptions(t, nil)
	o.AcceptHostKey = ssh.FingerprintSHA256(s.HostKey())
	_, err = Dial(t.Context(), ep, o)
	if !errors.Is(err, ErrNobodyToAsk) || !errors.As(err, &auth) || strings.Join(auth.Methods, ",") != "publickey,password" {
		t.Errorf("%v", err)
	}
}

func TestEncryptedKeyFile(t *testing.T) {
	quiet(t)
	both(t, sshtest.Options{}, func(t *testing.T, s *sshtest.Server) {
		file, pub := newKeyFile(t, t.TempDir(), "id_locked", "sesame")
		ep := serverEndpoint(s, "")
		ep.IdentityFiles = []string{file}

		// The server does not want it: no passphrase is asked for.
		p := &person{answer: yes("", "sesame")}
		o := testOptions(t, p)
		if _, err := Dial(t.Context(), ep, o); err == nil || p.kinds() != "h" {
			t.Fatalf("%v, asked %s", err, p.kinds())
		}
		authorize(t, s, pub)
		tries := 0
		p.answer = func(q Question) Answer {
			if q.KeyFile != file || q.Retry != (tries > 0) {
				t.Errorf("asked %+v", q)
			}
			tries++
			return Answer{OK: true, Text: []string{"open", "sesame"}[min(tries-1, 1)]}
		}
		mustDial(t, ep, o)
		mustDial(t, ep, o)
		if tries != 2 {
			t.Errorf("asked %d times", tries)
		}
	})
}

func TestAgent(t *testing.T) {
	sock, ag := startAgent(t)
	t.Setenv("SSH_AUTH_SOCK", sock)
	both(t, sshtest.Options{MaxAuthTries: 4}, func(t *testing.T, s *sshtest.Server) {
		ag.RemoveAll()
		dir := t.TempDir()
		var right ssh.PublicKey
		var rightFile string
		for i := range 8 {
			rightFile, right = newKeyFile(t, dir, fmt.Sprintf("k%d", i), "")
			addKey(t, ag, rightFile, fmt.Sprintf("comment %d", i))
		}
		authorize(t, s, right)
		ep := serverEndpoint(s, "")
		o := testOptions(t, &person{answer: yes("", "")})

		// Eight keys, the last is right, four failures allowed: naming it finds it
		// at once, by its file, its public half or a locked copy.
		line := ssh.MarshalAuthorizedKey(right)
		os.WriteFile(rightFile+".pub", line, 0o600)
		os.Rename(rightFile, filepath.Join(dir, "away"))
		for _, id := range []string{filepath.Join(dir, "away"), rightFile, rightFile + ".pub"} {
			o.Memory = NewAuthMemory()
			ep.IdentityFiles = []string{id}
			c := mustDial(t, ep, o)
			if c.Info().Key != "agent key comment 7" {
				t.Errorf("-i %s: %+v", id, c.Info())
			}
			c.Close()
		}
		// Remembered: it goes first without being named.
		ep.IdentityFiles = nil
		mustDial(t, ep, o).Close()
		// Not remembered: it is found on another connection, as no connection may
		// see six wrong keys.
		o.Memory = NewAuthMemory()
		mustDial(t, ep, o).Close()
		ep.IdentityAgent = "none"
		var auth *AuthError
		if _, err := Dial(t.Context(), ep, o); !errors.As(err, &auth) || len(auth.Keys) != 0 {
			t.Error(err)
		}
	})
}

func TestRefusedKeysAreNamedAndCounted(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{MaxAuthTries: 20})
	dir := t.TempDir()
	ep := serverEndpoint(s, "")
	ep.IdentityFiles = nil
	for i := range 12 {
		file, _ := newKeyFile(t, dir, fmt.Sprintf("k%02d", i), "")
		ep.IdentityFiles = append(ep.IdentityFiles, file)
	}
	ep.IdentityFiles = append(ep.IdentityFiles, filepath.Join(dir, "missing"))
	_, err := Dial(t.Context(), ep, testOptions(t, &person{answer: yes("", "")}))
	var auth *AuthError
	if !errors.As(err, &auth) || !strings.Contains(err.Error(), "k00") || !strings.Contains(err.Error(), "missing") {
		t.Fatal(err)
	}
	log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
	perConn := map[string]int{}
	for line := range strings.Lines(string(log)) {
		if i := strings.Index(line, " port "); i > 0 && strings.Contains(line, "Failed publickey") {
			perConn[strings.Fields(line[i+6:])[0]]++
		}
	}
	for port, n := range perConn {
		if n > maxKeys {
			t.Errorf("the connection from port %s saw %d keys", port, n)
		}
	}
	if len(auth.Keys) < 10 || len(perConn) == 0 {
		t.Errorf("%d keys refused on %d connections", len(auth.Keys), len(perConn))
	}
}

func TestKeyFilesThatCannotBeUsed(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	dir := t.TempDir()
	gen := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	gen("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PKCS8", "-N", "sesame", "-f", filepath.Join(dir, "pkcs8"))
	os.Remove(filepath.Join(dir, "pkcs8.pub"))
	os.WriteFile(filepath.Join(dir, "putty.ppk"), []byte("PuTTY-User-Key-File-3: ssh-ed25519\n"), 0o600)
	os.WriteFile(filepath.Join(dir, "noise"), []byte("hello"), 0o600)
	ep := serverEndpoint(s, "")
	for name, want := range map[string]string{"pkcs8": "ssh-keygen -p", "putty.ppk": "PuTTYgen", "noise": "not a private key", "dir/": "cannot be read"} {
		os.MkdirAll(filepath.Join(dir, "dir"), 0o700)
		ep.IdentityFiles = []string{filepath.Join(dir, name)}
		if _, err := Dial(t.Context(), ep, testOptions(t, &person{answer: yes("", "")})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One that is wrong does not spoil one that is right.
	ep.IdentityFiles = []string{filepath.Join(dir, "noise"), s.KeyFile}
	mustDial(t, ep, testOptions(t, &person{answer: yes("", "")}))
}

func TestKeyFormats(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Extra: []string{"PubkeyAcceptedAlgorithms rsa-sha2-512,ssh-ed25519,ecdsa-sha2-nistp256"}})
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"rsa that takes SHA-512 only": {"-t", "rsa", "-b", "2048"},
		"rsa pem":                     {"-t", "rsa", "-b", "2048", "-m", "PEM"},
		"locked pem":                  {"-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "sesame"},
		"ecdsa":                       {"-t", "ecdsa"},
		"locked ecdsa":                {"-t", "ecdsa", "-N", "sesame"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "_"))
			if !strings.Contains(name, "locked") {
				args = append(args, "-N", "")
			}
			if out, err := exec.Command("ssh-keygen", append([]string{"-q", "-f", file}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("ssh-keygen: %v %s", err, out)
			}
			authorize(t, s, publicKeyBeside(file))
			if name == "locked pem" {
				os.Remove(file + ".pub") // nothing shows the public key
			}
			ep := serverEndpoint(s, "")
			ep.IdentityFiles = []string{file}
			p := &person{answer: yes("", "sesame")}
			mustDial(t, ep, testOptions(t, p))
			if want := map[bool]string{true: "hk", false: "h"}[strings.Contains(name, "locked")]; len(p.kinds()) != len(want) {
				t.Error("asked", p.kinds())
			}
		})
	}
}

func TestHungAgentCostsSecondsNotTheLogin(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sock := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", sock) // accepts, never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := sshtest.Start(t, sshtest.Options{})
	ep := serverEndpoint(s, "")
	ep.IdentityAgent = sock
	start := time.Now()
	mustDial(t, ep, testOptions(t, &person{answer: yes("", "")}))
	if took := time.Since(start); took > agentTimeout+3*time.Second {
		t.Error("took", took)
	}
	ep.IdentityAgent = filepath.Join(dir, "gone")
	mustDial(t, ep, testOptions(t, &person{answer: yes("", "")}))
}

// startLoop runs an in-process server, for logins that sshd cannot do without PAM.
func startLoop(t *testing.T, cfg *ssh.ServerConfig) Endpoint {
	t.Helper()
	_, key := newSigner(t)
	cfg.AddHostKey(key)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				conn, chans, reqs, err := ssh.NewServerConn(nc, cfg)
				if err != nil {
					return
				}
				go ssh.DiscardRequests(reqs)
				for ch := range chans {
					ch.Reject(ssh.Prohibited, "no")
				}
				conn.Wait()
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	a := ln.Addr().(*net.TCPAddr)
	return DirectEndpoint("root", "127.0.0.1", a.Port)
}

func newSigner(t *testing.T) (string, ssh.Signer) {
	t.Helper()
	file, _ := newKeyFile(t, t.TempDir(), "id", "")
	data, _ := os.ReadFile(file)
	s, err := ssh.ParsePrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return file, s
}

func TestKeyboardInteractive(t *testing.T) {
	quiet(t)
	kbd := func(prompts []string, echo []bool, want ...string) *ssh.ServerConfig {
		return &ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, c ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			var got []string
			for i, p := range prompts { // one round each, as PAM does
				a, err := c("", "", []string{p}, echo[i:i+1])
				if err != nil {
					return nil, err
				}
				got = append(got, a...)
			}
			if strings.Join(got, "|") != strings.Join(want, "|") {
				return nil, errors.New("wrong")
			}
			return nil, nil
		}}
	}
	answers := func(q Question) Answer {
		switch {
		case q.Kind == AskPassword:
			return Answer{OK: true, Text: "pw"}
		case q.Kind == AskInteractive && strings.Contains(q.Prompt, "code"):
			return Answer{OK: true, Text: "123"}
		case q.Kind == AskInteractive:
			return Answer{OK: true, Text: "blue"}
		}
		return Answer{OK: true}
	}
	for _, tc := range []struct {
		name    string
		prompts []string
		echo    []bool
		want    []string
		kinds   string
		again   string // what a second connection asks
	}{
		{"password", []string{"Password: "}, []bool{false}, []string{"pw"}, "hp", ""},
		{"password and code", []string{"Password: ", "Verification code: "}, []bool{false, false}, []string{"pw", "123"}, "hpi", "i"},
		{"code only", []string{"One-time code: "}, []bool{false}, []string{"123"}, "hi", "i"},
		{"shown", []string{"Favourite colour? "}, []bool{true}, []string{"blue"}, "hi", "i"},
		{"hostile", []string{"\x1b]0;x\x07Password: "}, []bool{false}, []string{"pw"}, "hp", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ep := startLoop(t, kbd(tc.prompts, tc.echo, tc.want...))
			p := &person{answer: answers}
			o := testOptions(t, p)
			mustDial(t, ep, o)
			if p.kinds() != tc.kinds {
				t.Fatal("asked", p.kinds())
			}
			for _, q := range p.asked {
				if strings.ContainsRune(q.Prompt, 0x1b) {
					t.Errorf("prompt %q", q.Prompt)
				}
			}
			mustDial(t, ep, o)
			if p.kinds() != tc.kinds+tc.again {
				t.Error("then asked", p.kinds())
			}
		})
	}
	t.Run("refused three times", func(t *testing.T) {
		ep := startLoop(t, kbd([]string{"Password: "}, []bool{false}, "other"))
		p := &person{answer: answers}
		var auth *AuthError
		if _, err := Dial(t.Context(), ep, testOptions(t, p)); !errors.As(err, &auth) || p.kinds() != "hppp" {
			t.Error(err, p.kinds())
		}
	})
	t.Run("endless", func(t *testing.T) {
		cfg := &ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, c ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for {
				if _, err := c("", "", []string{"more?"}, []bool{true}); err != nil {
					return nil, err
				}
			}
		}}
		p := &person{answer: answers}
		if _, err := Dial(t.Context(), startLoop(t, cfg), testOptions(t, p)); err == nil || len(p.asked) > 4*maxChallenges {
			t.Error(err, len(p.asked))
		}
	})
	// keyboard-interactive that is offered and refused without a question: Go
	// reports "unexpected message type 51"; the password must still be tried.
	t.Run("refused cold", func(t *testing.T) {
		cfg := &ssh.ServerConfig{
			KeyboardInteractiveCallback: func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
				return nil, errors.New("no")
			},
			PasswordCallback: func(_ ssh.ConnMetadata, pw []byte) (*ssh.Permissions, error) {
				if string(pw) != "pw" {
					return nil, errors.New("no")
				}
				return nil, nil
			},
		}
		p := &person{answer: answers}
		c := mustDial(t, startLoop(t, cfg), testOptions(t, p))
		if c.Info().Method != "password" || p.kinds() != "hp" {
			t.Error(c.Info(), p.kinds())
		}
	})
}

func TestKeyThenPassword(t *testing.T) {
	quiet(t)
	both := sshtest.Options{Password: "pw", Extra: []string{"AuthenticationMethods publickey,password"}}
	s := sshtest.Start(t, both)
	p := &person{answer: yes("pw", "")}
	o := testOptions(t, p)
	mustDial(t, serverEndpoint(s, ""), o)
	if o.Memory.WorkingKey("uid-1") == "" || p.kinds() != "hp" {
		t.Error("asked", p.kinds())
	}
	mustDial(t, serverEndpoint(s, ""), o)
	if p.kinds() != "hp" {
		t.Error("asked again", p.kinds())
	}
}

// Two connections that need the same secret at once ask for it once.
func TestParallelLoginsAskOnce(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Password: "pw"})
	ep := serverEndpoint(s, "")
	ep.IdentityFiles = nil
	p := &person{answer: func(q Question) Answer {
		if q.Kind == AskPassword {
			time.Sleep(300 * time.Millisecond)
		}
		return yes("pw", "")(q)
	}}
	o := testOptions(t, p)
	o.AcceptHostKey = ssh.FingerprintSHA256(s.HostKey())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c, err := Dial(t.Context(), ep, o)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
	if n := strings.Count(p.kinds(), "p"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A person may think longer than the server waits: the answer is used on a new
// connection.
func TestSlowAnswers(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Password: "pw", Extra: []string{"LoginGraceTime 1"}})
	ep := serverEndpoint(s, "")
	ep.IdentityFiles = nil
	for _, slow := range []QuestionKind{AskHostKey, AskPassword} {
		p := &person{answer: func(q Question) Answer {
			if q.Kind == slow {
				time.Sleep(2500 * time.Millisecond)
			}
			return yes("pw", "")(q)
		}}
		o := testOptions(t, p)
		o.Timeout = 2 * time.Second // which the person's time is not part of
		c, err := Dial(t.Context(), ep, o)
		if err != nil || p.kinds() != "hp" {
			t.Errorf("slow %d: %v, asked %s", slow, err, p.kinds())
		}
		if c != nil {
			c.Close()
		}
	}
}

func TestCancelWhileAsking(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	o := testOptions(t, nil)
	o.Ask = askerFunc(func(ctx context.Context, q Question) (Answer, error) {
		cancel()
		<-ctx.Done()
		return Answer{}, ctx.Err()
	})
	start := time.Now()
	if _, err := Dial(ctx, serverEndpoint(s, ""), o); err == nil || time.Since(start) > 3*time.Second {
		t.Error(err, time.Since(start))
	}
	if data, err := os.ReadFile(o.HostKeys.file); err == nil && bytes.Contains(data, []byte("ssh-")) {
		t.Errorf("kept a key that nobody accepted: %s", data)
	}
}

type askerFunc func(context.Context, Question) (Answer, error)

func (f askerFunc) Ask(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }
