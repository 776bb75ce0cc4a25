package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a machine whose clocks and load a test sets.
type world struct {
	mono time.Duration
	wall time.Time
	util []sample.Value
	mig  []float64 // what the first card's parts hold; nil: it is not split
	none string
	jobs Jobs

	notice Notice
}

func newWorld(util ...float64) *world {
	w := &world{mono: time.Hour, wall: noon, jobs: Jobs{Ended: map[string]string{}}, notice: Notice{Asked: true}}
	for _, u := range util {
		w.util = append(w.util, sample.Of(u))
	}
	return w
}

func (w *world) pass(d time.Duration) { w.mono, w.wall = w.mono+d, w.wall.Add(d) }

func (w *world) moment() *Moment {
	m := &Moment{Mono: w.mono, Wall: w.wall, None: w.none, Jobs: w.jobs, Notice: w.notice}
	if w.none == "" {
		m.Sample = &sample.Sample{Source: "nvml"}
		for i, u := range w.util {
			g := sample.NewGPU("")
			g.Index, g.Util = i, u
			if i == 0 && w.mig != nil {
				g.MIG = "Enabled"
				for _, held := range w.mig {
					g.Instances = append(g.Instances, sample.Instance{MemUsed: sample.Of(held), MemTotal: sample.Of(40 << 30)})
				}
			}
			m.Sample.GPUs = append(m.Sample.GPUs, g)
		}
	}
	return m
}

