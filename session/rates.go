package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"rentop/session/billing"
	"rentop/sync"
)

// This file remembers how fast an instance was, and says from it how long a
// transfer takes, and from the prices what it costs.

// Estimate is what a transfer may take. It is an upper bound: what the other side
// has already, and what compresses, is found only while moving.
type Estimate struct {
	Rate    float64         // bytes a second, as last measured or limited; 0: not known
	Limited bool            // Rate is the limit
	At      time.Time       // of the measurement
	Took    *time.Duration  // nil: not known
	Traffic *billing.Amount // nil: not known
}

// measured is one way of an instance.
type measured struct {
	Rate float64   `json:"bytes_per_second"`
	At   time.Time `json:"at"`
}

func (s *Session) ratesFile() string {
	return filepath.Join(s.f.opt.Dirs.State, "rates", s.uid+".json")
}

// rates are those last measured, by direction. What cannot be read is not known.
func (s *Session) rates() map[sync.Direction]measured {
	out := map[sync.Direction]measured{}
	text, err := os.ReadFile(s.ratesFile())
	if err == nil && json.Unmarshal(text, &out) != nil {
		return map[sync.Direction]measured{}
	}
	return out
}

// Estimate says what moving so many bytes takes.
func (s *Session) Estimate(d sync.Direction, bytes int64) Estimate {
	var e Estimate
	if m := s.rates()[d]; m.Rate > 0 {
		e.Rate, e.At = m.Rate, m.At
	}
	if l := float64(s.limit.Rate()); l > 0 && e.Rate > l {
		e.Rate, e.Limited = l, true
	}
	if e.Rate > 0 {
		took := time.Duration(float64(bytes) / e.Rate * float64(time.Second))
		e.Took = &took
	}
	e.Traffic = s.traffic(d, bytes)
	return e
}

// traffic is what so many bytes cost by the config's prices; nil: not known.
func (s *Session) traffic(d sync.Direction, bytes int64) *billing.Amount {
	in, out, err := s.cfg().Traffic.Prices()
	price := in
	if d == sync.Pull {
		price = out
	}
	if err != nil || price == nil {
		return nil
	}
	return &billing.Amount{Value: new(big.Rat).Mul(price, big.NewRat(bytes, 1_000_000_000)), Currency: s.plan().Currency}
}

// gauge measures a transfer by its reports.
type gauge struct {
	now         func() time.Time
	limited     bool
	began, last time.Time
	from, to    int64
}

// What a measurement must have seen to be believed.
const (
	gaugeTime  = time.Second
	gaugeBytes = 1 << 20
)

func (g *gauge) see(p sync.Progress) {
	if p.Stage != "send" {
		return
	}
	now := g.now()
	if g.began.IsZero() || p.Wire < g.to { // begun anew after a cut
		g.began, g.from = now, p.Wire
	}
	g.last, g.to = now, p.Wire
}

// rate is in bytes a second on the wire, 0 where too little was seen.
func (g *gauge) rate() float64 {
	took, bytes := g.last.Sub(g.began), g.to-g.from
	if g.limited || took < gaugeTime || bytes < gaugeBytes {
		return 0
	}
	return float64(bytes) / took.Seconds()
}

// keepRate writes a measurement down. It is a convenience: a fault is no reason to
// call a transfer failed.
func (s *Session) keepRate(d sync.Direction, g *gauge) {
	r := g.rate()
	if r <= 0 {
		return
	}
	all := s.rates()
	all[d] = measured{Rate: r, At: g.last.UTC()}
	text, err := json.Marshal(all)
	if err != nil {
		return
	}
	_ = replaceFile(s.ratesFile(), text)
}

// replaceFile writes a small file of the state folder in one step.
func replaceFile(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Outline is a plan in numbers.
type Outline struct {
	New, Changed, Attrs, Deleted, Skipped int
	Bytes, Unchanged                      int64
	Estimate                              Estimate
}

// Outline counts a plan for a direction, and says what it takes.
func (s *Session) Outline(d sync.Direction, p *sync.Plan) Outline {
	o := Outline{Bytes: p.Bytes, Unchanged: p.Unchanged, Deleted: len(p.Removes()), Estimate: s.Estimate(d, p.Bytes)}
	for _, a := range p.Actions {
		switch {
		case a.Op == sync.Skip:
			o.Skipped++
		case a.Op == sync.Attr:
			o.Attrs++
		case a.Op == sync.Delete || a.Op == sync.Mkdir:
		case a.Why == "new":
			o.New++
		default:
			o.Changed++
		}
	}
	return o
}
