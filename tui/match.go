package tui

// Filters, and what a paste means.

import (
	"net/url"
	"strings"

	"github.com/sahilm/fuzzy"
)

// matcher makes a test of a filter: every word must be in the text, "!word" must
// not, "~word" need only have its letters there in order. Case does not matter.
func matcher(filter string) func(text string) bool {
	words := strings.Fields(strings.ToLower(filter))
	return func(text string) bool {
		text = strings.ToLower(text)
		for _, w := range words {
			switch {
			case len(w) > 1 && w[0] == '!':
				if strings.Contains(text, w[1:]) {
					return false
				}
			case len(w) > 1 && w[0] == '~':
				if len(fuzzy.Find(w[1:], []string{text})) == 0 {
					return false
				}
			case w == "!" || w == "~": // not finished typing
			case !strings.Contains(text, w):
				return false
			}
		}
		return true
	}
}

// sshLine is the line in a pasted text that says how to log in: "ssh …",
// "ssh://…", or user@host[:port]. "" where there is none.
func sshLine(s string) string {
	for _, l := range strings.Split(s, "\n") {
		l = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "$ "))
		if len(l) > 1000 {
			continue
		}
		switch {
		case strings.HasPrefix(l, "ssh ") && len(strings.Fields(l)) > 1:
			return l
		case strings.HasPrefix(l, "ssh://"):
			if u, err := url.Parse(l); err == nil && u.Host != "" {
				return l
			}
		case !strings.ContainsAny(l, " \t/") && strings.Count(l, "@") == 1 && !strings.HasPrefix(l, "@") && !strings.HasSuffix(l, "@"):
			return l
		}
	}
	return ""
}
