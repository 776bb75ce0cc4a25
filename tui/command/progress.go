package command

import (
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"rentop/remote"
	"rentop/sync"
)

// progress shows long work: one line that is rewritten on a terminal, elsewhere
// a plain line now and then.
type progress struct {
	out      io.Writer
	now      func() time.Time
	terminal bool
	width    int
	every    time.Duration
	last     time.Time
	stage    string
	shown    bool
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	p := &progress{out: out, now: now, terminal: isTerminal(out), every: 10 * time.Second, width: 80}
	if p.terminal {
		p.every = 100 * time.Millisecond
		if f, is := out.(interface{ Fd() uintptr }); is {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 1 {
				p.width = w
			}
		}
	}
	return p
}

func (p *progress) show(s sync.Progress) {
	if !p.terminal && (s.Stage == "plan" || s.Stage == "done" || s.Files == 0 && s.FilesAll == 0 && s.BytesAll == 0) {
		return // nothing has begun, or the result says it: no line for a log
	}
	now := p.now()
	if s.Stage == p.stage && now.Sub(p.last) < p.every {
		return
	}
	p.stage, p.last = s.Stage, now
	p.line(s.String())
}

// line shows one line of text from the instance or from us.
func (p *progress) line(text string) {
	text = remote.Clean(text)
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", ansi.Truncate(text, p.width-1, "…"))
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, text)
}

// clear takes the line away, so that something else can be written.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}
