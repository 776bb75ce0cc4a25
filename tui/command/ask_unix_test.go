//go:build !windows

package command

// The asker on a real terminal: what is typed, what is seen.

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	stdsync "sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"rentop/remote"
	"rentop/remote/needtest"
)

// person is the other end of a terminal.
type person struct {
	master *os.File
	mu     stdsync.Mutex // protects seen
	seen   strings.Builder
}

// sit gives an asker a terminal with a person at it.
func sit(t *testing.T) (*asker, *person) {
	t.Helper()
	master, slave, err := pty.Open()
	needtest.Done(t, err, "a pseudo terminal")
	p := &person{master: master}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 1024)
		for {
			n, err := master.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { slave.Close(); <-read; master.Close() })
	return &asker{open: func() (in, out *os.File, err error) {
		if in, err = os.OpenFile(slave.Name(), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
			return nil, nil, err
		}
		out, err = os.OpenFile(slave.Name(), os.O_WRONLY|syscall.O_NOCTTY, 0)
		return in, out, err
	}}, p
}

func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// types waits for a prompt, then answers it.
func (p *person) types(t *testing.T, prompt, answer string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); strings.Count(p.screen(), prompt) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("never saw %q in %q", prompt, p.screen())
			return
		}
	}
	if _, err := io.WriteString(p.master, answer); err != nil {
		t.Error(err)
	}
}

func TestAskHostKey(t *testing.T) {
	ask, p := sit(t)
	go p.types(t, "(yes/no)", "perhaps\ryes\r")
	got, err := ask.Ask(t.Context(), remote.Question{Kind: remote.AskHostKey, Host: "root@h:22", KeyType: "ssh-ed25519", Fingerprint: "SHA256:abc"})
	if err != nil || !got.OK {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(p.screen(), "ssh-ed25519 SHA256:abc") {
		t.Errorf("the fingerprint is not on %q", p.screen())
	}
}

func TestAskPassword(t *testing.T) {
	ask, p := sit(t)
	go func() {
		p.types(t, "Password for root@h:22: ", "s3cret\r")
		p.types(t, "keyring", "no\r")
	}()
	got, err := ask.Ask(t.Context(), remote.Question{Kind: remote.AskPassword, Host: "root@h:22", Retry: true, CanRemember: true})
	if err != nil || !got.OK || got.Text != "s3cret" || got.Remember {
		t.Errorf("%+v, %v", got, err)
	}
	if strings.Contains(p.screen(), "s3cret") {
		t.Errorf("the password was shown: %q", p.screen())
	}
	if !strings.Contains(p.screen(), "refused") {
		t.Errorf("a second try does not say why: %q", p.screen())
	}
}

func TestAskDeclined(t *testing.T) {
	ask, p := sit(t)
	go p.types(t, "Code:", "12\x03")
	_, err := ask.Ask(t.Context(), remote.Question{Kind: remote.AskInteractive, Prompt: "Code:", Echo: true})
	if !errors.Is(err, remote.ErrDeclined) {
		t.Errorf("Ctrl-C gave %v", err)
	}
}

// A question ends with its context: the connection may be gone meanwhile.
func TestAskEndsWithContext(t *testing.T) {
	ask, p := sit(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		p.types(t, "Passphrase", "")
		cancel()
	}()
	_, err := ask.Ask(ctx, remote.Question{Kind: remote.AskPassphrase, KeyFile: "id"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
