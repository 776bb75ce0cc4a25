package config

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// expr is one line-starting expression of a TOML file: a table header or a
// key = value, with the bytes that it takes.
type expr struct {
	table    bool
	path     []string // of a table its whole name; of a key its own parts
	keyFrom  []int    // where each part of path stands
	keyTo    []int
	from, to int // without the comment behind it
	line     int // 1-based
}

// scan lists a file's expressions in order.
func scan(text []byte) ([]expr, error) {
	text = blankMark(text)
	var p unstable.Parser
	p.Reset(text)
	var out []expr
	for p.NextExpression() {
		n := p.Expression()
		e := expr{table: n.Kind == unstable.Table || n.Kind == unstable.ArrayTable}
		it := n.Key()
		for it.Next() {
			k := it.Node()
			e.path = append(e.path, string(k.Data))
			e.keyFrom = append(e.keyFrom, int(k.Raw.Offset))
			e.keyTo = append(e.keyTo, int(k.Raw.Offset+k.Raw.Length))
		}
		if len(e.path) == 0 {
			continue
		}
		if e.table {
			e.from = lineStart(text, e.keyFrom[0])
			e.to = lineEnd(text, e.keyTo[len(e.keyTo)-1])
		} else {
			e.from, e.to = int(n.Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
		}
		e.line = 1 + bytes.Count(text[:e.from], []byte("\n"))
		out = append(out, e)
	}
	return out, p.Error()
}

// span is a key's bytes; lineFrom and lineTo take the whole lines.
type span struct{ from, to, lineFrom, lineTo int }

// place is where one instance stands in a file.
type place struct {
	above   int               // where it begins, with the comment lines right above its header
	bodyEnd int               // behind its last own line
	insert  int               // where new keys go
	keys    map[string]span   // keys of its main table
	subs    map[string][]span // sub-tables by first key
	names   []span            // its name in each header
}

// layout finds instance name in text.
func layout(text []byte, name string) (*place, error) {
	exprs, err := scan(text)
	if err != nil {
		return nil, err
	}
	lay := &place{keys: map[string]span{}, subs: map[string][]span{}, above: -1}
	for i, e := range exprs {
		if !e.table || len(e.path) < 2 || e.path[0] != "instance" || e.path[1] != name {
			continue
		}
		lay.names = append(lay.names, span{from: e.keyFrom[1], to: e.keyTo[1]})
		last := e
		for _, k := range exprs[i+1:] {
			if k.table {
				break
			}
			last = k
			if len(e.path) == 2 {
				s := span{k.from, k.to, lineStart(text, k.from), lineEnd(text, k.to)}
				if len(k.path) > 1 {
					return nil, handEdit(name, k.line)
				}
				lay.keys[k.path[0]] = s
			}
		}
		end := lineEnd(text, last.to)
		if len(e.path) == 2 {
			lay.above, lay.bodyEnd, lay.insert = commentsAbove(text, e.from), end, end
		} else {
			lay.subs[e.path[2]] = append(lay.subs[e.path[2]], span{from: commentsAbove(text, e.from), to: end})
		}
	}
	if lay.above < 0 {
		return nil, handEdit(name, 0)
	}
	return lay, nil
}

func handEdit(name string, line int) error {
	where := ""
	if line > 0 {
		where = fmt.Sprintf(" (line %d)", line)
	}
	return fmt.Errorf("instance %q is not written as a table [instance.%s]%s; change it by hand", name, tomlKey(name), where)
}

func (l *place) cutSub(key string) []cut {
	var cuts []cut
	for _, s := range l.subs[key] {
		cuts = append(cuts, cut{s.from, s.to, ""})
	}
	return cuts
}

// cut replaces text[from:to] by with.
type cut struct {
	from, to int
	with     string
}

func apply(text []byte, cuts []cut) []byte {
	slices.SortStableFunc(cuts, func(a, b cut) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, c := range cuts {
		if c.from < at {
			continue // inside a cut already made
		}
		out.Write(text[at:c.from])
		if c.with != "" && c.from == c.to && out.Len() > 0 && out.Bytes()[out.Len()-1] != '\n' {
			out.WriteByte('\n') // the file's last line had no end
		}
		out.WriteString(c.with)
		at = c.to
	}
	out.Write(text[at:])
	return out.Bytes()
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd is the offset behind the line end at or after at.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// commentsAbove is where the comment lines begin that stand directly above from.
func commentsAbove(text []byte, from int) int {
	for from > 0 {
		prev := lineStart(text, from-1)
		if !bytes.HasPrefix(bytes.TrimSpace(text[prev:from]), []byte("#")) {
			break
		}
		from = prev
	}
	return from
}

// lineIndex finds lines for errors.
type lineIndex []expr

func indexLines(text []byte) lineIndex {
	exprs, _ := scan(text)
	return exprs
}

// at gives the line of a key by its path from the top, of the longest part of
// it that is there, or 0.
func (x lineIndex) at(key ...string) int {
	line, best := 0, 0
	var table []string
	for _, e := range x {
		full := e.path
		if e.table {
			table = e.path
		} else {
			full = append(slices.Clone(table), e.path...)
		}
		n := 0
		for n < min(len(full), len(key)) && full[n] == key[n] {
			n++
		}
		if n == len(full) && n > best {
			line, best = e.line, n
		}
	}
	return line
}

// find gives the line of key of an instance, of its header, or 0.
func (x lineIndex) find(name, key string) int {
	header := 0
	var table []string
	for _, e := range x {
		full := e.path
		if e.table {
			table = e.path
		} else {
			full = append(slices.Clone(table), e.path...)
		}
		if len(full) < 2 || full[0] != "instance" || full[1] != name {
			continue
		}
		if len(full) == 2 {
			header = e.line
		} else if full[2] == key {
			return e.line
		}
	}
	return header
}
