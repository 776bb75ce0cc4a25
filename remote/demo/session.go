//go:build unix

package demo

// One session channel: a shell, a command or a subsystem, with or without a
// terminal. It behaves as OpenSSH's sshd does where a client can tell.

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
)

// terminal is what a client asked for.
type terminal struct {
	Term          string
	Cols, Rows    uint32
	Width, Height uint32
	Modes         string
}

func (t terminal) size() *pty.Winsize {
	return &pty.Winsize{Cols: uint16(min(t.Cols, 1000)), Rows: uint16(min(t.Rows, 1000))}
}

// task is what runs in a session.
type task struct {
	ch     ssh.Channel
	env    []string
	tty    *terminal
	master *os.File // the terminal's side that is ours
	cmd    *exec.Cmd
	pipes  []*os.File // our ends
}

func (m *machine) session(ctx context.Context, ch ssh.Channel, reqs <-chan *ssh.Request) {
	t := &task{ch: ch, env: m.env()}
	var wg sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { ch.Close() })
	defer func() {
		t.hangUp()
		ch.Close()
		stop()
		wg.Wait()
	}()
	started := false
	for req := range reqs {
		ok, then := false, func() {}
		switch req.Type {
		case "env":
			ok = t.setEnv(req.Payload)
		case "pty-req":
			var want terminal
			if ok = !started && ssh.Unmarshal(req.Payload, &want) == nil; ok {
				t.tty = &want
			}
		case "window-change":
			var size struct{ Cols, Rows, Width, Height uint32 }
			if ok = ssh.Unmarshal(req.Payload, &size) == nil && t.master != nil; ok {
				_ = pty.Setsize(t.master, terminal{Cols: size.Cols, Rows: size.Rows}.size())
			}
		case "signal":
			ok = t.signal(req.Payload)
		case "shell", "exec", "subsystem":
			if started {
				break
			}
			var what struct{ Text string }
			if req.Type != "shell" && ssh.Unmarshal(req.Payload, &what) != nil {
				break
			}
			if req.Type == "subsystem" {
				if ok = what.Text == "sftp"; ok {
					started = true
					then = func() { wg.Go(func() { m.serveFiles(ch); ch.Close() }) }
				}
				break
			}
			if ok = m.begin(t, req.Type, what.Text) == nil; ok {
				started = true
				then = func() { wg.Go(func() { m.finish(t) }) }
			}
		}
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
		then() // after the answer: what ends at once would come before it
	}
}

// setEnv takes what sshd takes by default, and no more.
func (t *task) setEnv(payload []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(payload, &v) != nil || v.Name != "LANG" && !strings.HasPrefix(v.Name, "LC_") || strings.ContainsRune(v.Value, 0) {
		return false
	}
	if len(t.env) < 100 {
		t.env = append(t.env, v.Name+"="+v.Value)
	}
	return true
}

var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP, "ILL": syscall.SIGILL,
	"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE, "QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func (t *task) signal(payload []byte) bool {
	var s struct{ Name string }
	if ssh.Unmarshal(payload, &s) != nil || t.cmd == nil {
		return false
	}
	sig, known := signals[s.Name]
	return known && syscall.Kill(-t.cmd.Process.Pid, sig) == nil
}

// begin starts the shell, in a session of its own.
func (m *machine) begin(t *task, kind, line string) error {
	cmd := exec.Command(m.shell)
	if kind == "exec" {
		cmd.Args = []string{filepath.Base(m.shell), "-c", line}
	} else {
		cmd.Args = []string{"-" + filepath.Base(m.shell)}
	}
	cmd.Dir, cmd.Env = m.home, t.env
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ln == nil {
		return errors.New("plugged out")
	}
	if t.tty != nil {
		cmd.Env = append(cmd.Env, "TERM="+t.tty.Term)
		master, err := pty.StartWithSize(cmd, t.tty.size())
		if err != nil {
			return err
		}
		t.master, t.pipes = master, []*os.File{master}
	} else if err := t.plain(cmd); err != nil {
		return err
	}
	t.cmd = cmd
	m.roots[cmd.Process.Pid] = true
	return nil
}

// plain starts cmd over three pipes.
func (t *task) plain(cmd *exec.Cmd) (err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			t.hangUp()
		}
	}()
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if i == 0 {
			r, w = w, r // stdin: we write
		}
		t.pipes, theirs = append(t.pipes, r), append(theirs, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// finish carries the streams and tells how it ended. As sshd does, it keeps the
// channel open for as long as anything holds the outputs.
func (m *machine) finish(t *task) {
	var out sync.WaitGroup
	stdin := t.pipes[0]
	in := make(chan struct{})
	go func() { // ends with the channel
		defer close(in)
		_, _ = io.Copy(stdin, t.ch)
		if t.master == nil {
			stdin.Close()
		}
	}()
	if t.master != nil {
		out.Go(func() { _, _ = io.Copy(t.ch, t.master) })
	} else {
		out.Go(func() { _, _ = io.Copy(t.ch, t.pipes[1]) })
		out.Go(func() { _, _ = io.Copy(t.ch.Stderr(), t.pipes[2]) })
	}
	err := t.cmd.Wait()
	m.mu.Lock()
	delete(m.roots, t.cmd.Process.Pid)
	m.mu.Unlock()
	if t.master != nil {
		// A background job may keep the terminal; its shell's end is the session's.
		drained := make(chan struct{})
		go func() { out.Wait(); close(drained) }()
		select {
		case <-drained:
		case <-time.After(200 * time.Millisecond):
			t.master.Close()
			<-drained
		}
	}
	out.Wait()
	t.tell(err)
	t.ch.Close()
	<-in
}

// hangUp closes our ends: a terminal's processes get SIGHUP, others the end of
// their input and, when they write, SIGPIPE.
func (t *task) hangUp() {
	for _, f := range t.pipes {
		f.Close()
	}
}

// tell sends the exit status or the signal.
func (t *task) tell(err error) {
	var e *exec.ExitError
	if errors.As(err, &e) {
		if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			for name, sig := range signals {
				if sig == ws.Signal() {
					_, _ = t.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
						Name    string
						Core    bool
						Message string
						Lang    string
					}{name, ws.CoreDump(), "", ""}))
					return
				}
			}
		}
		_, _ = t.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(e.ExitCode())}))
		return
	}
	_, _ = t.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{0}))
}
