package remote

import "rentop/remote/clean"

// Clean makes text from an instance safe to show on one line: invalid UTF-8,
// control characters, escape sequences' introducers, bidirectional overrides
// and other invisible format characters become visible stand-ins; tabs and line
// ends become a space.
func Clean(s string) string { return clean.Line(s) }

// CleanLines is Clean for text of several lines: line ends stay.
func CleanLines(s string) string { return clean.Lines(s) }

// Short is Clean, cut to at most n runes with an ellipsis.
func Short(s string, n int) string { return clean.Short(s, n) }
