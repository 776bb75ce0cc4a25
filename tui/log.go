package tui

// The log of a job, followed as it grows.

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"rentop/remote/tmux"
	"rentop/tui/cell"
)

// A log is kept up to these bounds: its end is what matters, and a job may write
// without end.
const (
	keepLog  = 4 << 20
	keepLine = 4 << 10
)

// logBuffer receives a log from the background. Its methods may be called from
// any goroutine.
type logBuffer struct {
	mu    sync.Mutex // protects what follows
	lines []string   // whole ones
	open  []byte     // the last line, as far as it has come
	size  int
	cut   bool // something older was let go
	grew  chan struct{}
}

func newLogBuffer() *logBuffer { return &logBuffer{grew: make(chan struct{}, 1)} }

// Write implements io.Writer. A carriage return begins its line anew, as a
// progress bar means it.
func (b *logBuffer) Write(p []byte) (int, error) {
	n := len(p)
	b.mu.Lock()
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		if room := keepLine - len(b.open); room > 0 {
			b.open = append(b.open, part[:min(room, len(part))]...)
		} else if r := bytes.LastIndexByte(part, '\r'); r >= 0 {
			b.open = append(b.open[:0], part[r:][:min(keepLine, len(part)-r)]...)
		}
		if i < 0 {
			break
		}
		b.end()
		p = p[i+1:]
	}
	b.mu.Unlock()
	select {
	case b.grew <- struct{}{}:
	default:
	}
	return n, nil
}

// end makes a line of what is open.
func (b *logBuffer) end() {
	s := string(lastOverprint(b.open))
	b.open = b.open[:0]
	b.lines = append(b.lines, s)
	b.size += len(s) + 1
	drop := 0
	for b.size > keepLog && drop < len(b.lines)-1 {
		b.size -= len(b.lines[drop]) + 1
		drop++
	}
	if drop > 0 {
		b.lines, b.cut = append([]string(nil), b.lines[drop:]...), true
	}
}

// lastOverprint is what a terminal would still show of a line with carriage returns.
func lastOverprint(l []byte) []byte {
	l = bytes.TrimRight(l, "\r")
	return l[bytes.LastIndexByte(l, '\r')+1:]
}

// all returns the lines; they are never changed afterwards.
func (b *logBuffer) all() (lines []string, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines = b.lines[:len(b.lines):len(b.lines)]
	if open := lastOverprint(b.open); len(open) > 0 {
		lines = append(lines, string(open))
	}
	return lines, b.cut
}

type logView struct {
	a        *app
	instance string
	id       string
	buf      *logBuffer
	stop     context.CancelFunc
	off      int // first line shown, where it does not follow
	follow   bool
	wrap     bool
	filter   string
	room     int
	ended    bool
	err      string
}

// startLog is how much of a log is read at first.
const startLog = 1 << 20

func (a *app) openLog(instance, id string) tea.Cmd {
	v := &logView{a: a, instance: instance, id: id, buf: newLogBuffer(), follow: true, wrap: true}
	a.open(v)
	return v.read()
}

// read follows the log in the background until the screen is left.
func (v *logView) read() tea.Cmd {
	ctx, stop := context.WithCancel(v.a.ctx)
	v.stop, v.ended, v.err = stop, false, ""
	from := int64(0)
	if x := v.job(); x != nil {
		from = max(x.LogSize-startLog, 0)
	}
	v.buf.cut = from > 0
	fleet, instance, id, buf := v.a.fleet, v.instance, v.id, v.buf
	reading := v.a.work(func(context.Context) then {
		err := fleet.Follow(ctx, instance, id, from, buf)
		return func() tea.Cmd {
			if buf != v.buf {
				return nil // another job's log is read now
			}
			v.ended = true
			if err != nil && ctx.Err() == nil {
				v.err = err.Error()
			}
			return nil
		}
	})
	return tea.Batch(reading, v.await(ctx))
}

// await waits for the log to grow, at most ten times a second.
func (v *logView) await(ctx context.Context) tea.Cmd {
	buf := v.buf
	return func() tea.Msg {
		select {
		case <-buf.grew:
		case <-ctx.Done():
			return nil
		}
		return then(func() tea.Cmd {
			return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg {
				if ctx.Err() != nil {
					return nil
				}
				return then(func() tea.Cmd { return v.await(ctx) })
			})
		})
	}
}

// becomes follows the log of another job, which is the one here run again.
func (v *logView) becomes(job tmux.Job) tea.Cmd {
	if !slices.Contains(v.a.screens, screen(v)) {
		return nil
	}
	v.stop()
	v.id, v.buf, v.off, v.follow = job.ID, newLogBuffer(), 0, true
	return v.read()
}

func (v *logView) job() *tmux.Job {
	if s := v.a.session(v.instance); s != nil {
		for i := range s.Jobs {
			if s.Jobs[i].ID == v.id {
				return &s.Jobs[i]
			}
		}
	}
	return nil
}

func (v *logView) of() string { return v.instance }

func (v *logView) title() string {
	if x := v.job(); x != nil {
		return x.Name
	}
	return v.id
}

// clear takes the filter away; that is what going back means first.
func (v *logView) clear() bool {
	had := v.filter != ""
	v.filter = ""
	return had
}

func (v *logView) filtered() bool { return v.filter != "" }

