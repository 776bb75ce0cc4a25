package tree

import (
	"bytes"
	"path"
	"strings"
)

// This file decides what is left out: .gitignore with git's exact meaning
// (gitignore(5); checked against `git check-ignore` in the tests) and
// .rentopignore, the same syntax read after it, so that it wins.
//
// What rentop decides beside git: nothing is ignored unless a file says so. In
// particular .git itself is sent (release compares commits on the instance);
// write ".git" into .rentopignore to leave it at home. A file that the person
// names is sent whatever the rules say.

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
	git, own *ruleSet
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
	glob     string
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
	return r, true
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
// the folders above it: a walk that prunes needs no more.
func (g *Ignore) Match(p string, isDir bool) bool {
	if g == nil {
		return false
	}
	if ignored, found := g.own.match(p, isDir); found {
		return ignored
	}
	ignored, _ := g.git.match(p, isDir)
	return ignored
}

// match looks from the nearest rule outwards; the first that fits decides.
func (s *ruleSet) match(p string, isDir bool) (ignored, found bool) {
	for ; s != nil; s = s.before {
		rel := p
		if s.base != "" {
			if !strings.HasPrefix(p, s.base) || len(p) <= len(s.base) || p[len(s.base)] != '/' {
				continue
			}
			rel = p[len(s.base)+1:]
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if r := &s.rules[i]; r.match(rel, isDir) {
				return !r.negate, true
			}
		}
	}
	return false, false
}

// Excluded says whether p is ignored, itself or by a folder above it; below an
// excluded folder nothing is re-included.
func (g *Ignore) Excluded(p string, isDir bool) bool {
	if g == nil {
		return false
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && g.Match(p[:i], true) {
			return true
		}
	}
	return g.Match(p, isDir)
}

func (r *rule) match(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anchored {
		return wildmatch(r.glob, rel, true)
	}
	return wildmatch(r.glob, path.Base(rel), false)
}
