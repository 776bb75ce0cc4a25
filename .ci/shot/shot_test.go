package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	g := parse("\x1b[1;31mA\x1b[0m中\x1b[48;2;1;2;3m \x1b[38;5;196;7mx\x1b[m too long for it\nB\x1b]0;t\x07C", 8, 2)
	for _, c := range []struct {
		x, y int
		want cell
	}{
		{0, 0, cell{"A", 1, look{fg: palette(1), bold: true}}},
		{1, 0, cell{"中", 2, look{}}},
		{2, 0, cell{}},
		{3, 0, cell{" ", 1, look{bg: "#010203"}}},
		{4, 0, cell{"x", 1, look{bg: "#010203", fg: "#ff0000", reverse: true}}},
		{0, 1, cell{"B", 1, look{}}},
		{1, 1, cell{"C", 1, look{}}},
	} {
		if got := g[c.y][c.x]; got != c.want {
			t.Errorf("%d,%d: %+v, want %+v", c.x, c.y, got, c.want)
		}
	}
}

// Whatever is on the screen, the picture is XML, and hostile text stays text.
func TestDrawIsXML(t *testing.T) {
	text := "<script>&\"' ▁▂▃█▏▐▀░ ⣿⡀ ╭─┬┼╯━┃ 训练 \x1b[2;3;4;9mstyled\x1b[0m \x1b[7mreverse"
	d := xml.NewDecoder(strings.NewReader(draw(parse(text, 70, 3), "a <b>")))
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := tok.(xml.StartElement); is && e.Name.Local == "script" {
			t.Fatal("text became an element")
		}
	}
}
