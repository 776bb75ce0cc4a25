// Releases at every provider: the real adapter over the stand-in of its service, a
// fault at any call, and death at any line of the journal and in any call. What the
// stand-in's machines are is the truth that the oracle compares with.

package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
	"rentop/session/phrase"
)

var cloudRounds = flag.Int("release.clouds", 4, "releases of TestRandomReleasesAtClouds at each provider")

func TestRandomReleasesAtClouds(t *testing.T) {
	for _, cloud := range cloudtest.Providers() {
		t.Run(cloud.Kind, func(t *testing.T) {
			t.Parallel()
			sum := tally{ends: map[Phase]int{}}
			for seed := range uint64(*cloudRounds) {
				releaseAt(t, cloud, seed, &sum)
			}
			t.Logf("%d releases ended as %v after %d requests to the service, %d of them teardowns; %d had a fault, %d were the process's last",
				*cloudRounds, sum.ends, sum.requests, sum.teardowns, sum.faults, sum.deaths)
			if min(sum.teardowns, sum.ends[Review]) < *cloudRounds/4 {
				t.Error("too few came to a teardown for the test to mean anything")
			}
		})
	}
}

// tally is what became of many releases.
type tally struct {
	ends                                map[Phase]int
	requests, teardowns, faults, deaths int
}

func releaseAt(t *testing.T, cloud cloudtest.Maker, seed uint64, sum *tally) {
	r := rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, cloud.Kind, seed))))
	s := cloudtest.New(t, cloud.Make(t))
	id, other := s.IDs[0], s.IDs[1]
	w := newWorld(t)
	w.truth = func() provider.State { return cloudtest.StateOf(s.Truth(id)) }
	w.deps.Runner = skipEnv{&remembering{shell: w.sh, said: map[string]heard{}}}
	w.deps.ProviderID = id
	seen := filepath.Join(w.here, "seen")
	w.deps.GoesOn = func(ctx context.Context, after Goal) ([]GoesOn, error) {
		state := provider.Gone
		if after == Stop {
			state = provider.Stopped
		}
		left, err := w.deps.Provider.Leftovers(ctx, id, state)
		out := make([]GoesOn, len(left))
		for i, l := range left {
			out[i] = GoesOn{phrase.Plain(l.Kind + " " + l.ID), l.PerMonth}
		}
		return out, err
	}
	// A new process is a new adapter; of the old one only files are left.
	begin := func() { s.Revive(); w.deps.Provider = s.Remembering(provider.SeenFile(seen)) }
	begin()
	if _, err := w.deps.Provider.Status(t.Context(), id); err != nil { // as after an import
		t.Fatal(err)
	}

	o := newOracle(w)
	_, tells := w.deps.Provider.(provider.Imager)
	s.Torn = func(id, action string) {
		o.teardown(action, id)
		for _, im := range o.images {
			if _, own, placed := strings.Cut(im, "/"); placed {
				im = own
			}
			if s.Images[im] == nil && tells {
				o.fail("%s while image %s, shown as taken, does not exist", action, im)
			}
		}
	}
	w.deps.Stay = r.IntN(3) == 0
	s.Kill = func() { o.j.dead = true }
	s.Sleep = w.clock.Sleep
	goal := []Goal{Destroy, Destroy, Stop}[r.IntN(3)]
	if !w.deps.Provider.Can().Stop {
		goal = Destroy
	}
	slow := r.IntN(3) == 0
	if slow {
		s.Lag()
	}
	w.clock.slept = func() {
		if slow && r.IntN(4) == 0 {
			s.Settle()
			s.Lag()
		}
	}
	if r.IntN(8) == 0 {
		s.Boxes[id].State = "gone" // by the person, in the provider's console
	}
	if w.deps.Provider.Can().Snapshot && r.IntN(3) == 0 {
		o.first = []Decision{{Kind: DecideSnapshot, Snapshot: ProviderSnapshot}}
	}
	roll := func() cloudtest.Fault { return cloudtest.Fault(1 + r.IntN(int(cloudtest.LastFault)-1)) }
	usual := roll() // most of what goes wrong in one release goes wrong alike
	rate, deadly := []float64{0, 0.05, 0.15, 0.4}[r.IntN(4)], []float64{0, 0.01, 0.04}[r.IntN(3)]
	fault := func(acts bool) cloudtest.Fault {
		rate := rate
		if acts {
			rate *= 2
		}
		switch p := r.Float64(); {
		case p < rate:
			sum.faults++
			if r.IntN(2) == 0 {
				return usual
			}
			return roll()
		case p < rate+deadly:
			sum.deaths++
			return []cloudtest.Fault{cloudtest.Killed, cloudtest.KilledAfter}[r.IntN(2)]
		}
		return cloudtest.Fine
	}
	s.Next = func(q *http.Request) cloudtest.Fault {
		sum.requests++
		if o.j.dead {
			o.fail("a request after a line that the journal did not take")
		}
		line := s.Requests[len(s.Requests)-1]
		acts := s.Acts(q)
		f := fault(acts)
		if acts && f != cloudtest.Limited && f != cloudtest.Killed {
			if o.acted[line] {
				o.fail("sent twice: %s", line)
			}
			o.acted[line] = true
		}
		return f
	}
	lives := 0
	v := o.wander(t, r, goal, func() {
		if lives++; lives == 12 { // the weather clears
			s.Next, slow = nil, false
			s.Settle()
		}
		begin()
	})

	if v.Phase != Review && v.Phase != Cancelled {
		o.fail("it ends %s", v.Phase)
	}
	if v.Phase == Review && goal == Stop && s.Truth(id) == "off" && len(v.Why) == 0 {
		o.fail("stopped and charged, and that was not said")
	}
	if s.Truth(other) != "running" || s.Destroys[other] > 0 {
		o.fail("the other instance is %s", s.Truth(other))
	}
	o.report(t, fmt.Sprintf("%s, seed %d (%s)", cloud.Kind, seed, goal))
	if t.Failed() {
		t.Fatalf("%s, seed %d: the machine is %s\n%s\n%s", cloud.Kind, seed, s.Truth(id), text(v), o.story())
	}
	sum.ends[v.Phase]++
	sum.teardowns += o.teardowns
}

