package codec

import (
	"fmt"
	"testing"
	"time"
)

// machine plays a sender with workers that pack in turn, a queue in order and a link.
type machine struct {
	workers int
	rate    float64       // of the link, bytes/s
	knows   bool          // the governor hears the rate
	grades  [levels]grade // what levels do here
	window  int           // bytes that may wait
}

// play sends total raw bytes and returns how long it takes and how many bytes left.
// level gives the next block; nil governor means a fixed one.
func (m machine) play(total int, g *Governor, fixed Level) (time.Duration, int, map[Level]int) {
	clock := time.Unix(0, 0)
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * 1e9)) }
	if g != nil {
		g.now = func() time.Time { return clock }
	}
	free := make([]float64, m.workers) // when each worker is free
	type block struct{ ready, leaves, size float64 }
	var sent []block
	linkFree, out := 0.0, 0
	used := map[Level]int{}
	for total > 0 {
		w := 0
		for i := range free {
			if free[i] < free[w] {
				w = i
			}
		}
		now := free[w]
		// What waits at this moment; a full window blocks the worker.
		waits := func() (b float64) {
			for _, s := range sent {
				if s.ready < now && s.leaves > now { // the block just packed is not there yet
					b += min(s.size, (s.leaves-now)*m.rate)
				}
			}
			return b
		}
		for waits() > float64(m.window) {
			now += 0.001 + 1e5/m.rate
		}
		level, size := fixed, fixed.BlockSize()
		if g != nil {
			clock = at(now)
			if m.knows {
				g.Link(m.rate)
			}
			g.Queue(int(waits()), 4<<20)
			level, size = g.Next()
		}
		size = min(size, total)
		k := m.grades[level]
		took := float64(size) / k.speed
		packed := float64(size) * k.ratio
		if g != nil {
			g.Encoded(level, Zstd, size, int(packed), time.Duration(took*1e9))
		}
		used[level] += size
		free[w] = now + took
		linkFree = max(linkFree, free[w]) + packed/m.rate
		sent = append(sent, block{free[w], linkFree, packed})
		if len(sent) > 64 {
			sent = sent[1:]
		}
		out += int(packed)
		total -= size
	}
	return time.Duration(linkFree * 1e9), out, used
}

// The governor must come close to the best level that never changes, without
// knowing which one it is.
func TestGovernorFollowsTheLink(t *testing.T) {
	slow := prior // a machine half as fast, with content that packs worse
	for l := range slow {
		slow[l].speed /= 2
		slow[l].ratio = min(1, slow[l].ratio*1.6)
	}
	for _, grades := range [][levels]grade{prior, slow} {
		for _, rate := range []float64{1e6, 3e6, 12.5e6, 40e6, 125e6, 400e6, 2e9} {
			for _, knows := range []bool{true, false} {
				m := machine{workers: 2, rate: rate, knows: knows, grades: grades, window: 32 << 20}
				total := int(rate * 60)
				best, level := time.Duration(1<<62), LevelNone
				for l := range levels {
					if d, _, _ := m.play(total, nil, l); d < best {
						best, level = d, l
					}
				}
				got, out, used := m.play(total, NewGovernor(2), 0)
				line := fmt.Sprintf("%4.0f MB/s, known %v: %.1f s (%.2f of raw), best %.1f s with %s; %v",
					rate/1e6, knows, got.Seconds(), float64(out)/float64(total), best.Seconds(), level, used)
				t.Log(line)
				allowed := 1.15
				if !knows {
					allowed = 1.7 // it has to try, and does not try the strongest
				}
				if float64(got) > allowed*float64(best) {
					t.Error("too slow: " + line)
				}
			}
		}
	}
}
