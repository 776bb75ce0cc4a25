package record

// Of a view what came later: receipts of jobs, guards, balances, what saves artifacts.

import (
	"math"
	"time"

	"rentop/remote"
	"rentop/session"
	"rentop/session/usage"
)

// receipt is what a job has used. Nil is not known.
type receipt struct {
	From     time.Time  `json:"from,omitzero"`
	To       time.Time  `json:"to,omitzero"`
	Watched  float64    `json:"watched"`
	Partial  bool       `json:"partial,omitempty"`
	GPUs     int        `json:"gpus,omitempty"`
	GPUHours *float64   `json:"gpu_hours,omitempty"`
	Busy     *float64   `json:"busy_gpu_hours,omitempty"`
	Mean     *float64   `json:"mean,omitempty"`
	Peak     *float64   `json:"peak,omitempty"`
	Mem      []*float64 `json:"mem,omitempty"`
	MemTotal []float64  `json:"mem_total,omitempty"`
	Energy   *float64   `json:"joules,omitempty"`
	Idle     *float64   `json:"idle_seconds,omitempty"`
	Cost     *amount    `json:"cost,omitempty"`
	AtLeast  *amount    `json:"at_least,omitempty"`
	Running  bool       `json:"running,omitempty"`
}

// known leaves out what JSON cannot hold and no job can use.
func known(v *float64) *float64 {
	if v == nil || finite(*v) != *v {
		return nil
	}
	return v
}

// finite is a figure that is none below 0, and not endless.
func finite(v float64) float64 {
	if !(v >= 0) || v > math.MaxFloat64/2 {
		return 0
	}
	return v
}

func receiptOf(r session.Receipt) receipt {
	out := receipt{From: r.From, To: r.To, Watched: finite(r.Watched), Partial: r.Partial, GPUs: r.GPUs, GPUHours: known(r.GPUHours), Busy: known(r.Busy),
		Mean: known(r.Mean), Peak: known(r.Peak), Energy: known(r.Energy), Idle: known(r.Idle), Cost: money(r.Cost), AtLeast: money(r.AtLeast), Running: r.Running}
	for _, m := range r.Mem {
		out.Mem = append(out.Mem, known(m))
	}
	for _, m := range r.MemTotal {
		out.MemTotal = append(out.MemTotal, finite(m))
	}
	return out
}

func (r receipt) receipt() session.Receipt {
	out := session.Receipt{Cost: r.Cost.amount(), AtLeast: r.AtLeast.amount(), Running: r.Running,
		Receipt: usage.Receipt{From: r.From, To: r.To, Watched: min(finite(r.Watched), 1), Partial: r.Partial, GPUs: count(r.GPUs), GPUHours: known(r.GPUHours), Busy: known(r.Busy),
			Mean: known(r.Mean), Peak: known(r.Peak), Energy: known(r.Energy), Idle: known(r.Idle)}}
	if out.Mean == nil || out.Peak == nil { // they are told together
		out.Mean, out.Peak = nil, nil
	}
	for _, m := range r.Mem[:min(len(r.Mem), maxCards)] {
		out.Mem = append(out.Mem, known(m))
	}
	for _, m := range r.MemTotal[:min(len(r.MemTotal), maxCards)] {
		out.MemTotal = append(out.MemTotal, finite(m))
	}
	return out
}

// guardWire is a guard, without the journal that it keeps there.
type guardWire struct {
	ID      string      `json:"id,omitempty"`
	Phase   string      `json:"phase,omitempty"`
	Armed   bool        `json:"armed,omitempty"`
	Rules   []guardRule `json:"rules,omitempty"`
	Then    string      `json:"then,omitempty"`
	Save    string      `json:"save,omitempty"`
	ArmedAt time.Time   `json:"armed_at,omitzero"`
	SeenAt  time.Time   `json:"seen_at,omitzero"`
	Source  string      `json:"source,omitempty"`
	Text    said        `json:"text,omitempty"`
	Problem said        `json:"problem,omitempty"`
}

type guardRule struct {
	Kind  string         `json:"kind"`
	Text  said           `json:"text,omitempty"`
	Due   time.Time      `json:"due,omitzero"`
	Left  *time.Duration `json:"left,omitempty"`
	Why   said           `json:"why,omitempty"`
	Doubt said           `json:"doubt,omitempty"`
	Met   bool           `json:"met,omitempty"`
}

func (e encoder) guard(g *session.Guard) *guardWire {
	out := &guardWire{ID: e.of("guard", g.ID), Phase: e.guardWord(g.Phase), Armed: g.Armed, Then: g.Then, Save: e.command(g.Save), ArmedAt: g.ArmedAt, SeenAt: g.SeenAt, Source: e.source(g.Source),
		Text: e.say(g.Text), Problem: e.say(g.Problem)}
	if g.Then != session.ThenStop && g.Then != session.ThenNothing {
		out.Then = e.command(g.Then)
	}
	for _, r := range g.Rules {
		out.Rules = append(out.Rules, guardRule{e.guardWord(r.Kind), e.say(r.Text), r.Due, r.Left, e.say(r.Why), e.say(r.Doubt), r.Met})
	}
	return out
}

func (w guardWire) guard() *session.Guard {
	out := &session.Guard{ID: text(w.ID), Phase: text(w.Phase), Armed: w.Armed, Then: text(w.Then), Save: text(w.Save), ArmedAt: w.ArmedAt, SeenAt: w.SeenAt,
		Source: text(w.Source), Text: w.Text.text(), Problem: w.Problem.text()}
	for _, r := range w.Rules {
		out.Rules = append(out.Rules, session.GuardRule{Kind: text(r.Kind), Text: r.Text.text(), Due: r.Due, Left: r.Left, Why: r.Why.text(), Doubt: r.Doubt.text(), Met: r.Met})
	}
	return out
}

type balance struct {
	Provider string        `json:"provider"`
	Left     amount        `json:"left"`
	At       time.Time     `json:"at"`
	Lasts    time.Duration `json:"lasts,omitempty"`
	AtMost   bool          `json:"at_most,omitempty"`
}

func balancesOf(list []session.Balance) (out []balance) {
	for i := range list {
		if left := money(&list[i].Left); left != nil {
			out = append(out, balance{list[i].Provider, *left, list[i].At, list[i].Lasts, list[i].AtMost})
		}
	}
	return out
}

func (b balance) balance() (session.Balance, bool) {
	left := b.Left.amount()
	if left == nil {
		return session.Balance{}, false
	}
	return session.Balance{Provider: remote.Short(b.Provider, 40), Left: *left, At: b.At, Lasts: max(b.Lasts, 0), AtMost: b.AtMost}, true
}

// savingWire is what saves artifacts as they are finished.
type savingWire struct {
	Since  time.Time `json:"since,omitzero"`
	Files  int       `json:"files,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"`
	Failed int       `json:"failed,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Last   string    `json:"last,omitempty"`
	Err    string    `json:"error,omitempty"`
	Ended  bool      `json:"ended,omitempty"`
}

func (e encoder) saving(v *session.SavingView) *savingWire {
	if v == nil {
		return nil
	}
	return &savingWire{v.Since, v.Files, v.Bytes, v.Failed, v.At, e.path(v.Last), e.text(v.Err), v.Ended}
}

func (w *savingWire) view() *session.SavingView {
	if w == nil {
		return nil
	}
	return &session.SavingView{Since: w.Since, Files: count(w.Files), Bytes: count(w.Bytes), Failed: count(w.Failed), At: w.At, Last: text(w.Last), Err: text(w.Err), Ended: w.Ended}
}
