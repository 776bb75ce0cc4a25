package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rentop/remote"
	"rentop/session/config"
	"rentop/session/release"
	"rentop/sync"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"cd x && make"}, "cd x && make"},
		{[]string{"nvidia-smi", "-L"}, "nvidia-smi -L"},
		{[]string{"sh", "-c", "echo $HOME; exit 3"}, `sh -c 'echo $HOME; exit 3'`},
		{[]string{"touch", "it's"}, `touch 'it'\''s'`},
		{[]string{"echo", ""}, "echo ''"},
	} {
		if got := line(c.words); got != c.want {
			t.Errorf("line(%q) = %s, want %s", c.words, got, c.want)
		}
	}
}

func TestPorts(t *testing.T) {
	for _, c := range []struct{ in, local, there string }{
		{"8888", "127.0.0.1:8888", "127.0.0.1:8888"},
		{"9000:6006", "127.0.0.1:9000", "127.0.0.1:6006"},
		{"0", "", ""}, {"70000", "", ""}, {"x:1", "", ""}, {"1:2:3", "", ""}, {"-1", "", ""}, {"", "", ""},
	} {
		local, there, err := ports(c.in)
		if local != c.local || there != c.there || (err != nil) != (c.local == "") {
			t.Errorf("ports(%q) = %q, %q, %v", c.in, local, there, err)
		}
		if err != nil && exitCode(err) != usage {
			t.Errorf("ports(%q): exit code %d, want %d", c.in, exitCode(err), usage)
		}
	}
}

func TestLogin(t *testing.T) {
	for _, c := range []struct {
		words     []string
		ssh, host string
	}{
		{[]string{"ssh -p 41237 root@h"}, "ssh -p 41237 root@h", ""},
		{[]string{"root@h:22"}, "root@h:22", ""},
		{[]string{"ssh://root@h:22"}, "ssh://root@h:22", ""},
		{[]string{"my-alias"}, "", "my-alias"},
		{[]string{" h:22 "}, "h:22", ""},
	} {
		in := config.Instance{Host: "old", SSH: "old"}
		login(c.words, &in)
		if in.SSH != c.ssh || in.Host != c.host {
			t.Errorf("login(%q): ssh %q host %q", c.words, in.SSH, in.Host)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("disk full"), failed},
		{badUsage("no"), usage},
		{&config.Error{File: "config.toml", Line: 3, What: "unknown key"}, usage},
		{refuse("no"), refused},
		{&sync.RefusedError{}, refused},
		{&remote.HostKeyUnknownError{Err: remote.ErrNobodyToAsk}, refused},
		{&remote.HostKeyChangedError{}, refused},
		{&remote.AuthError{}, failed},
		{context.DeadlineExceeded, failed},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%T %v) = %d, want %d", c.err, c.err, got, c.want)
		}
	}
}

// An instance's escape sequences in an error do not reach the terminal.
func TestErrorIsCleaned(t *testing.T) {
	var out bytes.Buffer
	a := &app{Program: Program{Err: &out}}
	if code := a.end(t.Context(), &cobra.Command{}, errors.New("bad \x1b]0;title\x07 name")); code != failed {
		t.Errorf("exit code %d", code)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("escape sequence in %q", out.String())
	}
}

func TestCleaner(t *testing.T) {
	text := "step 1\r\nloss\t0.5\r 50%\x1b[31mred\x1b[0m\x1b]0;title\x07 训练 e\u0301 \x1b]8;;http://x\x1b\\link\x1b(B\x9b end\x00\n\xff"
	want := "step 1\r\nloss\t0.5\r 50%red 训练 e\u0301 link\ufffd end␀\n\ufffd"
	for size := 1; size <= len(text); size++ { // wherever the connection cuts it
		var out bytes.Buffer
		c := newCleaner(&out)
		for i := 0; i < len(text); i += size {
			if _, err := c.Write([]byte(text[i:min(i+size, len(text))])); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != want {
			t.Fatalf("in pieces of %d:\n got %q\nwant %q", size, out.String(), want)
		}
	}
}

func FuzzCleaner(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\x1b]0;t\x07\xe4\xb8"), 3)
	f.Add([]byte("\x1bP\x1b\\\x90\x9c\x1b"), 1)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		var out bytes.Buffer
		c := newCleaner(&out)
		cut = max(0, min(cut, len(text)))
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			if n, err := c.Write(part); err != nil || n != len(part) {
				t.Fatal(n, err)
			}
		}
		for _, r := range out.String() {
			if r < 0x20 && r != '\n' && r != '\r' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("control character %U in %q from %q", r, out.String(), text)
			}
		}
		if len(c.held) > maxHeld {
			t.Fatalf("holds %d bytes", len(c.held))
		}
	})
}

