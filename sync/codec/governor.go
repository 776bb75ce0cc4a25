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
	dry     int // looks in a row that found it dry
	blocks  int // packed so far
	limit   Level
	held    int // blocks until limit rises by one
	// Spent packing, by all workers, and the time that passed, both fading.
	busy, past time.Duration
	packed     float64 // bytes, fading alike
	looked     time.Time
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
	LevelFastest: {speed: 270e6, ratio: 0.35},
	LevelDefault: {speed: 190e6, ratio: 0.33},
	LevelBetter:  {speed: 110e6, ratio: 0.30},
	LevelBest:    {speed: 23e6, ratio: 0.27},
	LevelMost:    {speed: 7e6, ratio: 0.21},
}

// NewGovernor makes one for that many goroutines that pack at once.
func NewGovernor(workers int) *Governor {
	return &Governor{now: time.Now, workers: float64(max(1, workers)), level: LevelFastest, known: prior, limit: levels - 1}
}

// heldBlocks is for how many blocks a level stays out that let the queue run dry.
const heldBlocks = 16

// Next is the level for the next block and the raw length, in bytes, that the
// block should have.
func (g *Governor) Next() (Level, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held > 0 {
		if g.held--; g.held == 0 {
			if g.limit++; g.limit < levels-1 {
				g.held = heldBlocks
			}
		}
	}
	if g.rate > 0 {
		g.level = min(g.model(), g.limit)
		if up := g.level + 1; up <= g.limit && g.level > LevelNone &&
			float64(g.waiting)/g.rate > 1.5*float64(up.BlockSize())/g.known[up].speed {
			g.level = up
		}
	}
	return g.level, g.level.BlockSize()
}

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
	g.packed += float64(packed)
	g.blocks++
	if m != Zstd && m != Sorted || raw < 64<<10 {
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
	// much better or worse.
	faster, larger := speed/k.speed, ratio/k.ratio
	for i := range g.known {
		if o := &g.known[i]; Level(i) != LevelNone && !o.seen {
			o.speed *= faster
			o.ratio = min(1, o.ratio*larger)
		}
	}
	k.seen, k.speed, k.ratio = true, speed, ratio
}

// Queue tells how many packed bytes wait for the link, beyond what it holds by itself,
// when the next block is due. At limit the queue counts as full.
func (g *Governor) Queue(waiting, limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = waiting
	cores, carried := g.lately()
	switch {
	case waiting >= limit:
		g.full, g.dry = g.full+1, 0
	// The first blocks find a dry queue whatever their level. Later ones may come in
	// pairs: that the second finds the first there is no good sign.
	case waiting*8 < limit && cores > 0.6 && carried < 0.9 && float64(g.blocks) > 2*g.workers:
		g.dry, g.full = g.dry+1, 0
	default:
		g.full = 0
	}
	if g.dry >= 3 && g.level > LevelNone {
		g.dry = 0
		g.level--
		g.limit, g.held = g.level, heldBlocks
	}
	if g.full >= 2 && g.rate == 0 && g.level < min(g.limit, LevelBetter) {
		g.full = 0
		g.level++
	}
}

// lately is the share of the workers' time that packing took, and the share of what the link
// could carry that was packed: 0 where the rate is not known.
func (g *Governor) lately() (cores, carried float64) {
	now := g.now()
	if !g.looked.IsZero() {
		g.past += now.Sub(g.looked)
	}
	g.looked = now
	if g.past <= 0 {
		return 0, 0
	}
	cores = g.busy.Seconds() / (g.past.Seconds() * g.workers)
	if g.rate > 0 {
		carried = g.packed / (g.past.Seconds() * g.rate)
	}
	g.busy -= g.busy / 8
	g.past -= g.past / 8
	g.packed -= g.packed / 8
	return cores, carried
}

// Link tells the rate of the link in bytes/s as measured; 0 or less is unknown.
func (g *Governor) Link(rate float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate = max(0, rate)
}
