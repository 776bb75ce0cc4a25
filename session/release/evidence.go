// Small helpers for what a line shows.

package release

import (
	"slices"

	"rentop/session/phrase"
)

// maxEvidence bounds how many things a line names; the rest is one sum.
const maxEvidence = 200

// theRest stands for things that are not named; Evidence.Detail says how many.
const theRest = "…"

// bounded sorts evidence, what would be lost and is largest first, and sums up
// what is beyond the bound.
func bounded(list []Evidence) []Evidence {
	slices.SortStableFunc(list, func(a, b Evidence) int {
		switch {
		case a.Lost != b.Lost && a.Lost:
			return -1
		case a.Lost != b.Lost:
			return 1
		case a.Size != b.Size:
			return int(max(-1, min(1, b.Size-a.Size)))
		default:
			return 0
		}
	})
	if len(list) <= maxEvidence {
		return list
	}
	rest := Evidence{Size: 0}
	n := 0
	for _, e := range list[maxEvidence:] {
		if e.Lost == list[maxEvidence].Lost {
			n++
			rest.Size += max(0, e.Size)
			rest.Lost = e.Lost
		}
	}
	rest.Detail = phrase.Say("release.more", n)
	rest.What, rest.More = theRest, n
	return append(slices.Clone(list[:maxEvidence]), rest)
}
