package command

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"rentop/remote"
)

// cleaner passes a log to a terminal: line ends, carriage returns (progress
// bars live of them), tabs and text go through; escape sequences go away. It
// holds back what is not whole yet, and never more than maxHeld bytes.
type cleaner struct {
	out  io.Writer
	held []byte
}

const maxHeld = 4096

func newCleaner(out io.Writer) *cleaner { return &cleaner{out: out} }

func (c *cleaner) Write(p []byte) (int, error) {
	text := slices.Concat(c.held, p)
	whole := len(text) - partRune(text)
	text, c.held = text[:whole], text[whole:]
	var clean []byte
	for len(text) > 0 {
		seq, _, n, _ := ansi.DecodeSequence(text, 0, nil)
		if unfinished(seq, n == len(text)) && n < maxHeld {
			c.held = slices.Concat(text, c.held)
			break
		}
		text = text[n:]
		switch {
		case len(seq) == 1 && (seq[0] == '\n' || seq[0] == '\r' || seq[0] == '\t'):
			clean = append(clean, seq...)
		case seq[0] == 0x1b && len(seq) > 1:
			// a whole escape sequence
		default:
			clean = append(clean, remote.Clean(string(seq))...)
		}
	}
	if _, err := c.out.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// partRune counts the bytes at the end that begin a character and miss its rest.
func partRune(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// unfinished tells whether what was decoded may go on with the next bytes.
func unfinished(seq []byte, last bool) bool {
	if !last {
		return false
	}
	if seq[0] != 0x1b {
		return false
	}
	if len(seq) == 1 {
		return true
	}
	end := seq[len(seq)-1]
	switch seq[1] {
	case '[':
		return len(seq) == 2 || end < 0x40 || end > 0x7e
	case ']', 'P', '_', '^', 'X':
		return end != 7 && !(end == '\\' && len(seq) > 3 && seq[len(seq)-2] == 0x1b)
	}
	return end >= 0x20 && end <= 0x2f // an intermediate: the final byte is to come
}
