package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"rentop/remote/sshtest"
)

// pool is a server's channels without a Conn's login and keepalive.
func pool(t *testing.T, s *sshtest.Server, addr string) *channels {
	t.Helper()
	c := newChannels(s.Dial(addr), func(context.Context) (*ssh.Client, error) {
		return ssh.Dial("tcp", s.Addr, s.ClientConfig())
	})
	t.Cleanup(c.close)
	return c
}

// pooled is a pool as a Runner.
type pooled struct{ *channels }

func (p pooled) Run(ctx context.Context, cmd Cmd) error {
	_, err := p.run(ctx, cmd)
	return err
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// hostile is a script's word that every shell on the way must leave alone.
const hostile = "a'b\"c $HOME `id` \\n \\\\ !! %s ; & | <>(){}[]*?~# \u00e9\u4e2d\u6587\t."

func TestRunAnyShell(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    sshtest.Options
	}{
		{"bash", sshtest.Options{}},
		{"dash", sshtest.Options{Shell: "dash"}},
		{"bash noisy", sshtest.Options{Noise: true}},
		{"fish noisy", sshtest.Options{Shell: "fish", Noise: true}},
		{"tcsh noisy", sshtest.Options{Shell: "tcsh", Noise: true}},
		{"dropbear noisy", sshtest.Options{Dropbear: true, Noise: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := pool(t, sshtest.Start(t, tt.o), "")
			var out, errOut bytes.Buffer
			data := make([]byte, 300<<10)
			rand.Read(data)
			noise, err := c.run(soon(t), Cmd{
				Script: "printf '%s\\n' " + Quote(hostile) + "; echo err >&2; cat; exit 42",
				Stdin:  bytes.NewReader(data), Stdout: &out, Stderr: &errOut})
			if code, ok := ExitCode(err); !ok || code != 42 {
				t.Fatalf("err = %v, want exit 42", err)
			}
			if want := hostile + "\n" + string(data); out.String() != want {
				t.Errorf("stdout differs: %d bytes, want %d: %.200q", out.Len(), len(want), out.String())
			}
			if errOut.String() != "err\n" {
				t.Errorf("stderr = %q", errOut.String())
			}
			if (noise > 0) != tt.o.Noise {
				t.Errorf("noise = %d bytes", noise)
			}
		})
	}
}

func TestRunEnds(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := pool(t, s, "")
	for _, tt := range []struct {
		script string
		want   ExitError
	}{
		{"exit 255", ExitError{Code: 255}},
		{"kill -s KILL $$", ExitError{Code: 137, Signal: "KILL"}},
		{"kill -s SEGV $$", ExitError{Code: 139, Signal: "SEGV"}},
		{"printf 'no \\033[31mroom\\n' >&2; exit 3", ExitError{Code: 3, Stderr: "no \u241b[31mroom "}},
		{"syntax (", ExitError{Code: 2}},
	} {
		_, err := c.run(soon(t), Cmd{Script: tt.script})
		var e *ExitError
		if !errors.As(err, &e) || e.Code != tt.want.Code || e.Signal != tt.want.Signal || tt.want.Stderr != "" && e.Stderr != tt.want.Stderr {
			t.Errorf("%s: %#v, want %#v", tt.script, err, tt.want)
		}
	}
	if _, err := c.run(soon(t), Cmd{Script: "true"}); err != nil {
		t.Error(err)
	}
	if _, err := c.run(soon(t), Cmd{Script: "a\x00b"}); err == nil {
		t.Error("a NUL byte in a script was sent")
	}
	big := strings.Repeat("# a comment of some length\n", 4000) + "echo $((6*7))"
	if b, err := Output(soon(t), pooled{c}, big); err != nil || string(b) != "42\n" {
		t.Errorf("a script of 100 KB: %q, %v", b, err)
	}
	if b, err := Output(soon(t), pooled{c}, "head -c 20000000 /dev/zero"); !errors.Is(err, ErrTooLong) || len(b) != maxOutput {
		t.Errorf("20 MB: %d bytes, %v", len(b), err)
	}
	// A writer that fails ends the command.
	r, w := io.Pipe()
	r.Close()
	if _, err := c.run(soon(t), Cmd{Script: "yes", Stdout: w}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed writer: %v", err)
	}
}

func TestRunVastHook(t *testing.T) {
	c := pool(t, sshtest.Start(t, sshtest.Options{Files: map[string]string{".bashrc": "echo no sessions; exit\n"}}), "")
	_, err := c.run(soon(t), Cmd{Script: "echo hello"})
	var e *NoMarkerError
	if !errors.As(err, &e) || e.Said != "no sessions" || e.Timeout || !strings.Contains(err.Error(), "no_auto_tmux") {
		t.Errorf("err = %v", err)
	}
}

func TestRunCancelled(t *testing.T) {
	for _, o := range []sshtest.Options{{}, {Shell: "fish"}, {Dropbear: true}} {
		t.Run(fmt.Sprint("dropbear=", o.Dropbear, o.Shell), func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, o)
			c := pool(t, s, "")
			ctx, cancel := context.WithCancel(soon(t))
			r, w := io.Pipe()
			go func() { r.Read(make([]byte, 10)); cancel(); io.Copy(io.Discard, r) }()
			_, err := c.run(ctx, Cmd{Script: "echo begun; while :; do echo x; sleep 0.1; done", Stdout: w})
			w.Close()
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("err = %v", err)
			}
			for end := time.Now().Add(5 * time.Second); len(s.Processes()) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("still running: %q", s.Processes())
				}
			}
		})
	}
}