func TestTableAligns(t *testing.T) {
	var out bytes.Buffer
	tab := newTable("NAME", "N").alignRight(1)
	tab.add("训练机", "1")
	tab.add("a", "100")
	tab.add("x\x1b[31m", "2")
	if err := tab.print(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME      N\n训练机    1\na       100\nx␛[31m    2\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestProgressElsewhere(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&out, func() time.Time { return now })
	for i := range 30 {
		now = now.Add(time.Second)
		p.show(sync.Progress{Stage: "send", Files: int64(i), FilesAll: 30, Left: -1})
	}
	p.show(sync.Progress{Stage: "verify", FilesAll: 30, Left: -1})
	p.clear()
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("%d lines for 30 s and two stages, want 4:\n%s", n, out.String())
	}
	if strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("terminal control outside a terminal: %q", out.String())
	}
}

func TestNobodyToAsk(t *testing.T) {
	a := &asker{open: func() (_, _ *os.File, err error) { return nil, nil, os.ErrNotExist }}
	if _, err := a.Ask(t.Context(), remote.Question{Kind: remote.AskPassword}); !errors.Is(err, remote.ErrNobodyToAsk) {
		t.Errorf("got %v", err)
	}
}

func TestEditLine(t *testing.T) {
	for _, c := range []struct {
		in, want string
		err      error
	}{
		{"secret\r", "secret", nil},
		{"ab\x7fc\r", "ac", nil},
		{"中文\x08x\r", "中x", nil},
		{"wrong\x15right\n", "right", nil},
		{"\x7f\x7fa\x1b\r", "a", nil},
		{"abc\x03", "", remote.ErrDeclined},
		{"\x04", "", remote.ErrDeclined},
		{"no end", "", remote.ErrDeclined},
		{strings.Repeat("x", 2*maxLine) + "\r", strings.Repeat("x", maxLine), nil},
	} {
		var out bytes.Buffer
		got, err := editLine(strings.NewReader(c.in), &out, false)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("editLine(%.20q) = %.20q, %v", c.in, got, err)
		}
		if out.Len() > 0 {
			t.Errorf("editLine(%.20q) showed %q without echo", c.in, out.String())
		}
	}
	var out bytes.Buffer
	if _, err := editLine(strings.NewReader("ab\x7f\r"), &out, true); err != nil || out.String() != "ab\b \b" {
		t.Errorf("echo %q, %v", out.String(), err)
	}
}

// A transfer that was cut says what is kept, and what to do.
func TestStoppedTransfer(t *testing.T) {
	for _, c := range []struct {
		res  sync.Result
		want string
	}{
		{sync.Result{}, "no file is there whole yet; run it again"},
		{sync.Result{Kept: 24 << 20}, "run it again: 24 MiB are kept"},
		{sync.Result{Bytes: 1 << 20, Kept: 24 << 20}, "run it again: 25 MiB are kept"},
	} {
		if got := stopped(&c.res); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c.res, got)
		}
	}
}

// pflag aligns by bytes: a placeholder outside ASCII shifts its line.
func TestPlaceholdersAreASCII(t *testing.T) {
	a := &app{}
	for _, c := range a.root().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.ContainsFunc(name, func(r rune) bool { return r > 126 }) {
				t.Errorf("%s --%s: %s", c.Name(), f.Name, name)
			}
		})
	}
}

// A long list ends with how much it does not name, and is summed up in files and bytes.
func TestChecklistIsShort(t *testing.T) {
	var out bytes.Buffer
	v := release.View{Instance: "a", Checks: []release.Check{{ID: release.CheckUnsaved, State: release.Failed}}}
	for range 50 {
		v.Checks[0].Evidence = append(v.Checks[0].Evidence, release.Evidence{What: "/f", Size: 1 << 20, Lost: true})
	}
	v.Checks[0].Evidence = append(v.Checks[0].Evidence, release.Evidence{What: "…", Size: 6 << 20, Lost: true, More: 156})
	v.Lost, v.LostSize = append(v.Checks[0].Evidence, release.Evidence{What: "train", Size: -1, Lost: true}), 56<<20
	l := newChecklist(&out)
	l.show(v)
	if n := strings.Count(out.String(), "  /f"); n != maxLines || !strings.Contains(out.String(), "and 186 more") {
		t.Errorf("%d lines, then:\n%s", n, out.String())
	}
	if got := lost(v); got != "206 files, 56 MiB and 1 job or git tree would be lost" {
		t.Error(got)
	}
	v.PulledTo, v.Pulled = "/here/saved/a", 2
	v.Checks = append(v.Checks, release.Check{ID: release.CheckSnapshot, Evidence: []release.Evidence{{What: "snap-1", Size: -1}}})
	out.Reset()
	l.kept(v)
	if s := out.String(); !strings.Contains(s, "2 files, now in /here/saved/a") || !strings.Contains(s, "snapshot: snap-1") {
		t.Error(s)
	}
}
