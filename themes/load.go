package themes

import (
	"fmt"
	"strings"
)

// Auto is the name that asks the terminal for its background.
const Auto = "auto"

// Names lists what Load knows, Auto first.
func Names() []string {
	return []string{Auto, "dark", "light", "16", "mono", "colour-blind"}
}

// Load returns a theme by name; "" and Auto can be read on any background, until
// the terminal has told its own (see [ForBackground]).
func Load(name string) (Theme, error) {
	switch strings.ToLower(name) {
	case "", Auto:
		return neutral(), nil
	case "dark":
		return dark(), nil
	case "light":
		return light(), nil
	case "16", "ansi":
		return ansi16(), nil
	case "mono", "monochrome":
		return mono(), nil
	case "colour-blind", "color-blind", "colourblind", "colorblind":
		return colourBlind(), nil
	}
	return Theme{}, fmt.Errorf("there is no theme %q; known are %s", name, strings.Join(Names(), ", "))
}

// ForBackground is the theme for a terminal that told its background.
func ForBackground(isDark bool) Theme {
	if isDark {
		return dark()
	}
	return light()
}

// Choice is what the environment and the person's wish come to.
type Choice struct {
	Theme  Theme
	Glyphs Glyphs
	Depth  Depth
	Ask    bool // the theme is Auto: the terminal's background decides
}

// Depth is how many colours the terminal shows.
type Depth int

const (
	NoColour Depth = iota
	Colours16
	Colours256
	TrueColour
)

// Choose resolves the names of a theme and a glyph set against the environment:
// RENTOP_THEME and RENTOP_GLYPHS win over them, and NO_COLOR with any non-empty
// value over everything (no-color.org).
func Choose(theme, glyphs string, getenv func(string) string) (Choice, error) {
	if v := getenv("RENTOP_THEME"); v != "" {
		theme = v
	}
	if v := getenv("RENTOP_GLYPHS"); v != "" {
		glyphs = v
	}
	t, err := Load(theme)
	if err != nil {
		return Choice{}, err
	}
	g, err := LoadGlyphs(glyphs, getenv)
	if err != nil {
		return Choice{}, err
	}
	c := Choice{Theme: t, Glyphs: g, Depth: depth(getenv)}
	auto := theme == "" || strings.EqualFold(theme, Auto)
	switch {
	case getenv("NO_COLOR") != "" || t.Name == "mono":
		c.Theme, c.Depth = mono(), NoColour
	case auto && c.Depth == Colours16:
		c.Theme = ansi16()
	case auto:
		c.Ask = true
	}
	return c, nil
}

// depth reads the environment itself: what a library detects leaves out
// COLORTERM inside tmux, which brings true colour down to what it can pass on.
func depth(getenv func(string) string) Depth {
	term := getenv("TERM")
	switch ct := strings.ToLower(getenv("COLORTERM")); {
	case ct == "truecolor" || ct == "24bit", getenv("WT_SESSION") != "", strings.HasSuffix(term, "-direct"),
		strings.Contains(term, "kitty"), strings.Contains(term, "ghostty"), strings.Contains(term, "alacritty"):
		return TrueColour
	case strings.Contains(term, "256color"):
		return Colours256
	case term == "" && getenv("OS") == "Windows_NT":
		return TrueColour // conhost since Windows 10 1703
	}
	return Colours16
}
