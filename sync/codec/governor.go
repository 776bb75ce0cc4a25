package codec

import (
	"math"
	"sync"
	"time"
)

// Governor turns what the sender sees into the level for the next block, in the
// manner of zstd --adapt.
//
// Where the link's rate is known, there is a model: a raw byte takes the longer of the time
// that the cores need to pack it and the time that the link needs to carry it
// packed; the level that makes this shortest wins. Speeds and ratios start from a table and are corrected by
// every block. What waits for the link corrects the model: while it lasts longer than a
// block of the next level takes to pack, that level is free; when it has run dry
// although the cores are busy, the level was too high.
//
// Where the rate is not known, a full queue steps up and a dry one down, within the levels
// that do no harm on any link.
//
// It is safe for use by many goroutines at once.
type Governor struct {
	now func() time.Time

	mu      sync.Mutex // protects what follows
	workers float64
	rate    float64 // of the link in bytes/s, 0 where not known
	level   Level   // the last given
	known   [levels]grade
	waiting int // bytes, when last told
	full    int // looks in a row that found the queue full
	dry     int // twice the looks that found it dry
	blocks  int // packed so far
	limit   Level
	held    int // blocks until limit rises by one
	hold    int // held at the next time
	// Spent packing, by all workers, and the time that passed, both fading.
	busy, past time.Duration
	looked     time.Time
	// The rate some time ago, and whether it has not grown since.
	marked   float64
	markedAt time.Time
	settled  bool
	dryAt    time.Time // when the link was last seen with nothing to carry
}

// grade is what a level does on one core with the content at hand.
type grade struct {
	speed float64 // raw bytes/s
	ratio float64 // packed ÷ raw
	seen  bool
}

// prior was measured on JSON text, on one core of a 2.8 GHz Xeon.
var prior = [levels]grade{
	LevelNone:    {speed: 8e9, ratio: 1},
	LevelQuick:   {speed: 640e6, ratio: 0.48},
	LevelFastest: {speed: 270e6, ratio: 0.35},
	LevelDefault: {speed: 190e6, ratio: 0.33},
	LevelBetter:  {speed: 110e6, ratio: 0.30},
	LevelBest:    {speed: 23e6, ratio: 0.27},
	LevelMost:    {speed: 7e6, ratio: 0.21},
}

// NewGovernor makes one for that many goroutines that pack at once.
func NewGovernor(workers int) *Governor {
	return &Governor{now: time.Now, workers: float64(max(1, workers)), level: LevelFastest, known: prior, limit: levels - 1, hold: minHold}
}

// For how many blocks a level stays out that let the queue run dry.
const (
	minHold = 8
	maxHold = 128
)

// Next is the level for the next block and the raw length, in bytes, that the
// block should have.
func (g *Governor) Next() (Level, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held > 0 {
		if g.held--; g.held == 0 {
			if g.limit++; g.limit < levels-1 {
				g.held = g.hold
			}
		}
	}
	if g.rate > 0 && !g.settled {
		g.level = min(g.level, LevelDefault)
	} else if g.rate > 0 {
		g.level = min(g.model(), g.limit)
		if up := g.level + 1; up <= g.limit && g.level > LevelNone &&
			float64(g.waiting)/g.rate > 1.5*float64(up.BlockSize())/g.known[up].speed {
			g.level = up
		}
		if g.level > LevelFastest && g.blocks > 0 && g.runsDry(g.waiting, 0) {
			g.level = LevelFastest // the link waits: what feeds us is slower, and may want the cores
		}
	}
	return g.level, g.size(g.level)
}

// size is the raw length of a block: what can be packed while the link is still busy
// with what waits, so that it does not run dry meanwhile.
func (g *Governor) size(l Level) int {
	most := l.BlockSize()
	if g.rate <= 0 || l < LevelBetter {
		return most
	}
	n := 0.5 * g.known[l].speed * float64(g.waiting) / g.rate
	return min(max(int(n)>>20<<20, leastBlock), most)
}

// leastBlock is the shortest block, in raw bytes, that is worth a strong level.
const leastBlock = 1 << 20

// Ahead is how many packed bytes may wait for the link, beyond what it holds by itself,
// before it is better to wait than to pack the next block: a slow link has work for three seconds,
// and what is packed later is packed with more knowledge.
func (g *Governor) Ahead() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rate > 0 && !g.settled { // what is packed now is packed too weakly for a slow link
		return int(min(max(g.rate/2, minFirst), maxAhead))
	}
	return int(min(max(1.5*g.rate, min(3*g.rate, slowAhead), minAhead), maxAhead))
}

const (
	minFirst  = 256 << 10 // bytes
	minAhead  = 1 << 20
	slowAhead = 6 << 20
	maxAhead  = 64 << 20
)

// parallel is how many blocks of a level are packed at once.
func (g *Governor) parallel(l Level) float64 {
	if l == LevelMost {
		return min(g.workers, maxSorters)
	}
	return g.workers
}

