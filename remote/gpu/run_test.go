//go:build unix

package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote"
)

// local runs scripts under this machine's sh, as a connection would: where the
// context ends, both streams are cut and nothing is killed.
type local struct {
	edit  func(script string) string
	shell string      // "": sh
	stall bool        // a half-open connection: stdin stays open and brings nothing
	began chan string // a mark in the environment of all that it started
}

func (l local) Run(ctx context.Context, c remote.Cmd) error {
	script := c.Script
	if l.edit != nil {
		script = l.edit(script)
	}
	args := append(strings.Fields(cmp.Or(l.shell, "sh")), "-c", script)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	mark := fmt.Sprintf("RENTOP_TEST_RUN=%d.%d", os.Getpid(), time.Now().UnixNano())
	cmd.Env = append(os.Environ(), mark)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	if l.began != nil {
		l.began <- mark
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if c.Stdin != nil && !l.stall {
		go func() { io.Copy(in, c.Stdin); in.Close() }()
	}
	copied := make(chan struct{})
	go func() { io.Copy(c.Stdout, out); close(copied) }()
	select {
	case <-ctx.Done():
		if !l.stall {
			in.Close()
		}
		out.Close()
		return ctx.Err()
	case err := <-ended:
		<-copied
		var e *exec.ExitError
		if errors.As(err, &e) {
			return &remote.ExitError{Code: e.ExitCode()}
		}
		return err
	}
}

// smi makes an nvidia-smi of testdata/smi.sh that behaves as mode says.
func smi(t *testing.T, mode string, env ...string) *remote.Facts {
	t.Helper()
	src, err := filepath.Abs("testdata/smi.sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	body := fmt.Sprintf("#!/bin/sh\nMODE=%s %s exec sh %s \"$@\"\n", mode, strings.Join(env, " "), remote.Quote(src))
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	return &remote.Facts{NvidiaSMI: path}
}

// collect streams until n samples came or until says so.
func collect(t *testing.T, l local, f *remote.Facts, o Options, n int) []Sample {
	t.Helper()
	l.began = make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	var got []Sample
	err := Stream(ctx, l, f, o, func(s Sample) {
		if got = append(got, s); len(got) == n {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Stream ended with %v after %d samples", err, len(got))
	}
	gone(t, <-l.began, 4*time.Second)
	return got
}

// gone fails where something that the run with this mark started is alive after d.
func gone(t *testing.T, mark string, d time.Duration) {
	t.Helper()
	var left []string
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		left = nil
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, e := range environs {
			if env, err := os.ReadFile(e); err == nil && strings.Contains(string(env), mark) {
				cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(e), "cmdline"))
				left = append(left, remote.Short(e+" "+string(cmd), 120))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("still running %v after the end:\n%s", d, strings.Join(left, "\n"))
}

func has(t *testing.T, what string, v Value, want float64) {
	t.Helper()
	if got, ok := v.Get(); !ok || got != want {
		t.Errorf("%s = %+v, want %g", what, v, want)
	}
}