func TestRunCut(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	p := sshtest.NewProxy(t, s.Addr)
	for _, how := range []sshtest.Cut{sshtest.RST, sshtest.FIN} {
		c := pool(t, s, p.Addr)
		p.CutAfter(sshtest.ToClient, 30000, how)
		if _, err := c.run(soon(t), Cmd{Script: "head -c 100000 /dev/zero; exit 0"}); !errors.Is(err, ErrCut) {
			t.Errorf("err = %v, want ErrCut", err)
		}
		if _, err := c.run(soon(t), Cmd{Script: "true"}); !errors.Is(err, ErrCut) {
			t.Errorf("on a dead connection: %v, want ErrCut", err)
		}
	}
	c := pool(t, s, "")
	go func() { time.Sleep(200 * time.Millisecond); s.KillSessions9() }()
	if _, err := c.run(soon(t), Cmd{Script: "sleep 60"}); !errors.Is(err, ErrCut) {
		t.Errorf("sshd killed: %v, want ErrCut", err)
	}
	// A hole: the caller's deadline holds.
	c = pool(t, s, p.Addr)
	p.CutNow(sshtest.Hole)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := c.run(ctx, Cmd{Script: "true"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
		t.Errorf("in a hole: %v after %v", err, time.Since(start))
	}
}

func TestRunMaxSessions(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, sshtest.Options{MaxSessions: limit})
			for _, extend := range []bool{false, true} {
				c := pool(t, s, "")
				if !extend {
					c.another = nil
				}
				for range 8 { // one after the other
					if _, err := c.run(soon(t), Cmd{Script: "true"}); err != nil {
						t.Fatal(err)
					}
				}
				var wg sync.WaitGroup
				for range 12 {
					wg.Go(func() {
						if _, err := c.run(soon(t), Cmd{Script: "sleep 0.05"}); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			// Streams that never end take the whole limit: short commands still run.
			c := pool(t, s, "")
			ctx, cancel := context.WithCancel(soon(t))
			defer wgWait(t, limit, func() {
				if _, err := c.run(ctx, Cmd{Script: "cat", Stdin: forever{ctx}}); !errors.Is(err, context.Canceled) {
					t.Errorf("stream: %v", err)
				}
			})()
			defer cancel()
			time.Sleep(200 * time.Millisecond)
			start := time.Now()
			if _, err := c.run(soon(t), Cmd{Script: "true"}); err != nil || time.Since(start) > 3*time.Second {
				t.Errorf("beside %d streams: %v after %v", limit, err, time.Since(start))
			}
		})
	}
}

func wgWait(t *testing.T, n int, f func()) func() {
	var wg sync.WaitGroup
	for range n {
		wg.Go(f)
	}
	return wg.Wait
}

// forever is a stdin that ends with its context.
type forever struct{ ctx context.Context }

func (f forever) Read([]byte) (int, error) { <-f.ctx.Done(); return 0, io.EOF }

func TestLocal(t *testing.T) {
	var out bytes.Buffer
	err := Local{Env: []string{"PATH=/usr/bin:/bin", "A=" + hostile}}.Run(soon(t), Cmd{Script: `printf '%s\n' "$A"; cat; kill -s TERM $$`, Stdin: strings.NewReader("in"), Stdout: &out})
	var e *ExitError
	if !errors.As(err, &e) || e.Code != 143 || e.Signal != "TERM" {
		t.Errorf("err = %v", err)
	}
	if out.String() != hostile+"\nin" {
		t.Errorf("out = %q", out.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := (Local{}).Run(ctx, Cmd{Script: "sleep 60; true"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
}

func FuzzScriptLine(f *testing.F) {
	f.Add("echo hi")
	f.Add(hostile + "\n\r\x01\xff")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := scriptLine(s)
		if err != nil {
			return
		}
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q is not one line", line)
		}
	})
}

func FuzzDemarker(f *testing.F) {
	f.Add([]byte("noise\nM1\nrest"), 3)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		step = max(1, min(step, 1000))
		marker := []byte("M1\n")
		var got bytes.Buffer
		d := &demarker{marker: marker, w: &got}
		for i := 0; i < len(b); i += step {
			if n, err := d.Write(b[i:min(i+step, len(b))]); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		found, noise, _ := d.shut()
		before, after, ok := bytes.Cut(b, marker)
		if ok != found || noise != len(before) || ok && sha256.Sum256(after) != sha256.Sum256(got.Bytes()) {
			t.Fatalf("%q: found %v noise %d got %q", b, found, noise, got.Bytes())
		}
	})
}

// An answer without end is refused when it is too long, not drained for ever.
func TestOutputWithoutEnd(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	p := pooled{pool(t, s, "")}
	if b, err := Output(soon(t), p, "yes"); !errors.Is(err, ErrTooLong) || len(b) > maxOutput {
		t.Errorf("stdout: %d bytes, %v", len(b), err)
	}
	if err := p.Run(soon(t), Cmd{Script: "yes >&2"}); !errors.Is(err, ErrTooLong) {
		t.Errorf("stderr: %v", err)
	}
}
