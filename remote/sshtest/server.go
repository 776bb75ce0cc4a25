package sshtest

// The server's life: start, kill -9, restart, a new host key, the end.

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
)

// Options choose the server and what its user meets. The zero value is an
// OpenSSH sshd with bash, public keys and sftp.
type Options struct {
	Dropbear     bool
	Shell        string            // login shell by name or path; "" is bash
	NoSFTP       bool              // OpenSSH only
	InternalSFTP bool              // OpenSSH only: no sftp-server process
	MaxSessions  int               // OpenSSH only; 0 is the server's default
	MaxAuthTries int               // 0 is the server's default
	MaxStartups  string            // OpenSSH only: "2", "10:30:100"
	Banner       string            // sent before authentication
	Noise        bool              // every shell's rc file writes to stdout and stderr
	Password     string            // also allow this password
	Files        map[string]string // written below the home, such as ".bashrc"
	Hide         []string          // programs that sh in this server's sessions does not find: "tmux"
	SmallHome    string            // the home is a tmpfs of this size: "1m"
	Extra        []string          // further sshd_config lines, or Dropbear arguments
}

// Server is a running server and the user to log in as.
type Server struct {
	Addr    string // 127.0.0.1:port, the same after Restart
	User    string
	Home    string // as the sessions see it
	KeyFile string // the client's private key, OpenSSH format, no passphrase
	Signer  ssh.Signer
	Dir     string // holds keys, configuration and log

	t    testing.TB
	o    Options
	user *account
	port int

	mu      sync.Mutex
	hostKey ssh.PublicKey
	cmd     *exec.Cmd
	done    chan struct{} // closed when cmd ended
}

// Start starts a server and ends it, with all that its user left running, when
// the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	daemon := "sshd"
	if o.Dropbear {
		daemon = "dropbear"
	}
	need(t, daemon, "useradd", "userdel", "chpasswd")
	if o.Dropbear {
		need(t, "dropbearconvert")
		if o.NoSFTP || o.InternalSFTP || o.MaxSessions != 0 || o.MaxStartups != "" {
			t.Fatal("sshtest: Dropbear cannot be told NoSFTP, InternalSFTP, MaxSessions or MaxStartups")
		}
	}
	if len(o.Hide) > 0 || o.SmallHome != "" {
		needMounts(t)
	}
	shell := o.Shell
	if shell == "" {
		shell = "bash"
	}
	need(t, shell)
	shell, _ = exec.LookPath(shell)

	dir, err := os.MkdirTemp("", "sshtest")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755)) // the user must reach its home
	s := &Server{Dir: dir, Home: filepath.Join(dir, "home"), KeyFile: filepath.Join(dir, "id_ed25519"), t: t, o: o}
	s.user = newAccount(t, s.Home, shell, o.Password)
	s.User = s.user.name

	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	s.Signer, err = ssh.NewSignerFromKey(key)
	check(t, err)
	block, err := ssh.MarshalPrivateKey(key, "sshtest")
	check(t, err)
	check(t, os.WriteFile(s.KeyFile, pem.EncodeToMemory(block), 0o600))
	public := ssh.MarshalAuthorizedKey(s.Signer.PublicKey())
	check(t, os.WriteFile(filepath.Join(dir, "authorized_keys"), public, 0o644))

	files := map[string]string{".ssh/authorized_keys": string(public)}
	if o.Noise {
		for name, text := range noise {
			files[name] = text
		}
	}
	for name, text := range o.Files {
		files[name] += text
	}
	if o.SmallHome == "" { // else filled by start, inside the mount
		s.user.fill(t, s.Home, files)
	} else {
		s.user.fill(t, filepath.Join(dir, "skeleton"), files)
	}
	s.newHostKey()
	for try := 0; ; try++ {
		s.port = freePort(t)
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		if err = s.start(); err == nil {
			break
		}
		if try == 3 {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.Kill9()
		s.user.killAll()
		if t.Failed() {
			if log, err := os.ReadFile(filepath.Join(dir, "log")); err == nil {
				t.Logf("server log:\n%s", tail(log, 4000))
			}
		}
	})
	return s
}

// HostKey is the key that the server shows now.
func (s *Server) HostKey() ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hostKey
}

