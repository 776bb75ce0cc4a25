package metrics

// A reader of the exposition format, written from its description and not from the
// writer beside it: what a Prometheus refuses, it refuses.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
)

// parsed is a page: figures by series, with the labels in the order of the page.
type parsed struct {
	figures map[string]float64
	labels  map[string]map[string]string
	kinds   map[string]string
}

func parse(text string) (parsed, error) {
	p := parsed{map[string]float64{}, map[string]map[string]string{}, map[string]string{}}
	if !utf8.ValidString(text) {
		return p, fmt.Errorf("not UTF-8")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		return p, fmt.Errorf("the last line has no end")
	}
	done, now := map[string]bool{}, ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fail := func(what string) (parsed, error) { return p, fmt.Errorf("line %d: %s: %q", n+1, what, line) }
		begin := func(name string) bool {
			if name != now {
				if done[name] {
					return false
				}
				done[now], now = true, name
			}
			return true
		}
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(rest, " ")
			if p.kinds[name] != "" || kind != "gauge" && kind != "counter" || !begin(name) {
				return fail("bad TYPE")
			}
			p.kinds[name] = kind
			continue
		}
		if rest, is := strings.CutPrefix(line, "# HELP "); is {
			name, help, _ := strings.Cut(rest, " ")
			if help == "" || !begin(name) {
				return fail("bad HELP")
			}
			continue
		}
		name := metricName.FindString(line)
		if name == "" {
			return fail("no name")
		}
		if !begin(name) || p.kinds[name] == "" {
			return fail("its family does not stand together, or has no TYPE")
		}
		at := line[len(name):]
		labels := map[string]string{}
		if strings.HasPrefix(at, "{") {
			at = at[1:]
			for !strings.HasPrefix(at, "}") {
				l := labelName.FindString(at)
				if l == "" || !strings.HasPrefix(at[len(l):], `="`) {
					return fail("bad label")
				}
				if _, twice := labels[l]; twice {
					return fail("label twice")
				}
				at = at[len(l)+2:]
				var v strings.Builder
				for {
					if at == "" {
						return fail("open label value")
					}
					c := at[0]
					at = at[1:]
					if c == '"' {
						break
					}
					if c == '\\' {
						if at == "" {
							return fail("open escape")
						}
						switch at[0] {
						case 'n':
							c = '\n'
						case '\\', '"':
							c = at[0]
						default:
							return fail("bad escape")
						}
						at = at[1:]
					}
					v.WriteByte(c)
				}
				labels[l] = v.String()
				at = strings.TrimPrefix(at, ",")
			}
			at = at[1:]
		}
		value, has := strings.CutPrefix(at, " ")
		f, err := strconv.ParseFloat(value, 64)
		if !has || err != nil {
			return fail("bad value")
		}
		series := strings.TrimSuffix(line, " "+value)
		if _, twice := p.labels[series]; twice {
			return fail("series twice")
		}
		p.figures[series], p.labels[series] = f, labels
	}
	return p, nil
}
