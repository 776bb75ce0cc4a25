// Package serve is the helper's side of a link: the process on the instance that
// carries out services for rentop over its stdin and stdout, and is gone when they
// close. It depends only on the standard library, x/sys and what the link is made of.
package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"rentop/remote/agent/hello"
	"rentop/remote/agent/link"
)

// Service carries out what the other side asks for until Recv ends, or ctx. An
// error is for the other side's eyes: it goes to stderr.
type Service func(ctx context.Context, l link.Link) error

const (
	greetTimeout = 60 * time.Second // for the other side's greeting
	grace        = 10 * time.Second // for a service whose link has ended
	hurry        = 500 * time.Millisecond
	// memory is what the process takes before it collects more often: an instance may
	// be small, and garbage waits for as much again as is in use.
	memory = 200 << 20
)

const usage = `usage: rentop-agent serve SERVICE | join SOCKET | check SHA256 | version
It is rentop's helper on an instance: started by it, over its own SSH connection, and gone with it.
`

// Main runs one command line and returns the exit code: 0 done, 1 failed, 2 wrong
// usage. It takes over stdin and stdout.
func Main(ctx context.Context, args []string, services map[string]Service) int {
	fail := func(err error) int {
		if err == nil {
			return 0
		}
		fmt.Fprintf(os.Stderr, "rentop-agent: %v\n", err)
		return 1
	}
	switch {
	case len(args) == 1 && args[0] == "version":
		fmt.Printf("rentop-agent %d %s/%s\n", hello.Version, runtime.GOOS, runtime.GOARCH)
		return 0
	case len(args) == 2 && args[0] == "check":
		return fail(check(args[1]))
	case len(args) == 2 && args[0] == "serve":
		return fail(serve(ctx, args[1], services))
	case len(args) == 2 && args[0] == "join":
		return fail(join(args[1]))
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}

// check compares the running file with a SHA-256: for an instance that has no
// program for it.
func check(want string) error {
	name, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s, not %s", name, got, want)
	}
	return nil
}

// serve greets, runs one service and ends with it, with the end of stdin or with a
// signal. Nothing of it stays.
func serve(ctx context.Context, name string, services map[string]Service) error {
	// Notified, a broken pipe is an error of Write and not the end: cleaning follows.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	first := stdio()
	run, known := services[name]
	h := hello.New()
	h.Program, _ = os.Executable()
	if !known {
		h.Error = fmt.Sprintf("no service is called %q; there are %s", name, strings.Join(names(services), ", "))
	}
	doors := &doors{}
	defer doors.close()
	if known {
		h.Join = doors.open()
	}
	if err := h.Write(first); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	if !known {
		return errors.New(h.Error)
	}
	theirs, err := greeting(ctx, first)
	if err != nil {
		return err
	}
	if _, err := theirs.Agree(); err != nil {
		return err
	}
	go tidy(h.Program, time.Now()) // ends by itself, or with the process

	debug.SetMemoryLimit(memory)
	l := link.New(first, link.Options{Hasty: true})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go doors.admit(l)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l) }()
	gone := hungUp(ctx, first)
	done := false
	select {
	case err = <-ended:
		done = true
	case <-ctx.Done():
	case <-l.Done():
	case <-gone:
	}
	if !done { // the link is over, or we are told to end: the service notices
		select {
		case err = <-ended:
		case <-time.After(grace):
			return fmt.Errorf("%s was still busy when the connection ended", name)
		case <-ctx.Done():
		}
	}
	signalled := ctx.Err() != nil
	cancel()
	if !signalled {
		return errors.Join(err, l.Close())
	}
	err = errors.New("ended by a signal") // whatever the service made of it
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }() // ends with the process
	select {                                 // whoever sent the signal waits no longer
	case <-closed:
	case <-time.After(hurry):
	}
	return err
}

func names(services map[string]Service) []string {
	var out []string
	for n := range services {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// greeting reads the other side's, within its time.
func greeting(ctx context.Context, r io.Reader) (hello.Hello, error) {
	type result struct {
		h   hello.Hello
		err error
	}
	got := make(chan result, 1)
	go func() { // ends with stdin or the process
		h, err := hello.Read(r)
		got <- result{h, err}
	}()
	t := time.NewTimer(greetTimeout)
	defer t.Stop()
	select {
	case g := <-got:
		return g.h, g.err
	case <-t.C:
		return hello.Hello{}, errors.New("no greeting came")
	case <-ctx.Done():
		return hello.Hello{}, ctx.Err()
	}
}

// stripe is a pair of files as one end of a link.
type stripe struct {
	in, out *os.File
	end     func() // after both are closed; may be nil
}

func (s *stripe) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *stripe) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *stripe) CloseWrite() error           { return s.out.Close() }

func (s *stripe) Close() error {
	s.out.Close()
	err := s.in.Close()
	if s.end != nil {
		s.end()
	}
	return err
}

const (
	oldAfter  = 7 * 24 * time.Hour
	halfAfter = 24 * time.Hour // a file of an install that did not end
	// Prefix begins the helper's file names; Half those of one that is not whole yet.
	Prefix = "rentop-agent-"
	Half   = ".rentop-agent-"
)

// tidy marks the running file as used and removes helpers beside it that nobody
// has used for a week.
func tidy(program string, now time.Time) {
	dir, name := filepath.Split(program)
	if !strings.HasPrefix(name, Prefix) {
		return // not installed by rentop
	}
	os.Chtimes(program, now, now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		age := oldAfter
		switch {
		case strings.HasPrefix(e.Name(), Half):
			age = halfAfter
		case !strings.HasPrefix(e.Name(), Prefix) || e.Name() == name:
			continue
		}
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && now.Sub(fi.ModTime()) > age {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
