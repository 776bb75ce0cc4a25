package session

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"rentop/remote"
	"rentop/session/ledger"
)

// KnownJobs are the names of the instance's jobs as the ledger has them, newest
// first and each once. It asks nothing of the instance.
func (s *Session) KnownJobs(ctx context.Context) ([]string, error) {
	events, err := s.f.ledger.Events(ctx, ledger.Filter{Instance: s.uid, Kinds: []ledger.Kind{ledger.JobStarted, ledger.JobEnded}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range slices.Backward(events) {
		var j struct{ ID, Name string }
		if json.Unmarshal(e.Data, &j) != nil {
			continue // a newer rentop's
		}
		if name := remote.Clean(cmp.Or(j.Name, j.ID)); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
