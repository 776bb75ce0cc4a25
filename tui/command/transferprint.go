package command

// What push, pull and copy say: a line or a JSON document at the end, and with
// --events a JSON line for everything on the way. All of it is made from the same
// values.

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	stdsync "sync"
	"time"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

// transferred is a transfer in JSON. Names are added, never changed.
type transferred struct {
	Event     string         `json:"event,omitempty"` // "result", with --events
	Direction sync.Direction `json:"direction"`
	Files     int64          `json:"files"`
	Bytes     int64          `json:"bytes"`
	Kept      int64          `json:"kept_bytes"` // of unfinished files: the next run goes on there
	WireBytes int64          `json:"wire_bytes"`
	Reused    int64          `json:"reused_bytes"` // the destination had them: a delta, or the part of an earlier run
	Unchanged int64          `json:"unchanged"`
	Deleted   []string       `json:"deleted"`
	Failed    []failure      `json:"failed"`
	Verified  bool           `json:"verified"`
	Compared  bool           `json:"compared"` // SHA-256 of all that moved was equal on both sides
	Seconds   float64        `json:"seconds"`
	Transport string         `json:"transport"`
}

type failure struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// outline is what a plan comes to, in JSON; null is not known.
type outline struct {
	New       int          `json:"new"`
	Changed   int          `json:"changed"`
	Deletes   int          `json:"deletes"`
	Skipped   int          `json:"skipped"`
	Bytes     int64        `json:"bytes"`
	Unchanged int64        `json:"unchanged"`
	Rate      *float64     `json:"rate"`    // bytes a second, as last measured or limited
	Seconds   *float64     `json:"seconds"` // at most, at that rate
	Traffic   *json.Number `json:"traffic"` // at most, by the config's price for a GB
	Currency  *string      `json:"currency"`
}

func outlined(o session.Outline) outline {
	out := outline{New: o.New, Changed: o.Changed, Deletes: o.Deleted, Skipped: o.Skipped, Bytes: o.Bytes, Unchanged: o.Unchanged}
	if o.Estimate.Rate > 0 {
		out.Rate = &o.Estimate.Rate
	}
	if o.Estimate.Took != nil {
		seconds := o.Estimate.Took.Round(time.Millisecond).Seconds()
		out.Seconds = &seconds
	}
	if t := o.Estimate.Traffic; t != nil {
		out.Traffic, out.Currency = rate(t), &t.Currency
	}
	return out
}

// planned is a dry run in JSON.
type planned struct {
	outline
	Direction sync.Direction `json:"direction"`
	Local     string         `json:"local"`
	Remote    string         `json:"remote"`
	Actions   []sync.Row     `json:"actions"`
	Ignored   int64          `json:"ignored"`
}

// outlineLine says what a plan comes to on one line.
func outlineLine(o session.Outline) string {
	took, traffic := "time ? (not measured yet)", orUnknown(o.Estimate.Traffic)
	if e := o.Estimate; e.Took != nil {
		by := "last measured"
		if e.Limited {
			by = "that it is limited to"
		}
		took = fmt.Sprintf("at most %s at the %s/s %s", span(*e.Took), sync.Size(int64(e.Rate)), by)
	}
	if o.Estimate.Traffic != nil {
		traffic = "at most " + traffic
	}
	return fmt.Sprintf("%s new, %s changed, %s to delete; %s; traffic %s", commas(o.New), commas(o.Changed), commas(o.Deleted), took, traffic)
}

// teller tells how one transfer goes.
type teller struct {
	a         *app
	direction sync.Direction
	json      bool
	events    bool
	line      *progress
	mu        stdsync.Mutex // protects last and the order of lines: reports come from the engine
	last      time.Time
}

func (a *app) teller(d sync.Direction, asJSON, events bool) *teller {
	return &teller{a: a, direction: d, json: asJSON, events: events, line: newProgress(a.Err, a.Now)}
}

// event writes one JSON line.
func (t *teller) event(v any) error { return printLine(t.a.Out, v) }

func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (t *teller) plan(o session.Outline) {
	if t.events {
		_ = t.event(struct { // a reader that is gone is told of at the end
			Event string `json:"event"`
			outline
		}{"plan", outlined(o)})
	}
}

// eventsEvery is how often progress is an event.
const eventsEvery = 500 * time.Millisecond