// TestRules plays what happens to one rule, a line each: a change and for how long
// the world is watched after it; the rule must be met exactly where it says so.
func TestRules(t *testing.T) {
	t.Parallel()
	idle := Rule{Kind: Idle, Seconds: 600, Below: 5}
	for name, c := range map[string]struct {
		rule Rule
		util []float64
		play []play
	}{
		"idle":                            {idle, []float64{0, 0}, []play{{nil, 9*time.Minute + 58*time.Second, "", ""}, {nil, 3 * time.Second, "met", ""}}},
		"one GPU works":                   {idle, []float64{0, 97}, []play{{nil, 30 * time.Minute, "", "busy 1 97"}}},
		"it worked in between":            {idle, []float64{0}, []play{{nil, 9 * time.Minute, "", ""}, {util(50), 2 * time.Second, "", "busy 0 50"}, {util(0), 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"a job runs":                      {idle, []float64{0}, []play{{job("train"), time.Hour, "", "job train"}, {ends("train", "exit code 0"), 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"files are moved":                 {idle, []float64{0}, []play{{func(w *world) { w.jobs.Moves = true }, time.Hour, "", "moves"}}},
		"no samples are no idleness":      {idle, []float64{0}, []play{{nil, 9 * time.Minute, "", ""}, {silent("driver hung, 42 s"), 30 * time.Minute, "", "nosample driver hung, 42 s"}, {silent(""), 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"one value missing is none":       {idle, []float64{0, 0}, []play{{unknown(1, "[N/A]"), time.Hour, "", "noutil 1 [N/A]"}}},
		"MIG, and nothing is held":        {idle, []float64{0}, []play{{split(26<<20, 9<<20), 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"MIG, and a part is held":         {idle, []float64{0}, []play{{split(26<<20, 248<<20), time.Hour, "", "held 0 0.2 GiB"}, {split(26<<20, 9<<20), 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"MIG beside a GPU that works":     {idle, []float64{0, 97}, []play{{split(26 << 20), time.Hour, "", "busy 1 97"}}},
		"jobs that cannot be read":        {idle, []float64{0}, []play{{func(w *world) { w.jobs.Err = "no space" }, time.Hour, "", "nojobs no space"}}},
		"the guard itself slept":          {idle, []float64{0}, []play{{nil, 9 * time.Minute, "", ""}, {func(w *world) { w.pass(5 * time.Minute) }, 9 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"a clock that is set is no time":  {idle, []float64{0}, []play{{nil, time.Minute, "", ""}, {func(w *world) { w.wall = w.wall.Add(5 * time.Hour) }, 8 * time.Minute, "", ""}, {nil, 2 * time.Minute, "met", ""}}},
		"after a job":                     {Rule{Kind: After, Job: "train"}, nil, []play{{job("train"), time.Hour, "", "job train"}, {ends("train", "exit code 3"), time.Second, "met", "jobended train exit code 3"}}},
		"after a job that was removed":    {Rule{Kind: After, Job: "train"}, nil, []play{{func(w *world) { w.jobs.Running = nil }, time.Hour, "", "? nojob train"}}},
		"at a time":                       {Rule{Kind: At, Seconds: 3600}, nil, []play{{nil, 59 * time.Minute, "", ""}, {nil, 61 * time.Second, "met", ""}}},
		"the clock went forward":          {Rule{Kind: At, Seconds: 3600}, nil, []play{{nil, time.Minute, "", ""}, {func(w *world) { w.wall = w.wall.Add(2 * time.Hour) }, 58 * time.Minute, "", "? clock 2h0m0s"}, {nil, 2 * time.Minute, "met", "? clock 2h0m0s"}}},
		"the clock went back":             {Rule{Kind: Lease, Seconds: 600}, nil, []play{{func(w *world) { w.wall = w.wall.Add(-24 * time.Hour) }, 9 * time.Minute, "", "? clock -24h0m0s"}, {nil, 2 * time.Minute, "met", "? clock -24h0m0s"}}},
		"the budget is spent":             {Rule{Kind: Budget, Limit: "10", Spent: "9", PerHour: "3", Currency: "USD"}, nil, []play{{nil, 19*time.Minute + 59*time.Second, "", ""}, {nil, 2 * time.Second, "met", "spent 10 USD"}}},
		"a third of an hour, to a second": {Rule{Kind: Budget, Limit: "0.10", Spent: "0", PerHour: "0.30"}, nil, []play{{nil, 19*time.Minute + 59*time.Second, "", ""}, {nil, 2 * time.Second, "met", "spent 0.10 "}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.util...)
			watch, err := NewWatch([]Rule{c.rule}, w.mono, w.wall)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range c.play {
				if p.change != nil {
					p.change(w)
				}
				met, why := false, ""
				for end := w.mono + p.watch; w.mono < end; {
					w.pass(time.Second)
					st := watch.Step(w.moment())[0]
					met, why = met || st.Met, words(st)
				}
				if met != (p.want == "met") || why != p.why {
					t.Fatalf("line %d: met %v, %q; want %q, %q", i, met, why, p.want, p.why)
				}
			}
		})
	}
}

type play struct {
	change    func(*world)
	watch     time.Duration
	want, why string
}

func words(st Status) string {
	if st.Doubt.Key != "" {
		return strings.TrimSpace("? " + st.Doubt.Key + " " + strings.Join(st.Doubt.Args, " "))
	}
	if st.Why.Key == "" {
		return ""
	}
	return fmt.Sprint(st.Why.Key, " ", strings.Join(st.Why.Args, " "))[:len(st.Why.Key)+len(strings.Join(st.Why.Args, " "))+min(1, len(st.Why.Args))]
}

func util(u float64) func(*world) { return func(w *world) { w.util[0] = sample.Of(u) } }
func unknown(i int, why string) func(*world) {
	return func(w *world) { w.util[i] = sample.Value{Why: why} }
}
func split(held ...float64) func(*world) {
	return func(w *world) { w.util[0], w.mig = sample.Value{Why: "not supported"}, append([]float64{}, held...) }
}
func silent(why string) func(*world) { return func(w *world) { w.none = why } }
func job(id string) func(*world)     { return func(w *world) { w.jobs.Running = []string{id} } }
func ends(id, how string) func(*world) {
	return func(w *world) { w.jobs.Running, w.jobs.Ended = nil, map[string]string{id: how} }
}

// TestRefuse: a rule that could never be met, or met for nothing, is not armed.
func TestRefuse(t *testing.T) {
	t.Parallel()
	idle, after := Rule{Kind: Idle, Seconds: 60, Below: 5}, Rule{Kind: After, Job: "j"}
	for name, c := range map[string]struct {
		rule   Rule
		change func(*world)
		key    string
		soon   bool
	}{
		"all is there":        {idle, func(*world) {}, "", false},
		"no sample yet":       {idle, silent("the first reading has not come yet"), "nosample", true},
		"no GPU":              {idle, func(w *world) { w.util = nil }, "nosample", true},
		"nothing is told":     {idle, unknown(0, "[N/A]"), "noutil", true},
		"MIG, parts told":     {idle, split(8 << 30), "", false},
		"MIG, no parts told":  {idle, split(), "noutil", true},
		"jobs unreadable":     {idle, func(w *world) { w.jobs.Err = "x" }, "nojobs", false},
		"the job runs":        {after, job("j"), "", false},
		"the job has ended":   {after, ends("j", "exit code 0"), "jobended", false},
		"there is no job":     {after, func(*world) {}, "nojob", false},
		"a deadline needs no": {Rule{Kind: At, Seconds: 5}, silent("x"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0)
			c.change(w)
			watch, err := NewWatch([]Rule{c.rule}, w.mono, w.wall)
			if err != nil {
				t.Fatal(err)
			}
			why, soon, refused := watch.Refuse(w.moment())
			if why.Key != c.key || soon != c.soon || refused != (c.key != "") {
				t.Errorf("refused %v: %v, soon %v; want %q, %v", refused, why, soon, c.key, c.soon)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		spec Spec
		bad  bool
	}{
		{"plain", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: At, Seconds: 5}}}, false},
		{"no rules is for the history", Spec{Version: 1, ID: "abcdefgh1"}, false},
		{"version", Spec{Version: 2, ID: "abcdefgh1"}, true},
		{"id", Spec{Version: 1, ID: "../x"}, true},
		{"twice", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: At, Seconds: 5}, {Kind: At, Seconds: 6}}}, true},
		{"kind", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: "x"}}}, true},
		{"job is no path", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: After, Job: "../../etc"}}}, true},
		{"free of charge", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: "1", Spent: "0", PerHour: "0"}}}, true},
		{"no number", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: "1e9", Spent: "0", PerHour: "1"}}}, true},
		{"beyond a billion", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: "1000000000", Spent: "0", PerHour: "1"}}}, true},
		{"a billionth", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: "999999999.999999999", Spent: "999999999.999999998", PerHour: "0.000000001"}}}, false},
		{"no digits", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: ".5", Spent: "0", PerHour: "1"}}}, true},
		{"for ever", Spec{Version: 1, ID: "abcdefgh1", Rules: []Rule{{Kind: Budget, Limit: "999999999", Spent: "0", PerHour: "0.01"}}}, true},
		{"save without a limit", Spec{Version: 1, ID: "abcdefgh1", Save: "true"}, true},
	} {
		if err := c.spec.Validate(); (err != nil) != c.bad {
			t.Errorf("%s: %v, want bad %v", c.name, err, c.bad)
		}
	}
}
