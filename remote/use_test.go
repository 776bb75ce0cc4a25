package remote

// Terminal, SFTP, Forward and Probe over real servers.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

func connect(t *testing.T, s *sshtest.Server) *Conn {
	t.Helper()
	o := testOptions(t, &person{})
	o.AcceptHostKey = ssh.FingerprintSHA256(s.HostKey())
	ep := serverEndpoint(s, "")
	ep.IdentityAgent = "none"
	c, err := Dial(soon(t), ep, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestTerminal(t *testing.T) {
	for _, o := range []sshtest.Options{{}, {Shell: "fish"}, {Shell: "tcsh"}, {Dropbear: true}} {
		t.Run(fmt.Sprint(o.Shell, o.Dropbear), func(t *testing.T) {
			t.Parallel()
			c := connect(t, sshtest.Start(t, o))
			in, keys := io.Pipe()
			defer keys.Close()
			resize := make(chan Size, 1)
			var scr sshtest.Screen
			done := make(chan struct{})
			var code int
			var err error
			go func() {
				defer close(done)
				code, err = c.Terminal(soon(t), TerminalOptions{Size: Size{101, 37}, Resize: resize, In: in, Out: &scr,
					Script: "printf '<%s>\\n' " + Quote(hostile) + " \"$TERM\"; stty size; while read -r l; do [ \"$l\" = end ] && exit 5; echo \"got $l\"; stty size; done"})
			}()
			scr.Wait(t, hostile)
			scr.Wait(t, "<xterm-256color>")
			scr.Wait(t, "37 101")
			resize <- Size{90, 20}
			time.Sleep(100 * time.Millisecond)
			io.WriteString(keys, "hello\r")
			scr.Wait(t, "got hello")
			scr.Wait(t, "20 90")
			io.WriteString(keys, "end\r")
			<-done
			if code != 5 || err != nil {
				t.Errorf("exit %d, %v", code, err)
			}
		})
	}
}

func TestTerminalLoginShellAndCut(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := connect(t, s)
	in, keys := io.Pipe()
	defer keys.Close()
	var scr sshtest.Screen
	go func() { scr.Wait(t, "$"); io.WriteString(keys, "echo $((6*7)); exit 3\r") }()
	code, err := c.Terminal(soon(t), TerminalOptions{In: in, Out: &scr})
	if code != 3 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	scr.Wait(t, "42")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Terminal(ctx, TerminalOptions{In: in, Out: &scr, Script: "sleep 100"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	go func() { time.Sleep(200 * time.Millisecond); s.KillSessions9() }()
	if _, err := c.Terminal(soon(t), TerminalOptions{In: in, Out: &scr, Script: "sleep 100"}); !errors.Is(err, ErrCut) {
		t.Errorf("err = %v", err)
	}
}

func TestSFTP(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    sshtest.Options
		ok   bool
	}{
		{"subsystem", sshtest.Options{}, true},
		{"internal", sshtest.Options{InternalSFTP: true, Noise: true}, true},
		{"noisy", sshtest.Options{Noise: true}, true},
		{"no subsystem", sshtest.Options{NoSFTP: true}, true},
		{"fish, no subsystem", sshtest.Options{NoSFTP: true, Shell: "fish", Noise: true}, true},
		{"dropbear noisy", sshtest.Options{Dropbear: true, Noise: true}, true},
		{"none", sshtest.Options{NoSFTP: true, Hide: []string{"sftp-server"}}, false},
		{"hook", sshtest.Options{NoSFTP: true, Files: map[string]string{".bashrc": "echo no sessions; exit\n"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, sshtest.Start(t, tt.o))
			f, err := c.SFTP(soon(t))
			if !tt.ok {
				var none *NoSFTPError
				if !errors.As(err, &none) {
					t.Errorf("err = %v, want *NoSFTPError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			w, err := f.Create("file")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := w.ReadFromWithConcurrency(bytes.NewReader(want), 256); n != int64(len(want)) || err != nil {
				t.Fatal(n, err)
			}
			w.Close()
			r, err := f.Open("file")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if _, err := r.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("read %d bytes, %v", got.Len(), err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if b, err := Output(soon(t), c, "wc -c <file"); strings.TrimSpace(string(b)) != "1048576" || err != nil {
				t.Errorf("%q %v", b, err)
			}
		})
	}
}

func TestForward(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	s := sshtest.Start(t, sshtest.Options{MaxSessions: 1})
	c := connect(t, s)
	ctx, cancel := context.WithCancel(soon(t))
	ended, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- c.Forward(ctx, "0", strings.Replace(echo.Addr().String(), "127.0.0.1", "", 1), func(a string) { ready <- a }, nil)
	}()
	addr := <-ready
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			want := bytes.Repeat([]byte("x1y2"), 20000)
			go func() { conn.Write(want); conn.(*net.TCPConn).CloseWrite() }()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes back, %v", len(got), err)
			}
		})
	}
	wg.Wait()
	open, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if err := c.Forward(soon(t), echo.Addr().String(), "1", nil, nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a port in use: %v", err)
	}
	for _, bad := range [][2]string{{"", "1"}, {"a:b:c", "1"}, {"0", "0"}, {"99999", "1"}, {"0", "x"}} {
		if err := c.Forward(soon(t), bad[0], bad[1], nil, nil); err == nil {
			t.Errorf("forward %q was taken", bad)
		}
	}
	go func() {
		ended <- c.Forward(soon(t), "0", "127.0.0.1:1", func(string) { go s.KillSessions9() }, nil)
	}()
	if err := <-ended; !errors.Is(err, ErrCut) {
		t.Errorf("err = %v, want ErrCut", err)
	}
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct {
		o     sshtest.Options
		shell string
		tmux  bool
	}{
		{sshtest.Options{}, "bash", true},
		{sshtest.Options{Noise: true}, "bash", true},
		{sshtest.Options{Shell: "fish", Noise: true, Hide: []string{"tmux", "zstd"}}, "fish", false},
		{sshtest.Options{Shell: "tcsh", Dropbear: true}, "tcsh", true},
	} {
		t.Run(fmt.Sprint(tt.shell, tt.o.Noise), func(t *testing.T) {
			t.Parallel()
			needtest.Program(t, "tmux")
			s := sshtest.Start(t, tt.o)
			f, err := Probe(soon(t), connect(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if f.Shell != tt.shell || f.User != s.User || f.Home != s.Home || f.Root || f.OS == "" || f.Arch == "" || f.Kernel == "" || f.Libc == "" ||
				(f.Tmux != "") != tt.tmux || !f.Gzip || !f.Setsid || !f.Script || f.Took <= 0 || (f.BannerNoise > 0) != tt.o.Noise {
				t.Errorf("%+v", f)
			}
			if d := f.At.Sub(f.Clock); d < -2*time.Second || d > 5*time.Second {
				t.Errorf("clock is off by %v", d)
			}
			if f.Box == "" || f.BoxStart.IsZero() || f.BoxStart.After(f.Clock.Add(time.Minute)) {
				t.Errorf("box %q since %v", f.Box, f.BoxStart)
			}
		})
	}
}

func TestParseProbe(t *testing.T) {
	f, err := parseProbe([]byte("rentop-probe 1\nnow 1700000600\nbtime 1700000000\nhz 100\nstart 5000\nboot abc\nshell /usr/bin/\x1b[31mfish\n" +
		"gpu GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\ngpu Failed to initialize NVML\nrsync rsync  version 3.2.7  protocol version 31\nuid 0\nrentop-probe-end 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Box != "abc/5000" || f.BoxStart.Unix() != 1700000050 || f.Shell != "\u241b[31mfish" || len(f.GPUs) != 1 || f.GPUs[0] != "NVIDIA A100-SXM4-80GB" || f.Rsync != "3.2.7" || !f.Root {
		t.Errorf("%+v", f)
	}
	for _, bad := range []string{"", "hello", "rentop-probe 1\nnow 5\n"} {
		if _, err := parseProbe([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	f, err = parseProbe([]byte("rentop-probe 1\nnow -1\nstart x\nbtime 99999999999999999999\nrentop-probe-end 1\n"))
	if err != nil || !f.Clock.IsZero() || f.Box != "" || !f.BoxStart.IsZero() {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzParseProbe(f *testing.F) {
	f.Add([]byte("rentop-probe 1\nnow 1700000600\nstart 5000\nboot abc\ngpu GPU 0: X (UUID: GPU-1)\nrentop-probe-end 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		facts, err := parseProbe(b)
		if err != nil {
			return
		}
		if len(facts.GPUs) > maxGPUs || len(facts.OtherSMI) > maxGPUs {
			t.Fatal("unbounded")
		}
		for _, s := range append(append([]string{facts.Shell, facts.User, facts.OS, facts.Box, facts.Tmux, facts.NvidiaSMI}, facts.GPUs...), facts.OtherSMI...) {
			if s != Clean(s) || len([]rune(s)) > maxField+30 {
				t.Fatalf("%q is not clean", s)
			}
		}
	})
}
