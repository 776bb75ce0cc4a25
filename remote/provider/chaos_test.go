package provider_test

// Any request may go wrong in any way. Whatever happens, nothing is told that is
// not so, nothing else is touched, and no action is repeated that may have been
// done.

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"rentop/remote/provider"
)

// chaosRuns are a few seconds; RENTOP_CHAOS=1000 tells more stories.
const chaosRuns = 300

// chaos runs seeded stories of faults against a dialect's adapter.
func chaos(t *testing.T, d *dialect) {
	runs := cmp.Or(d.stories, chaosRuns)
	if n, err := strconv.Atoi(os.Getenv("RENTOP_CHAOS")); err == nil {
		runs = n
	}
	for seed := range uint64(runs) {
		story(t, d, seed)
		if t.Failed() {
			t.Fatalf("%s: seed %d", d.kind, seed)
		}
	}
}

func story(t *testing.T, d *dialect, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := newStandIn(t, d)
	p := s.inMemory()
	target, other := d.ids[0], d.ids[1]
	if _, err := p.(provider.Importer).Import(t.Context()); err != nil {
		t.Fatal(err)
	}
	rate := 0.1 + 0.5*rng.Float64()
	acted := map[string]int{}
	s.next = func(r *http.Request) fault {
		f := fine
		if rng.Float64() < rate {
			f = fault(1 + rng.IntN(int(lastFault)-1))
		}
		line := s.requests[len(s.requests)-1]
		if f != limited && d.acts(r) {
			acted[line]++
		}
		return f
	}
	var log []string
	told := func(what string, err error) {
		log = append(log, fmt.Sprintf("%s: %v (truth %s)", what, err, s.truth(target)))
		if err != nil && strings.Contains(err.Error(), theKey) {
			t.Errorf("the key is told: %v", err)
		}
		for line, n := range acted {
			if n > 1 {
				t.Errorf("%s sent %d times: %s", what, n, line)
			}
		}
		clear(acted)
		if s.truth(other) != "running" || s.destroys[other] > 0 {
			t.Errorf("the other instance is %s", s.truth(other))
		}
	}
	check := func() {
		st, err := p.Status(t.Context(), target)
		told("status "+string(st.State), err)
		if err != nil {
			return
		}
		truth := truthOf(s.truth(target))
		if st.State != truth && st.State != provider.Changing && st.State != provider.Unknown {
			t.Errorf("told %q (%s), it is %q", st.State, st.Detail, truth)
		}
	}
	can := p.Can()
	for range 4 + rng.IntN(6) {
		switch n := rng.IntN(12); {
		case n < 3:
			check()
		case n < 5 && can.Stop:
			err := p.Stop(t.Context(), target)
			told("stop", err)
		case n < 7 && can.Start:
			told("start", p.Start(t.Context(), target))
		case n < 8:
			err := p.Destroy(t.Context(), target)
			told("destroy", err)
			if err == nil && s.destroys[target] == 0 {
				t.Error("a destroy succeeded that never reached the service")
			}
			check()
		case n < 9 && can.Snapshot:
			_, err := p.Snapshot(t.Context(), target, "before")
			told("snapshot", err)
		case n < 10:
			_, err := p.Leftovers(t.Context(), target, provider.Gone)
			told("leftovers", err)
		case n < 11:
			list, err := p.(provider.Importer).Import(t.Context())
			told("import", err)
			if err == nil && len(list) != len(s.live()) {
				t.Errorf("a list of %d, there are %d", len(list), len(s.live()))
			}
		default:
			s.mu.Lock()
			s.lag = !s.lag
			s.mu.Unlock()
			if !s.lag {
				s.settle()
			}
		}
	}
	// When the weather clears, it can be brought to its end.
	s.next = nil
	s.settle()
	told("last destroy", p.Destroy(t.Context(), target))
	s.settle()
	if st, err := p.Status(t.Context(), target); err != nil || st.State != provider.Gone || s.truth(target) != "gone" {
		t.Errorf("at the end: told %q, %v; it is %s", st.State, err, s.truth(target))
	}
	if s.truth(other) != "running" || s.destroys[other] > 0 {
		t.Errorf("at the end the other instance is %s", s.truth(other))
	}
	made := map[string]int{}
	for _, im := range s.images {
		if made[im.box+im.name]++; made[im.box+im.name] > 1 {
			t.Errorf("two images of the same name: %+v", s.images)
		}
	}
	if t.Failed() {
		t.Logf("seed %d:\n%s\n%s", seed, strings.Join(log, "\n"), strings.Join(s.requests, ""))
	}
}
