package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"rentop/remote/provider"
)

// imaging tells of a snapshot what is in turn, then the last again and again.
type imaging struct {
	provider.Provider
	tells []provider.SnapshotState
	asked int
	err   error // of the first question
}

func (p *imaging) SnapshotState(context.Context, string) (provider.SnapshotState, error) {
	p.asked++
	if p.asked == 1 && p.err != nil {
		return provider.SnapshotState{}, p.err
	}
	return p.tells[min(p.asked, len(p.tells))-1], nil
}

// A provider's snapshot is taken once it is ready, and in each round it is asked
// whether it still is; one that never is blocks what would be lost.
func TestProviderSnapshotIsReady(t *testing.T) {
	making, ready := provider.SnapshotState{Detail: "pending 40%"}, provider.SnapshotState{Ready: true, Detail: "available"}
	for _, c := range []struct {
		what  string
		tells []provider.SnapshotState
		err   error
		want  CheckState
		says  string
	}{
		{"after a while", []provider.SnapshotState{making, making, ready}, nil, Passed, "1 snapshot taken"},
		{"after no answer", []provider.SnapshotState{making, ready}, errors.New("no answer"), Passed, "1 snapshot taken"},
		{"failed", []provider.SnapshotState{making, {Failed: true, Detail: "disk error"}}, nil, Offered, "disk error"},
		{"never", []provider.SnapshotState{making}, nil, Offered, "not ready after 3h0m0s"},
		{"gone again", []provider.SnapshotState{ready, {Failed: true, Detail: "deregistered"}}, nil, Failed, "not whole any more"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fastEnv()
			w.deps.Provider = &imaging{Provider: w.deps.Provider, tells: c.tells, err: c.err}
			take := func(View) Decision { return Decision{Kind: DecideSnapshot, Snapshot: ProviderSnapshot} }
			v, _, err := w.release(Destroy, take, cancel)
			if err != nil {
				t.Fatal(err)
			}
			if got := line(v, CheckSnapshot); got.State != c.want || !strings.Contains(got.Summary.String(), c.says) {
				t.Errorf("%s, %q: want %s, %q", got.State, got.Summary, c.want, c.says)
			}
		})
	}
}
