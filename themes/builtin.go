package themes

// The built-in themes. Backgrounds are left to the terminal, so that a person's
// own transparency and wallpaper stay; only the selected row and input fields
// have one.

func dark() Theme {
	accent := RGB(0x7aa2f7)
	return Theme{
		Name:     "dark",
		Strong:   Style{FG: RGB(0xe6e9ef), Attr: Bold},
		Dim:      Style{FG: RGB(0x8e96a8)},
		Faint:    Style{FG: RGB(0x4a5163)},
		Accent:   Style{FG: accent},
		Key:      Style{FG: accent},
		Good:     Style{FG: RGB(0x87b87f)},
		Warn:     Style{FG: RGB(0xe0af68)},
		Bad:      Style{FG: RGB(0xee7c86)},
		Heading:  Style{FG: RGB(0x8e96a8)},
		Selected: Style{BG: RGB(0x232b3d)},
		Border:   Style{FG: RGB(0x5b6580)},
		Input:    Style{BG: RGB(0x232b3d)},
	}
}

// neutral is for a terminal that has not told its background: colours of middle
// brightness, and none behind text, so that it can be read on both.
func neutral() Theme {
	accent := RGB(0x5b86e5)
	return Theme{
		Name:     Auto,
		Strong:   Style{Attr: Bold},
		Dim:      Style{FG: RGB(0x858d9d)},
		Faint:    Style{FG: RGB(0x6c7484)},
		Accent:   Style{FG: accent},
		Key:      Style{FG: accent},
		Good:     Style{FG: RGB(0x4f9d57)},
		Warn:     Style{FG: RGB(0xbd8420)},
		Bad:      Style{FG: RGB(0xdb5560)},
		Heading:  Style{FG: RGB(0x858d9d)},
		Selected: Style{Attr: Bold},
		Border:   Style{FG: RGB(0x6c7484)},
		Input:    Style{Attr: Underline},
	}
}

func light() Theme {
	accent := RGB(0x1f5fbf)
	return Theme{
		Name:     "light",
		Strong:   Style{FG: RGB(0x1b1f27), Attr: Bold},
		Dim:      Style{FG: RGB(0x667080)},
		Faint:    Style{FG: RGB(0xb4bbc6)},
		Accent:   Style{FG: accent},
		Key:      Style{FG: accent},
		Good:     Style{FG: RGB(0x1e7a34)},
		Warn:     Style{FG: RGB(0x8f5c00)},
		Bad:      Style{FG: RGB(0xbf2733)},
		Heading:  Style{FG: RGB(0x667080)},
		Selected: Style{BG: RGB(0xe3eaf6)},
		Border:   Style{FG: RGB(0x98a2b3)},
		Input:    Style{BG: RGB(0xe9edf4)},
	}
}

// ansi16 follows the terminal's own palette and says nothing about its background.
func ansi16() Theme {
	accent := Palette(4)
	return Theme{
		Name:     "16",
		Strong:   Style{Attr: Bold},
		Dim:      Style{Attr: Faint},
		Faint:    Style{FG: Palette(8)},
		Accent:   Style{FG: accent},
		Key:      Style{FG: accent, Attr: Bold},
		Good:     Style{FG: Palette(2)},
		Warn:     Style{FG: Palette(3)},
		Bad:      Style{FG: Palette(1), Attr: Bold},
		Heading:  Style{Attr: Faint},
		Selected: Style{Attr: Bold},
		Border:   Style{FG: Palette(8)},
		Input:    Style{Attr: Underline},
	}
}

// colourBlind keeps to Okabe and Ito's colours (Color Universal Design, 2008),
// which red-green and blue-yellow colour-blind people can tell apart.
func colourBlind() Theme {
	t := dark()
	t.Name = "colour-blind"
	t.Accent = Style{FG: RGB(0x56b4e9)}
	t.Key = t.Accent
	t.Good = Style{FG: RGB(0x2fb393)}
	t.Warn = Style{FG: RGB(0xe69f00)}
	t.Bad = Style{FG: RGB(0xf07030), Attr: Bold}
	return t
}

// mono has no colour at all: what NO_COLOR asks for.
func mono() Theme {
	return Theme{
		Name:     "mono",
		Strong:   Style{Attr: Bold},
		Dim:      Style{},
		Faint:    Style{Attr: Faint},
		Key:      Style{Attr: Bold},
		Warn:     Style{Attr: Bold},
		Bad:      Style{Attr: Bold | Underline},
		Heading:  Style{Attr: Faint},
		Selected: Style{Attr: Reverse},
		Border:   Style{Attr: Faint},
		Input:    Style{Attr: Underline},
	}
}
