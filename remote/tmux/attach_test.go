package tmux

import (
	"io"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

func TestAttachShell(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    sshtest.Options
		tmux bool
	}{
		{"bash", sshtest.Options{}, true},
		{"fish", sshtest.Options{Shell: "fish"}, true},
		{"tcsh", sshtest.Options{Shell: "tcsh"}, true},
		{"no tmux", sshtest.Options{Hide: []string{"tmux"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			needtest.Program(t, "tmux")
			i := newInstance(t, tt.o)
			c, err := i.conn(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			in, keys := io.Pipe()
			defer keys.Close()
			var scr sshtest.Screen
			done := make(chan error, 1)
			go func() {
				_, err := c.Terminal(soon(t), remote.TerminalOptions{Size: remote.Size{Cols: 120, Rows: 30}, In: in, Out: &scr, Script: AttachShell("¥8.00/h #(touch evil) ¥25.61")})
				done <- err
			}()
			if tt.tmux {
				scr.Wait(t, "8.00/h (touch evil)")
				i.sh(MeterScript("next meter"))
				scr.Wait(t, "next meter")
			}
			time.Sleep(300 * time.Millisecond)
			io.WriteString(keys, "expr 6000 + 66\r")
			scr.Wait(t, "6066")
			if tt.tmux {
				sshtest.Type(keys, "\x02", "d") // detach: the shell stays
			} else {
				io.WriteString(keys, "exit\r")
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := i.sh("ls"); strings.Contains(got, "evil") {
				t.Error("the meter's text was run")
			}
		})
	}
}

func TestAttachJob(t *testing.T) {
	i := newInstance(t, sshtest.Options{})
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "a", Command: "while read -r l; do echo \"heard $l\"; done"}); err != nil {
		t.Fatal(err)
	}
	c, err := i.conn(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	script, err := AttachScript("a")
	if err != nil {
		t.Fatal(err)
	}
	in, keys := io.Pipe()
	defer keys.Close()
	var scr sshtest.Screen
	done := make(chan error, 1)
	go func() {
		_, err := c.Terminal(soon(t), remote.TerminalOptions{In: in, Out: &scr, Script: script})
		done <- err
	}()
	scr.Wait(t, "job_a")
	io.WriteString(keys, "you\r")
	scr.Wait(t, "heard you")
	sshtest.Type(keys, "\x02", "d")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if job := find(t, j, "a"); job.State != Running {
		t.Errorf("after detaching: %+v", job)
	}
}
