package tree

import (
	"bytes"
	"strings"
)

// This file decides what is left out: .gitignore with git's exact meaning
// (gitignore(5); checked against `git check-ignore` in the tests) and
// .rentopignore, the same syntax read after it, so that it wins.
//
// What rentop decides beside git: nothing is ignored unless a file says so. In
// particular .git itself is sent (release compares commits on the instance);
// write ".git" into .rentopignore to leave it at home. A file that the person
// names is sent whatever the rules say. Rules that git keeps outside of the tree
// (.git/info/exclude, core.excludesFile) do not hold: they are about what one
// person commits, and what is in a copy must not depend on them.

// MaxIgnoreFile bounds an ignore file; git's own limit is 100 MiB.
const MaxIgnoreFile = 8 << 20

// GitIgnoreFile and OwnIgnoreFile are the names of the files with rules.
const (
	GitIgnoreFile = ".gitignore"
	OwnIgnoreFile = ".rentopignore"
)

// Ignore is the rules of one tree, or of one folder and those above it. It is
// immutable; nil ignores nothing.
type Ignore struct {
	git, own, top *ruleSet
	reach         []string // of --include: paths that may lie in folders that are left out
}

// ruleSet is one file's rules in front of those read before it.
type ruleSet struct {
	before *ruleSet
	base   string // folder of the file, "" for the root
	rules  []rule
}

type rule struct {
	negate   bool
	dirOnly  bool
	anchored bool // holds a slash: matched against the path, else the last name
	kind     kind
	glob     string
}

// kind says how a glob is matched; most are plain words.
type kind uint8

const (
	pattern kind = iota
	word         // no wildcard
	ending       // "*" and a word, not anchored; glob is the word
)

// Patterns are the rules that a person gives beside the files. They win over
// those of all files, and include over exclude.
func Patterns(include, exclude []string) *Ignore {
	var rules []rule
	var g Ignore
	for _, p := range exclude {
		rules = append(rules, parseRules([]byte(p))...)
	}
	for _, p := range include {
		for _, r := range parseRules([]byte(p)) {
			if r.negate = !r.negate; r.negate && r.anchored {
				g.reach = append(g.reach, r.glob)
			}
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	g.top = &ruleSet{rules: rules}
	return &g
}

// With adds the rules of one ignore file, whose name is GitIgnoreFile or
// OwnIgnoreFile and which lies in the folder base (slash-separated, "" for the
// root). Among files of one name the later call wins, so add folders from the
// root down; any rule of an OwnIgnoreFile that matches wins over git's.
func (g *Ignore) With(name, base string, file []byte) *Ignore {
	rules := parseRules(file)
	if len(rules) == 0 {
		return g
	}
	var n Ignore
	if g != nil {
		n = *g
	}
	if name == OwnIgnoreFile {
		n.own = &ruleSet{before: n.own, base: base, rules: rules}
	} else {
		n.git = &ruleSet{before: n.git, base: base, rules: rules}
	}
	return &n
}

// parseRules reads an ignore file's lines.
func parseRules(file []byte) []rule {
	file = bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	var out []rule
	for len(file) > 0 {
		line := file
		if i := bytes.IndexByte(file, '\n'); i >= 0 {
			line, file = file[:i], file[i+1:]
			line = bytes.TrimSuffix(line, []byte("\r"))
		} else {
			file = nil
		}
		if r, ok := parseRule(string(line)); ok {
			out = append(out, r)
		}
	}
	return out
}

func parseRule(line string) (rule, bool) {
	var r rule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimTrailingSpaces(line)
	if strings.HasPrefix(line, "!") {
		r.negate = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly = true
		line = line[:len(line)-1]
	}
	if line == "" {
		return r, false
	}
	if strings.Contains(line, "/") {
		r.anchored = true
		line = strings.TrimPrefix(line, "/")
	}
	r.glob = line
	r.sort()
	return r, true
}

// sort finds the quick way to match r.
func (r *rule) sort() {
	const wild = `*?[\`
	switch {
	case r.kind != pattern:
	case !strings.ContainsAny(r.glob, wild):
		r.kind = word
	case !r.anchored && r.glob[0] == '*' && !strings.ContainsAny(r.glob[1:], wild):
		r.kind, r.glob = ending, r.glob[1:]
	}
}

// trimTrailingSpaces is git's: spaces at the end go unless a backslash keeps them.
func trimTrailingSpaces(s string) string {
	end := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if end < 0 {
				end = i
			}
		case '\\':
			i++
			end = -1
		default:
			end = -1
		}
	}
	if end < 0 {
		return s
	}
	return s[:end]
}

// Match says whether p is ignored by the rules themselves, without looking at
// the folders above it.
func (g *Ignore) Match(p string, isDir bool) bool { return g.judge(p, isDir, false) != kept }

// verdict is what rules say of a path whose folder is read.
type verdict int

const (
	kept verdict = iota
	leftOut
	reachInto // left out, but an include may name something in it
)

// judge decides about p. only says that its folder is read for the sake of what
// an include names.
func (g *Ignore) judge(p string, isDir, only bool) verdict {
	if g == nil {
		return kept
	}
	ignored, found := g.top.match(p, isDir)
	if !found && !only {
		if ignored, found = g.own.match(p, isDir); !found {
			ignored, _ = g.git.match(p, isDir)
		}
	}
	switch {
	case !ignored && (found || !only):
		return kept
	case isDir && g.reaches(p):
		return reachInto
	}
	return leftOut
}

// Reaches says whether an include may name something below the folder p, so that
// a walk goes into it although it is left out.
func (g *Ignore) Reaches(p string) bool { return g != nil && g.reaches(p) }

func (g *Ignore) reaches(p string) bool {
	for _, glob := range g.reach {
		rest, fits := p, true
		for rest != "" && fits {
			var want, have string
			want, glob, _ = strings.Cut(glob, "/")
			if want == "**" {
				return true
			}
			have, rest, _ = strings.Cut(rest, "/")
			fits = glob != "" && wildmatch(want, have, true)
		}
		if fits {
			return true
		}
	}
	return false
}

// match looks from the nearest rule outwards; the first that fits decides.
func (s *ruleSet) match(p string, isDir bool) (ignored, found bool) {
	name := p[strings.LastIndexByte(p, '/')+1:]
	for ; s != nil; s = s.before {
		rel := p
		if s.base != "" {
			if !strings.HasPrefix(p, s.base) || len(p) <= len(s.base) || p[len(s.base)] != '/' {
				continue
			}
			rel = p[len(s.base)+1:]
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if r := &s.rules[i]; r.match(rel, name, isDir) {
				return !r.negate, true
			}
		}
	}
	return false, false
}

// Excluded says whether p is ignored, itself or by a folder above it; below an
// excluded folder nothing is re-included, but for what a pattern of a person names.
func (g *Ignore) Excluded(p string, isDir bool) bool {
	if g == nil {
		return false
	}
	only := false
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			v := g.judge(p[:i], true, only)
			if v == leftOut {
				return true
			}
			only = v == reachInto
		}
	}
	return g.judge(p, isDir, only) != kept
}

func (r *rule) match(rel, name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anchored {
		name = rel
	}
	switch r.kind {
	case word:
		return name == r.glob
	case ending:
		return strings.HasSuffix(name, r.glob)
	}
	return wildmatch(r.glob, name, r.anchored)
}