func (v *logView) close()      { v.stop() }
func (v *logView) wheel(n int) { v.scroll(3 * n)() }

func (v *logView) actions() []action {
	a := v.a
	with := func(f func(string, *tmux.Job) string) func() string {
		return func() string {
			x := v.job()
			if x == nil {
				return a.T("why.nojob", v.instance)
			}
			return f(v.instance, x)
		}
	}
	return []action{
		{id: "follow", keys: []string{"f"}, foot: true, do: func() tea.Cmd { v.follow = !v.follow; return nil }},
		{id: "filter", keys: []string{"/"}, foot: true, do: func() tea.Cmd { a.push(newFilter(a, &v.filter)); return nil }},
		{id: "wrap", keys: []string{"w"}, foot: true, do: func() tea.Cmd { v.wrap = !v.wrap; return nil }},
		{id: "kill", keys: []string{"x"}, foot: true, why: with(a.whyNotKill), do: func() tea.Cmd { return a.killJob(v.instance, v.job()) }},
		{id: "restart", keys: []string{"R"}, why: with(a.whyNotRestart), do: func() tea.Cmd { return a.restartJob(v.instance, v.job(), v.becomes) }},
		{id: "attach", keys: []string{"a"}, foot: true, why: with(a.whyNotAttach), do: func() tea.Cmd { return a.jobTerminal(v.instance, v.job()) }},
		{id: "down", keys: []string{"j", "down"}, do: v.scroll(1)},
		{id: "up", keys: []string{"k", "up"}, do: v.scroll(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: func() tea.Cmd { return v.scroll(v.room)() }},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: func() tea.Cmd { return v.scroll(-v.room)() }},
		{id: "first", keys: []string{"g", "home"}, do: v.scroll(-1 << 30)},
		{id: "last", keys: []string{"G", "end"}, do: func() tea.Cmd { v.follow = true; return nil }},
	}
}

// scroll moves by lines; it stops to follow.
func (v *logView) scroll(n int) func() tea.Cmd {
	return func() tea.Cmd {
		v.follow = false
		v.off = max(v.off+n, 0)
		return nil
	}
}

func (v *logView) draw(b cell.Area) {
	a := v.a
	lines, cut := v.buf.all()
	if v.filter != "" {
		keep := matcher(v.filter)
		var kept []string
		for _, l := range lines {
			if keep(l) {
				kept = append(kept, l)
			}
		}
		lines = kept
	}
	state := a.N("log.lines", len(lines))
	switch {
	case v.err != "":
		state = a.T("log.err")
	case v.follow && !v.ended:
		state = a.T("log.follows") + " " + a.gl.Dot + " " + state
	}
	if v.filter != "" {
		state = "/" + v.filter + "  " + state
	}
	head := b.Row(0)
	if x := v.job(); x != nil {
		word, st := a.jobWord(x)
		p := head.Pen(1, 0).Put(st, word).Skip(2)
		head.PutIn(p.X(), 0, p.Left()-cell.Width(state)-4, a.th.Dim, x.Command)
	}
	head.Right(0, 0, head.W-1, a.th.Dim, state)
	body := b.Sub(1, 2, b.W-2, b.H-2)
	v.room = max(body.H-1, 1)
	if len(lines) == 0 {
		switch {
		case v.err != "":
			for i, s := range cell.Wrap(v.err, body.W) {
				body.Put(0, i, a.th.Bad, s)
			}
		case v.filter != "":
			body.Put(0, 0, a.th.Dim, a.T("filter.none", v.filter))
		default:
			body.Put(0, 0, a.th.Dim, a.T("log.empty"))
		}
		return
	}
	if v.follow {
		v.off = v.lastPage(lines, body)
	}
	v.off = min(v.off, max(len(lines)-1, 0))
	y := 0
	if v.off == 0 && cut {
		body.Put(0, 0, a.th.Faint, a.T("log.cut"))
		y++
	}
	for i := v.off; i < len(lines) && y < body.H; i++ {
		if !v.wrap {
			body.Put(0, y, a.th.Text, clip(lines[i], body.W))
			y++
			continue
		}
		for _, s := range cell.Wrap(stripEscapes(lines[i]), body.W) {
			if y < body.H {
				body.Put(0, y, a.th.Text, s)
			}
			y++
		}
	}
}

// lastPage is the first line of the page that ends with the last.
func (v *logView) lastPage(lines []string, body cell.Area) int {
	rows, i := 0, len(lines)
	for i > 0 {
		n := 1
		if v.wrap {
			n = len(cell.Wrap(stripEscapes(lines[i-1]), body.W))
		}
		if rows+n > body.H {
			break
		}
		rows += n
		i--
	}
	return min(i, len(lines)-1)
}

// clip bounds what is measured of a long line that is cut anyway.
func clip(s string, w int) string {
	s = stripEscapes(s)
	if n := 8 * w; len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return s
}

// stripEscapes leaves out the colours that programs put into logs: they would be
// shown as stand-ins. What else is hostile is cleaned where it is drawn.
func stripEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '[' {
			j := i + 2
			for j < len(s) && s[j] >= 0x20 && s[j] < 0x40 {
				j++
			}
			if j < len(s) && s[j] >= 0x40 && s[j] < 0x7f {
				i = j + 1
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
