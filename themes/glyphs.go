package themes

import (
	"fmt"
	"strings"
)

// Glyphs are the signs that chrome is made of; each is one cell wide.
type Glyphs struct {
	Name    string
	Pointer string // before the selected row
	Live    string // states: a different sign each, so that colour is not needed
	Busy    string
	Off     string
	Trouble string
	Alert   string
	Yes     string
	No      string
	Run     string
	Dot     string // between facts
	Arrow   string
	Up      string
	Down    string
	Enter   string
	Times   string
	Degree  string
	More    string // ends what was cut
	Rule    string
	Upright string
	Corner  [4]string // top left, top right, bottom left, bottom right
	Spark   [8]string // a column's height, from the lowest
	Part    [8]string // a bar's last cell, in eighths; [0] is empty
	Full    string
	Track   string // a bar's empty cell
	Mask    string // a secret's character
}

func unicodeGlyphs() Glyphs {
	return Glyphs{
		Name: "unicode", Pointer: "▸", Live: "●", Busy: "◐", Off: "○", Trouble: "◆", Alert: "!", Yes: "✓", No: "✗", Run: "▶",
		Dot: "·", Arrow: "→", Up: "↑", Down: "↓", Enter: "↵", Times: "×", Degree: "°", More: "…", Rule: "─", Upright: "│",
		Corner: [4]string{"╭", "╮", "╰", "╯"},
		Spark:  [8]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Part:   [8]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"},
		Full:   "█", Track: "·", Mask: "•",
	}
}

// asciiGlyphs is for terminals and fonts that draw the others missing or at
// double width (ambiguous width in some East Asian set-ups), and for screen
// readers.
func asciiGlyphs() Glyphs {
	return Glyphs{
		Name: "ascii", Pointer: ">", Live: "*", Busy: "~", Off: "o", Trouble: "X", Alert: "!", Yes: "+", No: "x", Run: ">",
		Dot: "-", Arrow: ">", Up: "^", Down: "v", Enter: "Enter", Times: "x", Degree: "C", More: "~", Rule: "-", Upright: "|",
		Corner: [4]string{"+", "+", "+", "+"},
		Spark:  [8]string{"_", "_", ".", "-", "-", "=", "=", "#"},
		Part:   [8]string{"", "", "", "", "-", "-", "-", "-"},
		Full:   "#", Track: ".", Mask: "*",
	}
}

// LoadGlyphs returns a glyph set by name. "" and Auto take unicode, unless the
// locale is not UTF-8 or the terminal is the Linux console, whose font lacks it.
func LoadGlyphs(name string, getenv func(string) string) (Glyphs, error) {
	switch strings.ToLower(name) {
	case "", Auto:
		if getenv("TERM") == "linux" || !utf8Locale(getenv) {
			return asciiGlyphs(), nil
		}
		return unicodeGlyphs(), nil
	case "unicode":
		return unicodeGlyphs(), nil
	case "ascii":
		return asciiGlyphs(), nil
	}
	return Glyphs{}, fmt.Errorf("there is no glyph set %q; known are auto, unicode, ascii", name)
}

// utf8Locale follows setlocale(3)'s order. An unset locale counts as UTF-8:
// Windows and macOS terminals often set none and are.
func utf8Locale(getenv func(string) string) bool {
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(k)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