func (t *teller) progress(p sync.Progress) {
	if !t.events {
		t.line.show(p)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.a.Now()
	if now.Sub(t.last).Abs() < eventsEvery {
		return
	}
	t.last = now
	var left *float64
	if p.Left >= 0 {
		seconds := p.Left.Seconds()
		left = &seconds
	}
	_ = t.event(struct {
		Event     string   `json:"event"`
		Stage     string   `json:"stage"`
		Files     int64    `json:"files"`
		FilesAll  int64    `json:"files_all"`
		Bytes     int64    `json:"bytes"`
		BytesAll  int64    `json:"bytes_all"`
		Growing   bool     `json:"growing"` // files_all and bytes_all are what was found so far
		Wire      int64    `json:"wire_bytes"`
		Reused    int64    `json:"reused_bytes"`
		Rate      float64  `json:"rate"`
		Left      *float64 `json:"left_seconds"`
		Current   string   `json:"current"`
		Transport string   `json:"transport"`
		WhySlower string   `json:"why_slower"`
		Failed    int      `json:"failed"`
	}{"progress", p.Stage, p.Files, p.FilesAll, p.Bytes, p.BytesAll, p.Growing, p.Wire, p.Reused, p.Rate, left, p.Current, p.Transport, p.WhySlower, p.FailedSoon})
}

func (t *teller) clear() { t.line.clear() }

// compared says whether the SHA-256 of what moved was compared between the two
// sides: a pull by SFTP alone has nobody there to compute one.
func compared(d sync.Direction, r *sync.Result) bool {
	return r.Files > 0 && (d != sync.Pull || r.Transport != "sftp")
}

func summary(d sync.Direction, r *sync.Result) transferred {
	out := transferred{
		Direction: d, Files: r.Files, Bytes: r.Bytes, Kept: r.Kept, WireBytes: r.Wire, Reused: r.Reused, Unchanged: r.Unchanged,
		Deleted: append([]string{}, r.Deleted...), Failed: []failure{}, Verified: r.Verified, Compared: compared(d, r),
		Seconds: r.Took.Round(time.Millisecond).Seconds(), Transport: r.Transport,
	}
	for _, f := range r.Failed {
		out.Failed = append(out.Failed, failure{remote.Clean(f.Path), remote.Clean(f.Err.Error())})
	}
	return out
}

// result tells the end: the failures by name, then what was done.
func (t *teller) result(r *sync.Result) error {
	out := summary(t.direction, r)
	if t.events {
		for _, f := range out.Failed {
			if err := t.event(struct {
				Event string `json:"event"`
				failure
			}{"failed", f}); err != nil {
				return err
			}
		}
		out.Event = "result"
		return t.event(out)
	}
	if t.json {
		return printJSON(t.a.Out, out)
	}
	for _, f := range out.Failed {
		t.a.note("failed: %s: %s", f.Path, f.Error)
	}
	_, err := fmt.Fprintln(t.a.Out, lastLine(t.direction, r))
	return err
}

// verbs say what was done with files.
var verbs = map[sync.Direction]string{sync.Push: "pushed", sync.Pull: "pulled", sync.Between: "copied"}

// lastLine says what was sent, what was saved, and how far it is proven.
func lastLine(d sync.Direction, r *sync.Result) string {
	verb := verbs[d]
	parts := []string{fmt.Sprintf("%s %s files, %s in %s", verb, commas(int(r.Files)), sync.Size(r.Bytes), took(r.Took))}
	if s := r.Took.Seconds(); s > 0 && r.Bytes > 0 {
		parts[0] += fmt.Sprintf(" (%s/s)", sync.Size(int64(float64(r.Bytes)/s)))
	}
	parts[0] += fmt.Sprintf(", %s unchanged", commas(int(r.Unchanged)))
	if r.Files > 0 {
		wire := sync.Size(r.Wire) + " crossed the wire"
		var saved []string
		if r.Reused > 0 {
			saved = append(saved, sync.Size(r.Reused)+" were there already")
		}
		if packed := r.Bytes - r.Reused - r.Wire; packed > 0 {
			saved = append(saved, "compression saved "+sync.Size(packed))
		}
		if len(saved) > 0 {
			wire += " (" + strings.Join(saved, ", ") + ")"
		}
		parts = append(parts, wire)
		if compared(d, r) {
			parts = append(parts, "SHA-256 equal on both sides")
		} else {
			parts = append(parts, "size and time equal on both sides (no SHA-256 by SFTP alone: --verify reads it again)")
		}
	}
	line := strings.Join(parts, "; ")
	if n := len(r.Deleted); n > 0 {
		line += fmt.Sprintf(", %s deleted", commas(n))
	}
	if n := int(r.FailedAll); n > 0 {
		line += fmt.Sprintf(", %s failed", commas(n))
	}
	if r.Verified {
		line += ", all read again and verified"
	}
	return line
}

// took is a time with a tenth where that says something.
func took(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}

// commas writes a count in groups of three.
func commas(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
