package themes

// Color is one terminal colour. The zero Color is the terminal's own.
type Color uint32

const (
	palette Color = 1 << 24
	rgb     Color = 2 << 24
)

// RGB is a true colour, 0xRRGGBB; the renderer brings it down to what the
// terminal can show.
func RGB(hex uint32) Color { return rgb | Color(hex&0xffffff) }

// Palette is one of the terminal's own 256 colours; the first 16 follow the
// person's palette.
func Palette(n uint8) Color { return palette | Color(n) }

// Index returns the palette index, if c is one.
func (c Color) Index() (n uint8, ok bool) { return uint8(c), c&^0xffffff == palette }

// Parts returns red, green and blue, if c is a true colour.
func (c Color) Parts() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&^0xffffff == rgb
}

// Attr is a set of text attributes.
type Attr uint8

const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Reverse
)

// Style is how one stretch of text looks. The zero Style is plain.
type Style struct {
	FG, BG Color
	Attr   Attr
}

// With returns s with attributes added.
func (s Style) With(a Attr) Style { s.Attr |= a; return s }

// Over returns s laid on a base, as a cell on a selected row: what s does not
// say comes from the base.
func (s Style) Over(base Style) Style {
	if s.FG == 0 {
		s.FG = base.FG
	}
	if s.BG == 0 {
		s.BG = base.BG
	}
	s.Attr |= base.Attr
	return s
}

// Theme gives each meaning its look.
type Theme struct {
	Name string

	Text     Style // what is read
	Strong   Style // names, values that matter
	Dim      Style // labels, units, what is secondary
	Faint    Style // rules, empty bars, what must not distract
	Accent   Style // the one accent: bars, the pointer, what has the focus
	Key      Style // a key's name in the footer
	Good     Style
	Warn     Style
	Bad      Style
	Heading  Style // column and section titles
	Selected Style // the base of the selected row
	Border   Style // around a dialog
	Input    Style // an input field
}
