package alarm

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Watch runs the rules over time. The zero Watch is ready; its methods are for one
// goroutine.
type Watch struct {
	window  window
	idle    time.Time // since when every GPU has been idle
	base    map[string]float64
	running map[string]bool // jobs that were seen running
	active  map[string]*active
	silent  map[string]time.Time
	past    []Past
}

// active is a rule's state for one thing.
type active struct {
	finding Finding
	first   time.Time // when it was found first, this time
	last    time.Time // when it was found last
	said    bool
}

// Past is one finding that was said.
type Past struct {
	Finding
	Ended time.Time // zero while it lasts
}

const maxPast = 200

// rule is one row of the table.
type rule struct {
	name  string
	hold  time.Duration // found for so long before it is said
	clear time.Duration // gone for so long before it ends
	find  func(*Watch, *Moment, *Limits) []Finding
}

// Silence keeps a finding from being said until a time.
func (w *Watch) Silence(id string, until time.Time) {
	if w.silent == nil {
		w.silent = map[string]time.Time{}
	}
	w.silent[id] = until
}

// Quiet says until when a finding is silenced; zero: it is not.
func (w *Watch) Quiet(id string) time.Time { return w.silent[id] }

// Past gives what was said, newest last. What was silenced is there too.
func (w *Watch) Past() []Past { return slices.Clone(w.past) }

// Step takes a moment and gives what is to be said now, in the order of the rules.
func (w *Watch) Step(m Moment, l Limits) []Finding {
	if w.active == nil {
		w.active, w.base, w.running = map[string]*active{}, map[string]float64{}, map[string]bool{}
	}
	if m.Live && m.Sample != nil {
		w.window.add(m.Sample)
	}
	var out []Finding
	for _, r := range rules() {
		found := map[string]bool{}
		for _, f := range r.find(w, &m, &l) {
			found[f.ID] = true
			a := w.active[f.ID]
			if a == nil {
				a = &active{first: m.At}
				w.active[f.ID] = a
			}
			a.last = m.At
			if f.Since.IsZero() || f.Since.After(a.first) {
				f.Since = a.first
			}
			a.finding = f
			if !a.said && m.At.Sub(a.first) >= r.hold && !slices.Contains(l.Off, r.name) {
				a.said = true
				w.remember(f)
			}
			w.freshen(f, a.said)
		}
		for id, a := range w.active {
			if !found[id] && owner(id) == r.name && (!a.said || m.At.Sub(a.last) >= r.clear || m.At.Before(a.last)) {
				w.end(id, m.At)
				delete(w.active, id)
			}
		}
		for _, id := range order(w.active, r.name) {
			if a := w.active[id]; a.said && !m.At.Before(w.silent[id]) && !slices.Contains(l.Off, r.name) {
				out = append(out, a.finding)
			}
		}
	}
	for _, j := range m.Jobs {
		if j.Running {
			w.running[j.Name+j.Began.String()] = true
		}
	}
	return out
}

// order are the things that a rule has found, in a fixed order.
func order(all map[string]*active, name string) []string {
	var ids []string
	for id := range all {
		if owner(id) == name {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return ids
}

// owner is the rule of an id: its first word, without a number behind it.
func owner(id string) string {
	for i := 0; i < len(id); i++ {
		if id[i] == ' ' || id[i] >= '0' && id[i] <= '9' {
			return id[:i]
		}
	}
	return id
}

func (w *Watch) remember(f Finding) {
	w.past = append(w.past, Past{Finding: f})
	if n := len(w.past) - maxPast; n > 0 {
		w.past = slices.Delete(w.past, 0, n)
	}
}

// freshen keeps the newest evidence of what lasts.
func (w *Watch) freshen(f Finding, said bool) {
	for i := len(w.past) - 1; said && i >= 0; i-- {
		if w.past[i].ID == f.ID && w.past[i].Ended.IsZero() {
			w.past[i].Finding = f
			return
		}
	}
}

func (w *Watch) end(id string, at time.Time) {
	for i := len(w.past) - 1; i >= 0; i-- {
		if w.past[i].ID == id && w.past[i].Ended.IsZero() {
			w.past[i].Ended = at
			return
		}
	}
}

// Known says whether there is an alarm of this name.
func Known(name string) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.name == name })
}

// Names are the alarms' names.
func Names() string {
	var all []string
	for _, r := range rules() {
		all = append(all, r.name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// rules is the table, what needs the person most first.
func rules() []rule {
	return []rule{
		{"gpu", 0, 3 * time.Second, lost},
		{"driver", 0, 3 * time.Second, hung},
		{"xid", 0, 0, xids},
		{"ecc", 0, 0, eccErrors},
		{"remap", 0, 0, remaps},
		{"idle", 0, 0, idle},
		{"unreachable", 0, 0, unreachable},
		{"budget", 0, 0, budget},
		{"runway", 0, time.Minute, runway},
		{"job", 0, 0, jobs},
		{"hot", 6 * time.Second, 20 * time.Second, hot},
		{"brake", 3 * time.Second, 20 * time.Second, brake},
		{"memory", 10 * time.Second, 30 * time.Second, memory},
		{"filling", 30 * time.Second, time.Minute, filling},
		{"disk", 0, 30 * time.Second, disks},
		{"inodes", 0, 30 * time.Second, inodes},
		{"stale", 0, 0, stale},
		{"leftover", 2 * time.Minute, 10 * time.Second, leftovers},
		{"starved", time.Minute, 2 * time.Minute, starved},
		{"steal", time.Minute, 2 * time.Minute, steal},
		{"neighbour", 2 * time.Minute, 2 * time.Minute, neighbour},
		{"shallow", 2 * time.Minute, 2 * time.Minute, shallow},
		{"link", 10 * time.Second, 30 * time.Second, links},
	}
}
