package tree

import "strings"

// This file says of an ignore file's rules what they mean for the folders directly
// beside it: no other file can take that back.

// maxLeftOut bounds a list of patterns that is made from a file.
const maxLeftOut = 1000

// LeftOutFolders are patterns, the last that matches wins, for the folders directly
// in a root that the text of its ignore file leaves out; none of them matches
// anything else, nor a name in but. nil where that cannot be said.
func LeftOutFolders(text []byte, but []string) []string {
	var out []string
	for _, r := range parseRules(text) {
		glob := r.glob
		if r.kind == ending {
			glob = "*" + glob
		}
		for rest, deep := strings.CutPrefix(glob, "**/"); deep && r.anchored; rest, deep = strings.CutPrefix(glob, "**/") {
			glob = rest
		}
		if strings.Contains(glob, "**") || len(glob) > MaxPath/2 {
			return nil
		}
		if strings.Contains(glob, "/") {
			continue // something deeper
		}
		not := ""
		if r.negate {
			not = "!"
		}
		out = append(out, not+"/"+glob+"/")
	}
	if len(out) == 0 {
		return nil
	}
	g := Patterns(nil, out)
	for _, name := range but {
		if !g.Match(name, true) {
			continue
		}
		if strings.ContainsAny(name, "\n\r") {
			return nil
		}
		out = append(out, "!/"+escapeGlob(name)+"/")
	}
	if len(out) > maxLeftOut {
		return nil
	}
	return out
}

// escapeGlob is the pattern of one name.
func escapeGlob(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(`\*?[] `, name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
