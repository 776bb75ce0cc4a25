package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// ErrExists and ErrNotFound are wrapped by edits that name a wrong instance.
var (
	ErrExists   = errors.New("an instance of that name exists")
	ErrNotFound = errors.New("there is no instance of that name")
)

// Add returns text with in appended; every byte that was there stays.
func Add(text []byte, in Instance) ([]byte, error) {
	f, err := Parse("config.toml", text)
	if err != nil {
		return nil, err
	}
	if _, ok := f.Instance[in.Name]; ok {
		return nil, fmt.Errorf("%w: %s", ErrExists, in.Name)
	}
	keys, err := encode(in)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(text)
	if len(text) > 0 {
		if !bytes.HasSuffix(text, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[instance.%s]\n", tomlKey(in.Name))
	for _, k := range keys {
		b.WriteString(k.line)
		b.WriteByte('\n')
	}
	return verified(b.Bytes(), in.Name, &in)
}

// Edit returns text with instance name changed to in (whose name may differ).
// Only the keys that changed are rewritten; comments stay.
func Edit(text []byte, name string, in Instance) ([]byte, error) {
	f, err := Parse("config.toml", text)
	if err != nil {
		return nil, err
	}
	old, ok := f.Instance[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if in.Name != name {
		if _, taken := f.Instance[in.Name]; taken {
			return nil, fmt.Errorf("%w: %s", ErrExists, in.Name)
		}
	}
	lay, err := layout(text, name)
	if err != nil {
		return nil, err
	}
	before, err := encode(old)
	if err != nil {
		return nil, err
	}
	after, err := encode(in)
	if err != nil {
		return nil, err
	}
	var cuts []cut
	was := map[string]string{}
	for _, k := range before {
		was[k.name] = k.line
	}
	var fresh []string
	for _, k := range after {
		if was[k.name] == k.line {
			delete(was, k.name)
			continue
		}
		if r, here := lay.keys[k.name]; here {
			cuts = append(cuts, cut{r.from, r.to, k.line})
		} else {
			fresh = append(fresh, k.line)
			cuts = append(cuts, lay.cutSub(k.name)...)
		}
		delete(was, k.name)
	}
	for gone := range was {
		if r, here := lay.keys[gone]; here {
			cuts = append(cuts, cut{r.lineFrom, r.lineTo, ""})
		}
		cuts = append(cuts, lay.cutSub(gone)...)
	}
	if len(fresh) > 0 {
		cuts = append(cuts, cut{lay.insert, lay.insert, strings.Join(fresh, "\n") + "\n"})
	}
	if in.Name != name {
		for _, h := range lay.names {
			cuts = append(cuts, cut{h.from, h.to, tomlKey(in.Name)})
		}
	}
	return verified(apply(text, cuts), in.Name, &in)
}

// Remove returns text without instance name; the comment lines that stand right
// above its header go with it, all others stay.
func Remove(text []byte, name string) ([]byte, error) {
	f, err := Parse("config.toml", text)
	if err != nil {
		return nil, err
	}
	if _, ok := f.Instance[name]; !ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	lay, err := layout(text, name)
	if err != nil {
		return nil, err
	}
	from := lay.above
	if bytes.HasSuffix(text[:from], []byte("\n\n")) {
		from-- // the blank line that parted it from the one before
	}
	cuts := []cut{{from, lay.bodyEnd, ""}}
	for _, subs := range lay.subs {
		for _, s := range subs {
			cuts = append(cuts, cut{s.from, s.to, ""})
		}
	}
	return verified(apply(text, cuts), name, nil)
}

// verified parses the new text and refuses it unless it says exactly what was
// meant: an edit that our understanding of the file got wrong must not be saved.
func verified(text []byte, name string, want *Instance) ([]byte, error) {
	f, err := Parse("config.toml", text)
	if err != nil {
		var e *Error
		if errors.As(err, &e) && want != nil {
			return nil, errors.New(e.What)
		}
		return nil, err
	}
	got, ok := f.Instance[name]
	if want == nil && !ok {
		return text, nil
	}
	if want != nil && ok && sameInstance(got, *want) {
		return text, nil
	}
	return nil, fmt.Errorf("the config is written in a way that rentop cannot edit for %q; change it by hand", name)
}

func sameInstance(a, b Instance) bool {
	x, err1 := encode(a)
	y, err2 := encode(b)
	return err1 == nil && err2 == nil && a.Name == b.Name && reflect.DeepEqual(x, y)
}

// keyLine is one key of an instance as one line of TOML.
type keyLine struct{ name, line string }

// encode gives an instance's keys in the order of its type, tables inline.
func encode(in Instance) ([]keyLine, error) {
	var keys []keyLine
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("toml"), ",")
		if name == "-" || v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			continue
		}
		value, err := inline(v.Field(i))
		if err != nil {
			return nil, err
		}
		keys = append(keys, keyLine{name, name + " = " + value})
	}
	return keys, nil
}

// inline writes a value on one line. Only the kinds that Instance has occur.
func inline(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.Pointer:
		return inline(v.Elem())
	case reflect.String:
		return tomlString(v.String()), nil
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			s, err := inline(v.Index(i))
			if err != nil {
				return "", err
			}
			parts[i] = s
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			name, opt, _ := strings.Cut(v.Type().Field(i).Tag.Get("toml"), ",")
			if opt == "omitempty" && v.Field(i).IsZero() {
				continue
			}
			s, err := inline(v.Field(i))
			if err != nil {
				return "", err
			}
			parts = append(parts, name+" = "+s)
		}
		return "{ " + strings.Join(parts, ", ") + " }", nil
	}
	out, err := toml.Marshal(map[string]any{"v": v.Interface()})
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(strings.TrimPrefix(string(out), "v = "))
	if strings.Contains(s, "\n") {
		return "", fmt.Errorf("a value holds a line break: %q", s)
	}
	return s, nil
}

// tomlString writes a basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tomlKey writes a key, bare where TOML allows it.
func tomlKey(s string) string {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return tomlString(s)
		}
	}
	return s
}
