package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"rentop/session/record"
	"rentop/themes"
	"rentop/tui/text"
)

// Options say how the screen looks and where it is. Zero values are good.
type Options struct {
	Theme    string              // "" or "auto": by the terminal's background; see themes.Names
	Glyphs   string              // "" or "auto": by the locale; "unicode", "ascii"
	Lang     string              // "" or "auto": RENTOP_LANG, then the locale; "en", "zh"
	Readonly bool                // look, do not act
	NoMouse  bool                // leave the mouse to the terminal, to select text
	Keys     map[string][]string // other keys for actions, by the action's name
	In       *os.File            // nil: os.Stdin
	Out      *os.File            // nil: os.Stdout
	Getenv   func(string) string // nil: os.Getenv
	Now      func() time.Time    // nil: time.Now
	Drawn    func()              // nil, or called once when the first frame is out
	Ring     Ring                // alarms beyond the screen

	player *record.Player // of a recording; nil where the fleet is real
}

// Run shows the fleet until the person quits or ctx ends. It is an error where
// there is no terminal.
func Run(ctx context.Context, f Fleet, o Options) error {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var in io.Reader = os.Stdin
	if o.In != nil {
		in = o.In
	}
	out := os.Stdout
	if o.Out != nil {
		out = o.Out
	}
	if !term.IsTerminal(int(out.Fd())) || o.Getenv("TERM") == "dumb" {
		return errors.New("the screen needs a terminal that can move its cursor; without one use the commands, as in: rentop ls")
	}
	c, err := themes.Choose(o.Theme, o.Glyphs, o.Getenv)
	if err != nil {
		return err
	}
	tx, err := text.Choose(o.Lang, o.Getenv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends what still works in the background
	a := newApp(ctx, f, o, look{th: c.Theme, gl: c.Glyphs, tx: tx}, o.Now)
	a.askBack, a.noMouse = c.Ask, o.NoMouse
	p := tea.NewProgram(a, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithColorProfile(profile(c.Depth)))
	a.pace = &pace{program: p}
	_, err = p.Run()
	switch {
	case err == nil, errors.Is(err, tea.ErrInterrupted):
		return nil
	case ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic):
		return ctx.Err()
	}
	return fmt.Errorf("the screen: %w", err)
}

func profile(d themes.Depth) colorprofile.Profile {
	switch d {
	case themes.TrueColour:
		return colorprofile.TrueColor
	case themes.Colours256:
		return colorprofile.ANSI256
	case themes.Colours16:
		return colorprofile.ANSI
	}
	return colorprofile.ASCII
}
