package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostile are names as an instance or a thief of a config could choose them.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `a&b`, "训练 中文", "\x1b[31mred", `</svg></style>`}

func sample() Page {
	across := Chart{Title: hostile[0], Currency: "CNY", Across: true, Categories: hostile, Series: []Series{
		{"compute", []float64{1, 2, 3, math.NaN(), math.Inf(1), 9000}}, {hostile[1], []float64{1, 0, 2}}}}
	up := Chart{Title: "By day", Currency: "CNY", Categories: []string{"11-01", "11-02"}, Series: []Series{{"disk", []float64{0.5, 0.25}}}}
	return Page{Title: "What the GPUs cost", Made: hostile[0], Facts: hostile, Charts: []Chart{across, up, {Title: "none"}}, Foot: hostile[5],
		Tables: []Table{{Title: "By job", Head: []string{"job", "cost", ""}, Lines: []Line{{hostile[1], ">¥1.00", []string{"?"}, hostile[0]}}}}}
}

func TestReport(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sample()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<img", "onerror=alert(1)>", "http://", "https://", "@import", "url("} {
		body := strings.ReplaceAll(page, "http://www.w3.org/", "") // the names of SVG's own spaces
		if strings.Contains(body, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, good := range []string{"训练 中文", "a&amp;b", "&lt;script&gt;", "¥1.00", "<svg", "default-src &#39;none&#39;"} {
		if !strings.Contains(page, good) && !strings.Contains(page, strings.ReplaceAll(good, "&#39;", "'")) {
			t.Errorf("the page lacks %q", good)
		}
	}
	if n := strings.Count(page, "<svg"); n != 2 {
		t.Errorf("%d charts, want 2: one has nothing to draw", n)
	}
	one, err := Chart{Across: true, Categories: []string{"a"}, Series: []Series{{"compute", []float64{14}}}}.svg()
	if err != nil || !strings.Contains(one, ">0.00</text>") {
		t.Errorf("the axis of one bar does not begin at 0: %v\n%s", err, one)
	}
	for _, c := range sample().Charts[:2] {
		svg, err := c.svg()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(svg, ">-") {
			t.Errorf("%s: the axis goes below 0", c.Title)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", c.Title, err, svg)
			}
		}
	}
	if dir := os.Getenv("RENTOP_REPORT"); dir != "" { // to look at it
		if err := os.WriteFile(filepath.Join(dir, "report.html"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCeiling(t *testing.T) {
	for most, want := range map[float64]float64{0: 0.01, 0.75: 1, 14: 25, 25: 25, 26: 50, 9000: 10000, 51: 100} {
		if got := ceiling([]float64{most * micro, -1}) / micro; math.Abs(got-want) > 1e-9 {
			t.Errorf("above %v is %v, want %v", most, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, h := range hostile {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p := sample()
		p.Charts = []Chart{{Title: name, Categories: []string{name, "b"}, Series: []Series{{name, []float64{1, 2}}}}}
		var b bytes.Buffer
		if err := Write(&b, p); err != nil {
			return
		}
		if s := strings.ToLower(b.String()); strings.Contains(s, "<script") || strings.Contains(s, "<img") {
			t.Errorf("%q got through", name)
		}
	})
}
