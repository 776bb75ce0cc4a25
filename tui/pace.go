package tui

// This file draws at once what has changed, and lets the renderer rest otherwise.
// Bubble Tea looks for a new frame 60 times a second for as long as it runs, which
// is a third of what an idle screen costs, and has no way to say when there is one
// (charmbracelet/bubbletea v2.1: tea.go, startRenderer). So its ticker is slowed
// while nothing changes. Where another version has no such ticker nothing is lost
// but that, and TestPace says so.

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	paceQuick = 4 * time.Millisecond   // from a change to its frame
	paceHold  = 30 * time.Millisecond  // how long it stays quick after the last one,
	paceStart = time.Second            // and after the first: so much else begins then
	paceRest  = 250 * time.Millisecond // a frame that slipped through is not later than that
)

// pace is the renderer's ticker in our hands. Nil does nothing.
type pace struct {
	program *tea.Program

	mu    sync.Mutex // protects the rest
	tick  *time.Ticker
	slow  *time.Timer
	quick bool
	due   time.Time // when slow should run
	until time.Time // it is quick at least so long
}

// changed has the frame drawn soon. It is called by the program's own goroutine,
// which made the ticker.
func (p *pace) changed() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tick == nil {
		if p.tick = ticker(p.program); p.tick == nil {
			return
		}
		p.until = time.Now().Add(paceStart)
		p.slow = time.AfterFunc(paceStart, p.rest)
	}
	if !p.quick {
		p.quick = true
		p.tick.Reset(paceQuick)
	}
	p.hold()
}

func (p *pace) hold() {
	d := max(paceHold, time.Until(p.until))
	p.due = time.Now().Add(d)
	p.slow.Reset(d)
}

// rest slows the ticker. Where it comes late itself, the renderer may not have had
// its turn either, and a tick that nobody took is lost by a Reset.
func (p *pace) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.due) > paceQuick {
		p.hold()
		return
	}
	p.quick = false
	p.tick.Reset(paceRest)
}

// ticker is the program's, nil where it has none (yet).
func ticker(p *tea.Program) *time.Ticker {
	f := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return (*time.Ticker)(f.UnsafePointer())
}