// story is the journal in short.
func (o *oracle) story() string {
	var b bytes.Buffer
	entries, _ := o.j.Load(context.Background())
	for _, e := range entries {
		if e.Step != stepCheck {
			fmt.Fprintf(&b, "%s %s %.300s\n", e.At.Format("15:04:05"), e.Step, e.Data)
		}
	}
	return b.String()
}

// remembering is a shell that runs a script once over the same files: these releases
// are about the provider, and most of what they would do is to hash again.
type remembering struct {
	*shell
	said map[string]heard
}

type heard struct {
	out, errs []byte
	err       error
}

func (s *remembering) Run(ctx context.Context, c remote.Cmd) error {
	if err := s.reach(c); err != nil {
		return err
	}
	var in []byte
	if c.Stdin != nil {
		var err error
		if in, err = io.ReadAll(c.Stdin); err != nil {
			return err
		}
	}
	files := s.files()
	key := fmt.Sprintf("%s\x00%s\x00%s", c.Script, in, files)
	a, known := s.said[key]
	if !known {
		var out, errs bytes.Buffer
		run := remote.Cmd{Script: c.Script, Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs}
		a.err = s.exec(ctx, run)
		a.out, a.errs = out.Bytes(), errs.Bytes()
		if ctx.Err() == nil && s.files() == files {
			s.said[key] = a
		}
	}
	if c.Stdout != nil {
		if _, err := c.Stdout.Write(a.out); err != nil {
			return err
		}
	}
	if c.Stderr != nil {
		if _, err := c.Stderr.Write(a.errs); err != nil {
			return err
		}
	}
	return a.err
}

// files names all that is on the instance, with sizes and times.
func (s *remembering) files() string {
	h := sha256.New()
	_ = filepath.WalkDir(s.home, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err == nil {
			fmt.Fprintln(h, p, st.Size(), st.Mode(), st.ModTime().UnixNano())
		}
		return err
	})
	return string(h.Sum(nil))
}
