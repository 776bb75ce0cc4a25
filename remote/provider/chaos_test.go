package provider_test

// Any request may go wrong in any way. Whatever happens, nothing is told that is
// not so, nothing else is touched, and no action is repeated that may have been
// done.

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// chaosRuns are a few seconds; RENTOP_CHAOS=1000 tells more stories.
const chaosRuns = 200

// chaos runs seeded stories of faults against a dialect's adapter.
func chaos(t *testing.T, d *cloudtest.Dialect) {
	runs := chaosRuns
	if d.Kind == "command" {
		runs /= 10 // each of its requests is a shell
	}
	if n, err := strconv.Atoi(os.Getenv("RENTOP_CHAOS")); err == nil {
		runs = n
	}
	for seed := range uint64(runs) {
		story(t, d, seed)
		if t.Failed() {
			t.Fatalf("%s: seed %d", d.Kind, seed)
		}
	}
}

func story(t *testing.T, d *cloudtest.Dialect, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := cloudtest.New(t, d)
	p := s.InMemory()
	target, other := d.IDs[0], d.IDs[1]
	importer, imports := p.(provider.Importer)
	if _, err := p.Status(t.Context(), target); err != nil { // the key has seen it
		t.Fatal(err)
	}
	rate := 0.1 + 0.5*rng.Float64()
	acted, lag := map[string]int{}, false
	s.Next = func(r *http.Request) cloudtest.Fault {
		f := cloudtest.Fine
		if rng.Float64() < rate {
			f = cloudtest.Fault(1 + rng.IntN(int(cloudtest.LastFault)-1))
		}
		line := s.Requests[len(s.Requests)-1]
		if f != cloudtest.Limited && d.Acts(r) {
			acted[line]++
		}
		return f
	}
	var log []string
	told := func(what string, err error) {
		log = append(log, fmt.Sprintf("%s: %v (truth %s)", what, err, s.Truth(target)))
		if err != nil && strings.Contains(err.Error(), cloudtest.Key) {
			t.Errorf("the key is told: %v", err)
		}
		for line, n := range acted {
			if n > 1 {
				t.Errorf("%s sent %d times: %s", what, n, line)
			}
		}
		clear(acted)
		if s.Truth(other) != "running" || s.Destroys[other] > 0 {
			t.Errorf("the other instance is %s", s.Truth(other))
		}
	}
	check := func() {
		st, err := p.Status(t.Context(), target)
		told("status "+string(st.State), err)
		if err != nil {
			return
		}
		truth := cloudtest.StateOf(s.Truth(target))
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
			if err == nil && s.Destroys[target] == 0 {
				t.Error("a destroy succeeded that never reached the service")
			}
			check()
		case n < 9 && can.Snapshot:
			_, err := p.Snapshot(t.Context(), target, "before")
			told("snapshot", err)
		case n < 10:
			_, err := p.Leftovers(t.Context(), target, provider.Gone)
			told("leftovers", err)
		case n < 11 && imports:
			list, err := importer.Import(t.Context())
			told("import", err)
			if err == nil && len(list) != len(s.Live()) {
				t.Errorf("a list of %d, there are %d", len(list), len(s.Live()))
			}
		default:
			if lag = !lag; lag {
				s.Lag()
			} else {
				s.Settle()
			}
		}
	}
	// When the weather clears, it can be brought to its end.
	s.Next = nil
	s.Settle()
	told("last destroy", p.Destroy(t.Context(), target))
	s.Settle()
	if st, err := p.Status(t.Context(), target); err != nil || st.State != provider.Gone || s.Truth(target) != "gone" {
		t.Errorf("at the end: told %q, %v; it is %s", st.State, err, s.Truth(target))
	}
	if s.Truth(other) != "running" || s.Destroys[other] > 0 {
		t.Errorf("at the end the other instance is %s", s.Truth(other))
	}
	made := map[string]int{}
	for _, im := range s.Images {
		if made[im.Box+im.Name]++; made[im.Box+im.Name] > 1 {
			t.Errorf("two images of the same name: %+v", s.Images)
		}
	}
	if t.Failed() {
		t.Logf("seed %d:\n%s\n%s", seed, strings.Join(log, "\n"), strings.Join(s.Requests, ""))
	}
}
