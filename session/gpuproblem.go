package session

import (
	"strings"

	"rentop/remote/gpu"
	"rentop/session/phrase"
)

// ProblemText is why no GPU is read, and what to do: the closed list of remote/gpu's
// sentences, each with which card where it says so.
func ProblemText(p *gpu.Problem) (what, cure phrase.Text) {
	words, card, one := strings.Cut(p.What, " (GPU ")
	what = phrase.Word("problem.", words)
	if one {
		what = what.Then(phrase.Plain(" (GPU " + card))
	}
	return what, phrase.Word("cure.", p.Cure)
}
