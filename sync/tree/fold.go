package tree

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// This file folds names as macOS and Windows do that take several spellings for
// one name.

// Fold is the same for names that are one where letters' case does not count and
// where an accented letter is the same in one character or in two (NFC, NFD). It
// folds rather more than either system: a name that is held for another is shown
// and left out, one that is not would overwrite it.
func Fold(name string) string {
	ascii := true
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(name)
	}
	table := decomposed()
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteByte(name[i]) // no UTF-8: as it is
			i++
			continue
		}
		i += n
		r = unicode.ToLower(r)
		switch parts, ok := table[r]; {
		case ok:
			b.WriteString(parts)
		case r >= hangulBase && r < hangulBase+11172:
			s := r - hangulBase
			b.WriteRune(0x1100 + s/588)
			b.WriteRune(0x1161 + s%588/28)
			if t := s % 28; t > 0 {
				b.WriteRune(0x11a7 + t)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

const hangulBase = 0xac00

// decomposed is the table by letter.
var decomposed = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for word := range strings.SplitSeq(strings.TrimSuffix(decompositions, " "), " ") {
		r, n := utf8.DecodeRuneInString(word)
		m[r] = word[n:]
	}
	return m
})
