package tree

import "strings"

// This file is git's wildmatch (git/wildmatch.c) for one pattern and one name,
// byte by byte. Results other than match steer its backtracking, without which
// "*a*a*a*b" takes exponential time.

type wild int

const (
	wmMatch wild = iota
	wmNoMatch
	wmAbortAll        // the name ended: a longer '*' will not help
	wmAbortToStarStar // a '/' stopped '*': only '**' can help
)

// wildmatch says whether pattern matches name. With pathname '*' and '?' stop
// at slashes and '**' means folders.
func wildmatch(pattern, name string, pathname bool) bool {
	return dowild(pattern, name, pathname, 0) == wmMatch
}

// maxWildDepth bounds recursion; no real pattern holds so many stars.
const maxWildDepth = 200

func dowild(p, t string, pathname bool, depth int) wild {
	if depth > maxWildDepth {
		return wmAbortAll
	}
	full := p
	for i := 0; i < len(p); i++ {
		c := p[i]
		if len(t) == 0 && c != '*' {
			return wmAbortAll
		}
		switch c {
		case '\\':
			i++
			if i >= len(p) || t[0] != p[i] {
				return wmNoMatch
			}
		case '?':
			if pathname && t[0] == '/' {
				return wmNoMatch
			}
		case '*':
			return star(full, i, t, pathname, depth)
		case '[':
			ok, n := class(p[i:], t[0])
			if n == 0 {
				return wmAbortAll
			}
			if !ok || pathname && t[0] == '/' {
				return wmNoMatch
			}
			i += n - 1
		default:
			if t[0] != c {
				return wmNoMatch
			}
		}
		t = t[1:]
	}
	if len(t) > 0 {
		return wmNoMatch
	}
	return wmMatch
}

// star handles the '*' at full[i].
func star(full string, i int, t string, pathname bool, depth int) wild {
	p := full[i+1:]
	matchSlash := !pathname
	if strings.HasPrefix(p, "*") {
		before := i == 0 || full[i-1] == '/'
		p = strings.TrimLeft(p, "*")
		switch {
		case !pathname:
			matchSlash = true
		case before && (p == "" || p[0] == '/' || strings.HasPrefix(p, `\/`)):
			// "**/" also matches no folder at all.
			if strings.HasPrefix(p, "/") && dowild(p[1:], t, pathname, depth+1) == wmMatch {
				return wmMatch
			}
			matchSlash = true
		default:
			matchSlash = false
		}
	}
	if p == "" {
		if !matchSlash && strings.Contains(t, "/") {
			return wmAbortToStarStar
		}
		return wmMatch
	}
	if !matchSlash && p[0] == '/' {
		// one level: the star eats up to the next slash, and only that
		s := strings.IndexByte(t, '/')
		if s < 0 {
			return wmAbortAll
		}
		return dowild(p, t[s:], pathname, depth+1)
	}
	for ; ; t = t[1:] {
		if len(t) == 0 {
			return wmAbortAll
		}
		m := dowild(p, t, pathname, depth+1)
		if m != wmNoMatch {
			if !matchSlash || m != wmAbortToStarStar {
				return m
			}
		} else if !matchSlash && t[0] == '/' {
			return wmAbortToStarStar
		}
	}
}

// class matches c against the bracket expression at the start of p and returns
// its length, 0 where it does not end.
func class(p string, c byte) (ok bool, n int) {
	i := 1
	negate := false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negate = true
		i++
	}
	var prev byte
	matched := false
	for first := true; ; first = false {
		if i >= len(p) {
			return false, 0
		}
		ch := p[i]
		switch {
		case ch == ']' && !first:
			return matched != negate, i + 1
		case ch == '\\':
			i++
			if i >= len(p) {
				return false, 0
			}
			ch = p[i]
			if c == ch {
				matched = true
			}
		case ch == '-' && prev != 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			ch = p[i]
			if ch == '\\' {
				i++
				if i >= len(p) {
					return false, 0
				}
				ch = p[i]
			}
			if c >= prev && c <= ch {
				matched = true
			}
			ch = 0 // a range's end starts no other range
		case ch == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return false, 0
			}
			name := p[i+2 : i+2+end]
			if !strings.HasSuffix(name, ":") {
				// no ":]": git takes the '[' as itself
				if c == '[' {
					matched = true
				}
				break
			}
			in, known := posixClass(name[:len(name)-1], c)
			if !known {
				return false, 0
			}
			matched = matched || in
			i += 2 + end
			ch = 0
		default:
			if c == ch {
				matched = true
			}
		}
		prev = ch
		i++
	}
}

func posixClass(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	print := c >= 0x20 && c < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < 0x20 || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return print && c != ' ', true
	case "lower":
		return lower, true
	case "print":
		return print, true
	case "punct":
		return print && c != ' ' && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}