// ClientConfig logs the user in with its key and accepts only this server.
func (s *Server) ClientConfig() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:            s.User,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(s.Signer)},
		HostKeyCallback: ssh.FixedHostKey(s.HostKey()),
		Timeout:         20 * time.Second,
	}
}

// Dial opens a plain connection, closed when the test ends. addr "" is the
// server's own; a Proxy's goes through it.
func (s *Server) Dial(addr string) *ssh.Client {
	s.t.Helper()
	if addr == "" {
		addr = s.Addr
	}
	c, err := ssh.Dial("tcp", addr, s.ClientConfig())
	check(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Kill9 kills the listener and every session's server process, as a crash or
// the OOM killer does. What the sessions started lives on.
func (s *Server) Kill9() {
	s.mu.Lock()
	cmd, done := s.cmd, s.done
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	killServers(cmd.Process.Pid, true)
	<-done
}

// KillSessions9 kills the sessions' server processes; the listener lives on.
func (s *Server) KillSessions9() {
	s.mu.Lock()
	cmd := s.cmd
	s.mu.Unlock()
	if cmd != nil {
		killServers(cmd.Process.Pid, false)
	}
}

// Restart starts the server again on the same port, after Kill9 if it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill9()
	check(s.t, s.start())
}

// ReplaceHostKey gives the server another host key and restarts it, as a
// provider does that hands the same address to another machine.
func (s *Server) ReplaceHostKey() {
	s.t.Helper()
	s.Kill9()
	s.newHostKey()
	check(s.t, s.start())
}

// Processes lists the command lines of what the user runs now, without the
// server's own.
func (s *Server) Processes() []string { return s.user.processes() }

// KillUser9 kills every process of the user whose command line contains text
// and returns how many it met.
func (s *Server) KillUser9(text string) int { return s.user.kill9(text) }

func (s *Server) newHostKey() {
	s.t.Helper()
	var key crypto.Signer
	var err error
	if s.o.Dropbear {
		// Without an RSA key, Dropbear 2022.83 offers rsa-sha2 all the same and
		// dies of a failed assertion when a client takes it.
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	check(s.t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	check(s.t, err)
	file := filepath.Join(s.Dir, "host_key")
	check(s.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	if s.o.Dropbear {
		os.Remove(file + ".dropbear")
		out, err := exec.Command("dropbearconvert", "openssh", "dropbear", file, file+".dropbear").CombinedOutput()
		if err != nil {
			s.t.Fatalf("dropbearconvert: %v: %s", err, out)
		}
	}
	k, err := ssh.NewPublicKey(key.Public())
	check(s.t, err)
	s.mu.Lock()
	s.hostKey = k
	s.mu.Unlock()
}

// start runs the daemon on s.port and waits for its greeting.
func (s *Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args, err := s.arguments()
	if err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
		select {
		case <-done:
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s ended: %s", args[0], tail(text, 2000))
		case <-time.After(10 * time.Millisecond):
		}
		if !greets(s.Addr) {
			continue
		}
		select {
		case <-done: // someone else's server on our port
			continue
		case <-time.After(20 * time.Millisecond):
		}
		s.mu.Lock()
		s.cmd, s.done = cmd, done
		s.mu.Unlock()
		return nil
	}
	cmd.Process.Kill()
	<-done
	return fmt.Errorf("%s did not answer on %s", args[0], s.Addr)
}

func greets(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	var b [4]byte
	n, _ := c.Read(b[:])
	return string(b[:n]) == "SSH-"
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// need skips the test unless it runs on Linux as root and finds the programs.
func need(t testing.TB, programs ...string) {
	t.Helper()
	needtest.That(t, runtime.GOOS == "linux", "Linux, for a server of the test's own")
	needtest.That(t, os.Getuid() == 0, "root, for a throw-away user")
	for _, p := range programs {
		needtest.Program(t, p)
	}
}

func needMounts(t testing.TB) {
	t.Helper()
	need(t, "unshare", "mount")
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "sshtest", "/mnt").CombinedOutput(); err != nil {
		needtest.Done(t, fmt.Errorf("%w: %s", err, bytes.TrimSpace(out)), "mount namespaces (unshare -m)")
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
	}
	return strings.TrimSpace(string(b))
}