// model is the level with the shortest time for a raw byte; of two that are as good
// within 2 % the stronger, since it leaves more of the link to others.
func (g *Governor) model() Level {
	best, cost := LevelNone, math.Inf(1)
	for l := range levels {
		k := g.known[l]
		if t := max(1/(k.speed*g.parallel(l)), k.ratio/g.rate); t < cost*1.02 {
			best, cost = l, min(t, cost)
		}
	}
	return best
}

// Encoded tells how long one block took to pack. Blocks that the probe sent another
// way, raw or as planes, say nothing about the level.
func (g *Governor) Encoded(l Level, m Method, raw, packed int, took time.Duration) {
	if l <= LevelNone || l >= levels || raw <= 0 || took <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy += took
	g.blocks++
	if m != Zstd && m != Sorted && m != S2 || raw < 64<<10 {
		return
	}
	k := &g.known[l]
	speed, ratio := float64(raw)/took.Seconds(), float64(packed)/float64(raw)
	if k.seen {
		const weight = 0.25
		k.speed += weight * (speed - k.speed)
		k.ratio += weight * (ratio - k.ratio)
		return
	}
	// The levels not tried yet are as much faster or slower than thought, and pack as
	// much better or worse, within bounds: a first block meets cold caches.
	faster, larger := min(max(speed/k.speed, 0.5), 2), ratio/k.ratio
	for i := range g.known {
		if o := &g.known[i]; Level(i) != LevelNone && !o.seen {
			o.speed *= faster
			o.ratio = min(1, o.ratio*larger)
		}
	}
	k.seen, k.speed, k.ratio = true, speed, ratio
}

// Queue tells how many packed bytes wait for the link, beyond what it holds by itself,
// when the next block is due, and how many may.
func (g *Governor) Queue(waiting, limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = waiting
	cores := g.cores()
	switch {
	// Blocks come in pairs where two workers began together: that the second finds the
	// first still there says little, so a dry queue counts double.
	case waiting*4 >= limit*3:
		g.full, g.dry = g.full+1, max(0, g.dry-1)
		// A link that stays full leaves time: what ran dry at the beginning, or while the cores
		// were busy elsewhere, is over. Blocks that take a second stay out for as long as they were put.
		if g.full%2 == 0 && g.rate > 0 && g.limit < LevelBetter {
			g.limit++
		}
	// The first blocks find a dry queue whatever their level.
	case g.runsDry(waiting, limit) && cores > 0.6 && float64(g.blocks) > 2*g.workers:
		g.full, g.dry = 0, g.dry+2
	default:
		g.full = 0
	}
	if g.dry >= 6 && g.level > LevelNone {
		g.dry = 0
		g.level--
		g.limit, g.held = g.level, g.hold
		g.hold = min(2*g.hold, maxHold) // what failed again is tried again later
	}
	if g.full >= 2 && !g.settled && g.level < min(g.limit, LevelDefault) {
		g.full = 0
		g.level++
	}
}

// runsDry says that the link is about to have nothing to carry.
func (g *Governor) runsDry(waiting, limit int) bool {
	if g.rate > 0 {
		return float64(waiting) < soonDry.Seconds()*g.rate
	}
	return waiting*8 < limit
}

// soonDry is how long what waits must last.
const soonDry = 30 * time.Millisecond

// cores is the share of the workers' time that packing took lately.
func (g *Governor) cores() float64 {
	now := g.now()
	if !g.looked.IsZero() {
		g.past += now.Sub(g.looked)
	}
	g.looked = now
	if g.past <= 0 {
		return 0
	}
	share := g.busy.Seconds() / (g.past.Seconds() * g.workers)
	g.busy -= g.busy / 8
	g.past -= g.past / 8
	return share
}

// Link tells the rate in bytes/s at which the other side received lately; 0 or less is
// unknown. It is what the link can carry only while enough waits for it, and where least is
// not set; otherwise it can carry at least as much.
func (g *Governor) Link(rate float64, least bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if rate <= 0 {
		return
	}
	now := g.now()
	if g.waiting < drained {
		g.dryAt = now
	}
	// A rate is one of a while, and the link's own only where it never waited for us.
	steady := now.Sub(g.dryAt) >= settling && !least
	switch {
	case float64(g.waiting) > enough.Seconds()*rate:
		if d := now.Sub(g.markedAt); d >= settling {
			g.settled = steady && rate < 1.25*g.marked
			g.marked, g.markedAt = rate, now
		}
		if steady || rate > g.rate {
			g.rate = rate
		}
	case g.rate > 0:
		g.rate = max(g.rate, rate)
	}
}

// drained is how few bytes that wait are none.
const drained = 16 << 10

// Settled says that the link's rate is known and no longer grows.
func (g *Governor) Settled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settled
}

// settling is for how long a rate must not have grown: a link that starts, or that was given
// more stripes, seems slow for a while, and a block packed hard for a slow link
// takes a second.
const settling = 250 * time.Millisecond

// enough is for how long the link must have work to say that it is what limits.
const enough = 50 * time.Millisecond
