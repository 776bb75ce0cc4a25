package text

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rentop/session/phrase"
)

var verbs = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// args are a template's arguments by number, with their verbs: "1d 2s".
func args(template string) string {
	var got []string
	for i, v := range verbs.FindAllStringSubmatch(template, -1) {
		at := strings.Trim(v[1], "[]")
		if at == "" {
			at = strconv.Itoa(i + 1)
		}
		got = append(got, at+v[0][len(v[0])-1:])
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

// Both catalogues have the same ids, with the same arguments in any order.
func TestCataloguesAgree(t *testing.T) {
	en, zh := english(), chinese()
	for id, s := range en {
		z, ok := zh[id]
		if !ok {
			t.Errorf("Chinese lacks %q", id)
			continue
		}
		if z == "" || s == "" {
			t.Errorf("%q is empty", id)
		}
		if a, b := args(s), args(z); a != b {
			t.Errorf("%q: English has the arguments %s, Chinese %s", id, a, b)
		}
	}
	for id := range zh {
		if _, ok := en[id]; !ok {
			t.Errorf("English lacks %q", id)
		}
	}
}

func TestChoose(t *testing.T) {
	cases := []struct {
		wish string
		env  map[string]string
		want string
	}{
		{"", nil, "en"},
		{"", map[string]string{"LANG": "zh_CN.UTF-8"}, "zh"},
		{"", map[string]string{"LANG": "de_DE.UTF-8"}, "en"},
		{"auto", map[string]string{"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"},
		{"", map[string]string{"RENTOP_LANG": "zh", "LANG": "en_US.UTF-8"}, "zh"},
		{"en", map[string]string{"LANG": "zh_CN.UTF-8"}, "en"},
		{"en", map[string]string{"RENTOP_LANG": "zh"}, "zh"},
		{"", map[string]string{"RENTOP_LANG": "auto", "LANG": "zh_TW"}, "zh"},
	}
	for _, c := range cases {
		l, err := Choose(c.wish, func(k string) string { return c.env[k] })
		if err != nil || l.Name != c.want {
			t.Errorf("%q %v: %v, %v; want %s", c.wish, c.env, l, err, c.want)
		}
	}
	if _, err := Choose("tlh", func(string) string { return "" }); err == nil {
		t.Error("an unknown language must be refused")
	}
}

func TestCounts(t *testing.T) {
	l, _ := Load("en")
	if a, b := l.N("saved.files", 1), l.N("saved.files", 2); a != "1 file" || b != "2 files" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestDur(t *testing.T) {
	cases := map[time.Duration]string{
		-time.Second: "0s", 42 * time.Second: "42s", 24 * time.Minute: "24m", 192 * time.Minute: "3h12m",
		47*time.Hour + 5*time.Minute: "47h05m", 50 * time.Hour: "2d02h", 200 * 24 * time.Hour: "200d",
	}
	for d, want := range cases {
		if got := Dur(d); got != want || len(got) > 6 {
			t.Errorf("Dur(%v) = %q, want %q", d, got, want)
		}
	}
}

// Every phrase that session can say has a Chinese template with the same
// arguments, in any order.
func TestPhrasesAgree(t *testing.T) {
	en, zh := phrase.English(), chinesePhrases()
	for id, s := range en {
		z, ok := zh[id]
		if !ok {
			z, ok = zh[phrase.ID(strings.TrimSuffix(string(id), ".1"))]
		}
		if !ok || z == "" {
			t.Errorf("Chinese lacks %q", id)
		} else if ok && args(z) != args(s) && !strings.HasSuffix(string(id), ".1") {
			t.Errorf("%q: English has the arguments %s, Chinese %s", id, args(s), args(z))
		}
	}
	for id := range zh {
		if _, ok := en[id]; !ok {
			t.Errorf("nothing says %q", id)
		}
	}
}
