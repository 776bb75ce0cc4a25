package tui

// A recording on the real screens, by its own clock. Looking around is all that can
// be done in it.

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/session/record"
	"rentop/themes"
	"rentop/tui/cell"
)

// Replay shows a recording until the person quits or ctx ends.
func Replay(ctx context.Context, p *record.Player, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var playing sync.WaitGroup
	playing.Go(func() { p.Run(ctx) })
	defer playing.Wait()
	defer cancel()
	o.player, o.Readonly, o.Now, o.Drawn = p, true, p.Now, nil
	return Run(ctx, replayed{p: p}, o)
}

// replayed is a fleet that was. What it does not have nobody asks for: no action
// that acts is let through.
type replayed struct {
	Fleet
	p *record.Player
}

func (r replayed) View() *session.FleetView { return r.p.View() }
func (r replayed) Changed() <-chan struct{} { return r.p.Changed() }
func (r replayed) Nudge(string)             {}

// looks are the actions that only look: all that a replay lets through.
func looks(id string) bool {
	return slices.Contains([]string{"open", "jobs", "sync", "release", "alarms", "filter", "order", "reverse", "evidence", "level", "of",
		"down", "up", "pagedown", "pageup", "first", "last", "palette", "help", "back", "quit", "mouse", "theme", "redraw", "suspend"}, id)
}

// The steps of seeking.
const (
	seekStep = 10 * time.Second
	seekLeap = 5 * time.Minute
)

// replaying puts a player's keys before the others, of which those that act say why
// they cannot. Without a player the actions stay as they are.
func (a *app) replaying(list []action) []action {
	p := a.opt.player
	if p == nil {
		return list
	}
	do := func(f func()) func() tea.Cmd { return func() tea.Cmd { f(); return nil } }
	seek := func(d time.Duration) func() tea.Cmd { return do(func() { p.Seek(d) }) }
	out := []action{
		{id: "play", keys: []string{"space"}, foot: true, do: do(p.Toggle)},
		{id: "seekback", keys: []string{"left"}, foot: true, do: seek(-seekStep)},
		{id: "seekahead", keys: []string{"right"}, foot: true, do: seek(seekStep)},
		{id: "faster", keys: []string{"+", "="}, foot: true, do: do(p.Faster)},
		{id: "slower", keys: []string{"-"}, foot: true, do: do(p.Slower)},
		{id: "leapback", keys: []string{"<", "shift+left"}, do: seek(-seekLeap)},
		{id: "leapahead", keys: []string{">", "shift+right"}, do: seek(seekLeap)},
	}
	for _, x := range list {
		if !looks(x.id) {
			x.why, x.foot = a.whyReadonly, false
		}
		out = append(out, x)
	}
	return out
}

// drawReplay says in the header that this was, when, and how it plays.
func (a *app) drawReplay(p *cell.Pen) {
	s := a.opt.player.Playing()
	p.Skip(1).Put(a.th.Warn.With(themes.Bold), a.T("replay")).Skip(1).Put(a.th.Strong, s.At.Local().Format("01-02 15:04:05"))
	switch {
	case s.Paused && !s.At.Before(s.End):
		p.Skip(1).Put(a.th.Warn, a.T("replay.end"))
	case s.Paused:
		p.Skip(1).Put(a.th.Warn, a.T("replay.paused"))
	case s.Speed > 1:
		p.Skip(1).Put(a.th.Accent, a.gl.Times+strconv.Itoa(s.Speed))
	}
}
