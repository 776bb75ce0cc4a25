package record

import (
	"context"
	"sync"
	"time"

	"rentop/session"
)

// Player plays a recording by its own clock. Run does the work; the other methods
// never block and may be called by anybody.
type Player struct {
	rec     *Recording
	wake    chan struct{}
	changed chan struct{}

	mu     sync.Mutex // protects what follows; never held over I/O
	view   *session.FleetView
	at     time.Time // the recorded clock
	speed  int       // index into speeds
	paused bool
	err    string // why the newest view is not shown
}

// speeds are how many recorded seconds pass in one.
var speeds = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}

// Playing is how a player stands.
type Playing struct {
	At     time.Time
	Begin  time.Time
	End    time.Time
	Speed  int
	Paused bool
	Err    string // what of the file cannot be shown, "" where all can
}

// NewPlayer stands at a recording's first view, and plays.
func NewPlayer(r *Recording) (*Player, error) {
	v, err := r.At(0)
	if err != nil {
		return nil, err
	}
	return &Player{rec: r, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), view: v, at: r.Time(0)}, nil
}

// bounds are the begin and the end of the recording.
func (p *Player) bounds() (begin, end time.Time) { return p.rec.Time(0), p.rec.Time(p.rec.Len() - 1) }

// lookEvery is how often the recorded clock is looked at while it runs.
const lookEvery = 100 * time.Millisecond

// Run plays until ctx ends.
func (p *Player) Run(ctx context.Context) {
	last := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.wake:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		p.advance(now.Sub(last))
		last = now
	}
}

// advance moves the recorded clock on by a time of ours, and shows what was then.
func (p *Player) advance(d time.Duration) {
	begin, end := p.bounds()
	p.mu.Lock()
	if !p.paused {
		p.at = p.at.Add(d * time.Duration(speeds[p.speed]))
	}
	if p.at.Before(begin) {
		p.at = begin
	}
	if !p.at.Before(end) { // it stands at its end
		p.at, p.paused = end, true
	}
	at, shown := p.at, p.view
	p.mu.Unlock()

	v, err := p.rec.At(p.rec.Find(at))
	if v == shown && err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.err == err.Error() {
			return
		}
		p.err = err.Error()
	} else {
		p.view, p.err = v, ""
	}
	p.tell()
}

// tell wakes who waits for Changed.
func (p *Player) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// do changes how it plays, and has it seen at once.
func (p *Player) do(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	p.tell()
}

// Toggle pauses, or goes on; at the end it begins anew.
func (p *Player) Toggle() {
	begin, end := p.bounds()
	p.do(func() {
		if p.paused = !p.paused; !p.paused && !p.at.Before(end) {
			p.at = begin
		}
	})
}

// Faster doubles the speed, up to 256 times.
func (p *Player) Faster() { p.do(func() { p.speed = min(p.speed+1, len(speeds)-1) }) }

// Slower halves it, down to what it was.
func (p *Player) Slower() { p.do(func() { p.speed = max(p.speed-1, 0) }) }

// Seek moves by a recorded time, which may be negative.
func (p *Player) Seek(d time.Duration) { p.do(func() { p.at = p.at.Add(d) }) }

// Playing is how it stands now.
func (p *Player) Playing() Playing {
	begin, end := p.bounds()
	p.mu.Lock()
	defer p.mu.Unlock()
	return Playing{At: p.at, Begin: begin, End: end, Speed: speeds[p.speed], Paused: p.paused, Err: p.err}
}

// Now is the recorded clock.
func (p *Player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// View is what was shown then.
func (p *Player) View() *session.FleetView {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

// Changed receives after View or Playing changed; it has one reader.
func (p *Player) Changed() <-chan struct{} { return p.changed }
