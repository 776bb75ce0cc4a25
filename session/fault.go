package session

import (
	"strings"

	"rentop/remote"
	"rentop/session/phrase"
)

// fault is why there is no connection: remote's own sentence, under the id of its
// kind so that every language can say what it is about.
func fault(err error) phrase.Text { return phrase.Say(phrase.ID("fault."+remote.Kind(err)), err) }

// sayStage is how far a connection is, as remote.DialOptions.OnStage tells.
func sayStage(stage string) phrase.Text {
	if to, ok := strings.CutPrefix(stage, "connecting to "); ok {
		return phrase.Say("state.dial", to)
	}
	if as, ok := strings.CutPrefix(stage, "logging in as "); ok {
		return phrase.Say("state.login.as", as)
	}
	return phrase.Say("state.asks")
}
