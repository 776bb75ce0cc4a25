package tui

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// counted is a model whose frame is the last message.
type counted struct {
	pace *pace
	text string
}

func (c *counted) Init() tea.Cmd { return nil }

func (c *counted) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	if s, ok := m.(string); ok {
		c.text = s
		c.pace.changed()
	}
	return c, nil
}

func (c *counted) View() tea.View { return tea.NewView(c.text) }

// drawn is what the program wrote, and when a text was first there.
type drawn struct {
	mu  sync.Mutex
	buf bytes.Buffer
	put chan struct{}
}

func (d *drawn) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.put <- struct{}{}:
	default:
	}
	return d.buf.Write(b)
}

func (d *drawn) has(s string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Contains(d.buf.String(), s)
}

// TestPace: Bubble Tea has the ticker that pace.go slows, and a frame comes all the
// same, at rest and in a flood.
func TestPace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &drawn{put: make(chan struct{}, 1)}
	c := &counted{pace: &pace{}}
	p := tea.NewProgram(c, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(out), tea.WithWindowSize(40, 5))
	c.pace.program = p
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run() }()
	for _, word := range []string{"first", "second", "third"} {
		p.Send(word)
		for !out.has(word) {
			select {
			case <-out.put:
			case <-time.After(10 * time.Second):
				t.Fatalf("%q is not drawn: %q", word, out.buf.String())
			}
		}
		time.Sleep(3 * paceHold) // at rest again
	}
	for range 2000 { // faster than any frame
		p.Send("flood")
	}
	p.Send("last")
	for !out.has("last") {
		select {
		case <-out.put:
		case <-time.After(10 * time.Second):
			t.Fatal("the last frame of a flood is not drawn")
		}
	}
	cancel()
	<-ended
	if c.pace.tick == nil {
		t.Error("Bubble Tea has no ticker any more: look at pace.go")
	}
}
