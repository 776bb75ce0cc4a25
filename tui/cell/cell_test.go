package cell

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"rentop/remote"
	"rentop/themes"
)

func TestPutCutsAndAligns(t *testing.T) {
	cases := []struct {
		name string
		w    int
		s    string
		want string
	}{
		{"fits", 5, "abcde", "abcde"},
		{"cut", 5, "abcdef", "abcd…"},
		{"wide fits", 4, "日本", "日本"},
		{"wide cut", 5, "日本語", "日本…"},
		{"wide cut before a half", 4, "日本語", "日…"},
		{"one cell", 1, "日本", "…"},
		{"mixed", 6, "a日b本c", "a日b…"},
		{"escape", 9, "a\x1b[31mb", "a␛[31mb"},
		{"newline", 5, "a\nb", "a b"},
		{"bidi", 5, "a\u202eb", "a\ufffdb"},
		{"combining stays with its letter", 3, "e\u0301x", "e\u0301x"},
		{"skin tone", 4, "👍🏽x", "👍x"},
		{"emoji presentation", 4, "❤\ufe0fx", "❤x"},
	}
	for _, c := range cases {
		g := NewGrid("…")
		a := g.Reset(c.w, 1)
		n := a.Put(0, 0, Style{}, c.s)
		got := g.Lines()[0]
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if n != ansi.StringWidth(got) || n > c.w {
			t.Errorf("%s: says %d cells, takes %d of %d", c.name, n, ansi.StringWidth(got), c.w)
		}
	}
}

func TestPutPathKeepsTheEnd(t *testing.T) {
	cases := []struct {
		w       int
		s, want string
	}{{9, "/a/b", "/a/b"}, {6, "/root/数据/x.bin", "…x.bin"}, {7, "/数据.bin", "…据.bin"}, {6, "/数据.bin", "….bin"}, {1, "/a", "…"}}
	for _, c := range cases {
		g := NewGrid("…")
		g.Reset(c.w, 1).PutPath(0, 0, c.w, Style{}, c.s)
		if got := g.Lines()[0]; got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.s, c.w, got, c.want)
		}
	}
}

func TestOverlayBlanksHalves(t *testing.T) {
	g := NewGrid("…")
	a := g.Reset(6, 1)
	a.Put(0, 0, Style{}, "日本語")
	a.Put(1, 0, Style{}, "xx")
	if got := g.String(); got != " xx 語" {
		t.Errorf("%q", got)
	}
}

func TestStringStyles(t *testing.T) {
	g := NewGrid("…")
	a := g.Reset(6, 2)
	a.Put(0, 0, Style{FG: themes.Palette(1)}, "ab")
	a.Put(2, 0, Style{FG: themes.RGB(0x010203), Attr: themes.Bold}, "c")
	a.Row(1).On(Style{BG: themes.Palette(9)}).Put(0, 0, Style{}, "x")
	want := "\x1b[0;31mab\x1b[0;1;38;2;1;2;3mc\x1b[m\n\x1b[0;101mx     \x1b[m"
	if got := g.String(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	cases := []struct {
		w    int
		s    string
		want string
	}{
		{5, "one two three", "one|two|three"},
		{7, "one two three", "one two|three"},
		{4, "abcdefghi", "abcd|efgh|i"},
		{5, "日本語中文", "日本|語中|文"},
		{3, "", ""},
	}
	for _, c := range cases {
		if got := strings.Join(Wrap(c.s, c.w), "|"); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.s, c.w, got, c.want)
		}
	}
}

func TestBarAndSpark(t *testing.T) {
	gl, _ := themes.LoadGlyphs("unicode", nil)
	g := NewGrid("…")
	a := g.Reset(4, 4)
	a.Bar(0, 0, 4, Style{}, Style{}, &gl, 0.5)
	a.Bar(0, 1, 4, Style{}, Style{}, &gl, 0.28)
	a.Bar(0, 2, 4, Style{}, Style{}, &gl, math.NaN())
	a.Spark(0, 3, 4, Style{}, &gl, []float64{0, math.NaN(), 100}, 100)
	if got, want := strings.Join(g.Lines(), "|"), "██··|█▏··|····| ▁ █"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever is put anywhere: nothing outside the grid, no control byte, and each
// line as wide as both ways of counting say.
func FuzzPut(f *testing.F) {
	f.Add("日本\x1b[2J👍🏽", 3, 7)
	f.Add("e\u0301\u200d\u202e\xff", -1, 2)
	f.Add("🇩🇪🇯🇵❤️👨‍👩‍👧‍👦स्ते", 0, 9)
	f.Fuzz(func(t *testing.T, s string, x, w int) {
		x, w = x%20, w%20
		g := NewGrid("…")
		a := g.Reset(16, 2)
		a.PutIn(x, 0, w, Style{}, s)
		a.Sub(3, 1, 5, 1).Right(x, 0, w, Style{}, s)
		a.PutPath(x, 1, w, Style{}, s)
		Wrap(s, w)
		for _, l := range strings.Split(g.String(), "\n") {
			if ansi.StringWidth(l) > 16 || ansi.StringWidthWc(l) > 16 {
				t.Fatalf("line %q is wider than the grid", l)
			}
			for _, r := range l {
				if r < 0x20 || r >= 0x7f && r < 0xa0 {
					t.Fatalf("control character in %q", l)
				}
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	g := NewGrid("…")
	for b.Loop() {
		a := g.Reset(200, 60)
		for y := range 60 {
			for x := 0; x < 200; x += 20 {
				a.PutIn(x, y, 19, Style{FG: themes.Palette(uint8(x / 20))}, "●some▃▄ text 日本 here")
			}
		}
		_ = g.String()
	}
}

// What is taken for simple is what the libraries and Clean say.
func TestSimpleIsTrue(t *testing.T) {
	for r := rune(0x80); r < 0x20000; r++ {
		w := simple(r)
		if w == 0 {
			continue
		}
		s := string(r)
		if ansi.StringWidth(s) != w || ansi.StringWidthWc(s) != w || remote.Clean(s) != s {
			t.Errorf("%U %s is not %d cells wide, or is not clean", r, s, w)
		}
	}
}
