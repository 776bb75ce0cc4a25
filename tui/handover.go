package tui

// The hand-over: the person's own terminal becomes the instance's, without a
// parser between them, and comes back when the shell there ends.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"rentop/remote"
	"rentop/remote/tmux"
)

// resetModes takes back what a program may have left on where it was cut off:
// alternate screen, mouse, pasting, focus, kitty keys, a hidden cursor, colours.
const resetModes = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u\x1b[?1l\x1b>\x1b[?25h\x1b[0m"

// leaveAlternate is not for a terminal that has left it: it would put the cursor
// where it was before, into a line that is written already.
const leaveAlternate = "\x1b[?1049l"

// handover implements tea.ExecCommand. Bubble Tea's own loop stands still while it
// runs; nothing of the fleet waits for that loop.
type handover struct {
	ctx   context.Context
	greet string        // printed first
	pause time.Duration // for which it can be read: a tmux there takes the window at once
	run   func(ctx context.Context, t remote.TerminalOptions) (int, error)
	in    io.Reader
	out   io.Writer
	code  int
	plain bool // a command's: the terminal's text before and after stays
}

func (h *handover) SetStdin(r io.Reader)  { h.in = r }
func (h *handover) SetStdout(w io.Writer) { h.out = w }
func (h *handover) SetStderr(io.Writer)   {}

// Run gives the terminal away until the remote shell ends or the person types
// Enter ~ . at it.
func (h *handover) Run() error {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	in, ok := h.in.(cancelreader.File)
	if !ok {
		return errors.New("a terminal needs a terminal: standard input is none")
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	defer term.Restore(int(in.Fd()), old)
	restore, err := prepareOutput(h.out)
	if err != nil {
		return err
	}
	defer restore()
	// Only a reader that can be cancelled leaves the next key to us.
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return fmt.Errorf("read the terminal: %w", err)
	}
	reader := &lent{r: r, busy: make(chan struct{}, 1)}
	defer reader.takeBack()

	size := sizeOf(h.out)
	resized, stop := watchSize(ctx, h.out)
	defer stop()
	if !h.plain {
		fmt.Fprint(h.out, "\x1b[H\x1b[2J", h.greet, "\r\n")
		select {
		case <-time.After(h.pause):
		case <-ctx.Done():
		}
	}
	h.code, err = h.run(ctx, remote.TerminalOptions{
		In: &escape{r: reader, leave: cancel}, Out: h.out, Term: os.Getenv("TERM"), Size: size, Resize: resized,
	})
	cut := ctx.Err() != nil || err != nil
	if cut || !h.plain {
		fmt.Fprint(h.out, leaveAlternate)
	}
	fmt.Fprint(h.out, resetModes)
	if cut && h.plain {
		fmt.Fprint(h.out, "\r\n") // it ended in the middle of a line
	}
	if !h.plain {
		fmt.Fprint(h.out, "\x1b[H\x1b[2J") // the shell's text would stay on the primary screen
	}
	if ctx.Err() != nil && h.ctx.Err() == nil {
		return nil // the person left
	}
	return err
}

// lent is the terminal while it is given away. A copier of another package reads
// it, and may still wait in Read when the shell has ended: it would take the
// screen's next key.
type lent struct {
	r    cancelreader.CancelReader
	busy chan struct{} // full while somebody reads, and for good once taken back
}

func (l *lent) Read(p []byte) (int, error) {
	select {
	case l.busy <- struct{}{}:
	default:
		return 0, io.EOF // taken back: there is one reader only
	}
	defer func() { <-l.busy }()
	return l.r.Read(p)
}

// takeBack ends a read under way and returns when it has ended. Closed before, the
// reader would lose the word of its end and wait for a key. A reader that cannot be
// cancelled is left: waiting for it would wait for a key too.
func (l *lent) takeBack() {
	if !l.r.Cancel() {
		return
	}
	select {
	case l.busy <- struct{}{}:
		l.r.Close()
	case <-time.After(time.Second):
	}
}

// HandOver gives a terminal to what run starts, and takes it back: what a command
// needs of the screen's own hand-over. It returns run's exit code.
func HandOver(ctx context.Context, in, out *os.File, run func(context.Context, remote.TerminalOptions) (int, error)) (int, error) {
	h := &handover{ctx: ctx, run: run, in: in, out: out, plain: true}
	err := h.Run()
	return h.code, err
}

// sizeOf is the terminal's size; 80×24 where it cannot be read.
func sizeOf(out io.Writer) remote.Size {
	if f, ok := out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return remote.Size{Cols: w, Rows: h}
		}
	}
	return remote.Size{Cols: 80, Rows: 24}
}

// escape passes keys on, and leaves at "~." on a new line, as ssh does: a
// connection that hangs must not hold the person.
type escape struct {
	r     io.Reader
	leave func()
	state int // 0 at the beginning of a line, 1 after a ~ there, 2 inside a line
	ready []byte
}

func (e *escape) Read(p []byte) (int, error) {
	buf := make([]byte, 4096)
	for len(e.ready) == 0 {
		n, err := e.r.Read(buf)
		for _, c := range buf[:n] {
			switch {
			case e.state == 1 && c == '.':
				e.leave()
				return 0, io.EOF
			case e.state == 0 && c == '~':
				e.state = 1
				continue
			case e.state == 1 && c != '~':
				e.ready = append(e.ready, '~')
			}
			e.ready = append(e.ready, c)
			if e.state = 2; c == '\r' || c == '\n' {
				e.state = 0
			}
		}
		if err != nil && len(e.ready) == 0 {
			return 0, err
		}
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// terminal hands over to an instance's shell.
func (a *app) terminal(instance string) tea.Cmd {
	return a.handOver(instance, "", func(ctx context.Context, t remote.TerminalOptions) (int, error) {
		return a.fleet.Terminal(ctx, instance, t)
	})
}

// jobTerminal hands over to a running job.
func (a *app) jobTerminal(instance string, x *tmux.Job) tea.Cmd {
	id := x.ID
	return a.handOver(instance, x.Name, func(ctx context.Context, t remote.TerminalOptions) (int, error) {
		return a.fleet.JobTerminal(ctx, instance, id, t)
	})
}

func (a *app) handOver(instance, job string, run func(context.Context, remote.TerminalOptions) (int, error)) tea.Cmd {
	greet := a.T("hand.shell", instance)
	switch s := a.session(instance); {
	case job != "":
		greet = a.T("hand.job", job, instance)
	case s != nil && s.Facts != nil && s.Facts.Tmux != "":
		greet = a.T("hand.tmux", instance)
	}
	began := a.clock()
	h := &handover{ctx: a.ctx, greet: remote.Clean(greet), run: run}
	if !a.toldLeave[greet] {
		a.toldLeave[greet], h.pause = true, 1500*time.Millisecond
	}
	return tea.Exec(h, func(err error) tea.Msg {
		return then(func() tea.Cmd {
			a.v = a.fleet.View()
			a.fleet.Nudge(instance)
			switch {
			case err != nil:
				a.fail(err)
			case a.clock().Sub(began) > time.Second:
				a.say(info, a.T("hand.back", instance))
			}
			return tea.ClearScreen
		})
	})
}
