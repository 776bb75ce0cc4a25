package command

// The person at the terminal. Questions go to the terminal itself, never to
// standard input or output, so that pipes stay clean; where there is none,
// nothing asks.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	stdsync "sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"rentop/remote"
)

// asker implements remote.Asker on the controlling terminal.
type asker struct {
	mu   stdsync.Mutex // one question at a time
	open func() (in, out *os.File, err error)
}

func newAsker() *asker { return &asker{open: openTerminal} }

// Ask implements remote.Asker.
func (a *asker) Ask(ctx context.Context, q remote.Question) (remote.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return remote.Answer{}, err
	}
	in, out, err := a.open()
	if err != nil {
		return remote.Answer{}, remote.ErrNobodyToAsk
	}
	defer in.Close()
	defer out.Close()
	if q.Kind == remote.AskHostKey {
		fmt.Fprintf(out, "%s shows a host key that is not known yet:\r\n  %s %s\r\nCompare it with your platform's page. ", q.Host, q.KeyType, q.Fingerprint)
		yes, err := confirm(ctx, in, out, "Trust it? (yes/no) ")
		return remote.Answer{OK: yes}, err
	}
	if q.Retry {
		fmt.Fprint(out, "That was refused.\r\n")
	}
	text, err := readLine(ctx, in, out, prompt(q), q.Echo)
	if err != nil {
		return remote.Answer{}, err
	}
	answer := remote.Answer{OK: true, Text: text}
	if q.CanRemember && text != "" {
		answer.Remember, err = confirm(ctx, in, out, "Keep it in this system's keyring? (yes/no) ")
	}
	return answer, err
}

func prompt(q remote.Question) string {
	switch q.Kind {
	case remote.AskPassword:
		return fmt.Sprintf("Password for %s: ", q.Host)
	case remote.AskPassphrase:
		return fmt.Sprintf("Passphrase of %s: ", q.KeyFile)
	}
	return fmt.Sprintf("%s: %s ", q.Host, strings.TrimSpace(q.Prompt))
}

// confirm takes yes or no, and asks again for anything else.
func confirm(ctx context.Context, in, out *os.File, question string) (bool, error) {
	for {
		text, err := readLine(ctx, in, out, question, true)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "yes", "y":
			return true, nil
		case "no", "n":
			return false, nil
		}
	}
}

// question asks for one line on the terminal; remote.ErrNobodyToAsk without one.
func (a *asker) question(ctx context.Context, text string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in, out, err := a.open()
	if err != nil {
		return "", remote.ErrNobodyToAsk
	}
	defer in.Close()
	defer out.Close()
	return readLine(ctx, in, out, text, true)
}

const maxLine = 4096 // of an answer, in bytes

// readLine reads a line in raw mode, so that it can stay unseen and so that
// Ctrl-C declines without killing what else goes on. It ends with ctx.
func readLine(ctx context.Context, in, out *os.File, prompt string, echo bool) (string, error) {
	var before *term.State
	err := control(in, func(fd int) (err error) {
		before, err = term.MakeRaw(fd)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	defer control(in, func(fd int) error { return term.Restore(fd, before) })
	fmt.Fprint(out, prompt)
	defer fmt.Fprint(out, "\r\n")

	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	go func() { // ends with the line, or with the deadline below
		text, err := editLine(in, out, echo)
		got <- result{text, err}
	}()
	select {
	case r := <-got:
		return r.text, r.err
	case <-ctx.Done():
		if in.SetReadDeadline(time.Now()) == nil {
			<-got
		} // else this system cannot interrupt the read; the process is about to end
		return "", ctx.Err()
	}
}

// control calls f with the descriptor, which stays non-blocking, so that a read
// can be interrupted.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

// editLine collects the bytes of a line typed in raw mode.
func editLine(in io.Reader, out io.Writer, echo bool) (string, error) {
	var line, buf = []byte(nil), make([]byte, 1)
	show := func(s string) {
		if echo {
			io.WriteString(out, s)
		}
	}
	for {
		if _, err := in.Read(buf); err != nil {
			if errors.Is(err, io.EOF) {
				err = remote.ErrDeclined
			}
			return "", err
		}
		switch c := buf[0]; {
		case c == '\r' || c == '\n':
			return string(line), nil
		case c == 3, c == 4 && len(line) == 0: // Ctrl-C, Ctrl-D
			return "", remote.ErrDeclined
		case c == 8 || c == 127:
			if len(line) > 0 {
				_, n := utf8.DecodeLastRune(line)
				line = line[:len(line)-n]
				show("\b \b")
			}
		case c == 21: // Ctrl-U
			for range utf8.RuneCount(line) {
				show("\b \b")
			}
			line = line[:0]
		case c < 32:
			// keys that mean nothing here
		case len(line) < maxLine:
			line = append(line, c)
			show(string(buf))
		}
	}
}
