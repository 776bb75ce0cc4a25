package codec

import (
	"math"
	"sync"
	"time"
)

// Governor turns what the sender sees into the level for the next block, in the
// manner of zstd --adapt. The model: a raw byte takes the longer of the time the
// cores need to pack it and the time the link needs to carry it packed; the level
// that makes this shortest wins. Speeds and ratios start from a table measured on
// one core and are corrected by every block. The queue to the link corrects the
// model, since other work shares the cores: an empty queue while the cores are
// busy steps down at once, a queue that stays full steps up.
//
// It is safe for use by many goroutines at once.
type Governor struct {
	mu      sync.Mutex
	workers float64
	rate    float64 // of the link in bytes/s, 0 where not known
	level   Level
	known   [levels]grade
	full    int // looks in a row that found the queue full
	empty   int
	cap     Level // no level above this for now: it let the queue run dry
	capFor  int   // blocks until cap is lifted by one
}

// grade is what a level does on one core with the content at hand.
type grade struct {
	speed float64 // raw bytes/s
	ratio float64 // packed ÷ raw
	seen  bool
}

// prior was measured on JSON text, one core of a 2.8 GHz Xeon.
var prior = [levels]grade{
	LevelNone:    {speed: 8e9, ratio: 1},
	LevelFastest: {speed: 270e6, ratio: 0.33},
	LevelDefault: {speed: 190e6, ratio: 0.29},
	LevelBetter:  {speed: 120e6, ratio: 0.27},
	LevelBest:    {speed: 23e6, ratio: 0.25},
	LevelMost:    {speed: 7e6, ratio: 0.19},
}

// NewGovernor makes one for that many goroutines that encode at once.
func NewGovernor(workers int) *Governor {
	return &Governor{workers: float64(max(1, workers)), level: LevelFastest, known: prior, cap: levels - 1}
}

// Next is the level for the next block and the raw length, in bytes, that the
// block should have.
func (g *Governor) Next() (Level, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.capFor > 0 {
		if g.capFor--; g.capFor == 0 && g.cap < levels-1 {
			g.cap++
			if g.cap < levels-1 {
				g.capFor = capBlocks
			}
		}
	}
	if g.rate > 0 {
		g.level = min(g.model(), g.cap)
	}
	return g.level, g.level.BlockSize()
}

// model is the level with the shortest time for a raw byte; of two that are as
// good within 2 % the stronger, since it leaves more of the link to others.
func (g *Governor) model() Level {
	best, cost := LevelNone, math.Inf(1)
	for l := range levels {
		k := g.known[l]
		if t := max(1/(k.speed*g.workers), k.ratio/g.rate); t < cost*1.02 {
			best, cost = l, min(t, cost)
		}
	}
	return best
}

// Encoded tells how long one block took on one core. Blocks that the probe sent
// raw say nothing about the level and are left out of its grade.
func (g *Governor) Encoded(l Level, m Method, raw, packed int, took time.Duration) {
	if l <= LevelNone || l >= levels || m != Zstd && m != Sorted || raw < 64<<10 || took <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k := &g.known[l]
	speed, ratio := float64(raw)/took.Seconds(), float64(packed)/float64(raw)
	const weight = 0.25
	if !k.seen {
		k.seen = true
		// The levels not yet tried are as much faster or slower, and pack as much better or worse.
		faster, larger := speed/k.speed, ratio/k.ratio
		for i := range g.known {
			if o := &g.known[i]; Level(i) != LevelNone && !o.seen {
				o.speed *= faster
				o.ratio = min(1, o.ratio*larger)
			}
		}
		k.speed, k.ratio = speed, ratio
		return
	}
	k.speed += weight * (speed - k.speed)
	k.ratio += weight * (ratio - k.ratio)
}

// capBlocks is for how many blocks a level stays forbidden that let the queue run dry.
const capBlocks = 32

// Queue tells how many packed bytes wait for the link, out of how many may, at
// the moment a block is put there.
func (g *Governor) Queue(waiting, limit int) {
	if limit <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case waiting*8 < limit:
		g.empty, g.full = g.empty+1, 0
	case waiting*4 > limit*3:
		g.full, g.empty = g.full+1, 0
	default:
		g.full, g.empty = 0, 0
	}
	switch {
	case g.empty >= 2:
		g.empty = 0
		if g.level > LevelNone {
			g.level--
			g.cap, g.capFor = g.level, capBlocks
		}
	case g.full >= 2:
		g.full = 0
		if g.rate == 0 && g.level < g.cap {
			g.level++
		}
	}
}

// Link tells the rate of the link in bytes/s as measured; 0 or less is unknown.
func (g *Governor) Link(rate float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate = max(0, rate)
}
