package codec

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// machine plays a sender with workers that pack in turn, a queue in order and a link.
type machine struct {
	workers int
	rate    float64       // of the link, bytes/s
	starts  bool          // the link starts slowly, as TCP does over a long way
	knows   bool          // the governor hears what arrives
	grades  [levels]grade // what levels do here
}

// block is one on its way, in seconds and bytes.
type block struct{ ready, start, leaves, size float64 }

// left is how much of the block the link has not carried at a moment.
func (b block) left(at float64) float64 {
	return b.size * min(1, max(0, (b.leaves-at)/(b.leaves-b.start)))
}

// carry is when the link has carried size bytes that it begins with at a moment.
func (m machine) carry(at, size float64) float64 {
	for m.starts && at < 2 {
		rate := min(m.rate, 1e5*math.Exp2(at/0.1))
		if size < rate*0.01 {
			break
		}
		size -= rate * 0.01
		at += 0.01
	}
	return at + size/m.rate
}

// play sends total raw bytes and returns how long it takes, how many bytes left
// and what was packed how. Without a governor the level is fixed.
func (m machine) play(total int, g *Governor, fixed Level) (time.Duration, int, map[Level]int) {
	clock := time.Unix(0, 0)
	if g != nil {
		g.now = func() time.Time { return clock }
	}
	free := make([]float64, m.workers) // when each worker is
	var sent []block
	end, gone, out := 0.0, 0.0, 0
	used := map[Level]int{}
	for total > 0 {
		w := 0
		for i := range free {
			if free[i] < free[w] {
				w = i
			}
		}
		now := free[w]
		waiting := func() (n float64) {
			for _, b := range sent {
				if b.ready < now { // the one just packed is not there yet
					n += b.left(now)
				}
			}
			return n
		}
		arrived := func(at float64) float64 {
			n := gone
			for _, b := range sent {
				n += b.size - b.left(at)
			}
			return n
		}
		level, size := fixed, fixed.BlockSize()
		if g != nil {
			for ; ; now += min(max(1e5/m.rate, 1e-4), 0.02) {
				clock = time.Unix(0, 0).Add(time.Duration(now * 1e9))
				if m.knows && now > 0.3 {
					g.Link((arrived(now)-arrived(now-0.2))/0.2, false)
				}
				if waiting() <= float64(g.Ahead()) {
					break
				}
			}
			g.Queue(int(waiting()), g.Ahead())
			level, size = g.Next()
		}
		size = min(size, total)
		took, packed := float64(size)/m.grades[level].speed, float64(size)*m.grades[level].ratio
		if g != nil {
			g.Encoded(level, Zstd, size, int(packed), time.Duration(took*1e9))
		}
		free[w] = now + took
		start := max(end, free[w])
		end = m.carry(start, packed)
		sent = append(sent, block{free[w], start, end, packed})
		for len(sent) > 0 && sent[0].leaves < now-0.4 {
			gone += sent[0].size
			sent = sent[1:]
		}
		used[level] += size
		out += int(packed)
		total -= size
	}
	return time.Duration(end * 1e9), out, used
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
		for _, rate := range []float64{1e6, 3e6, 12.5e6, 125e6, 2e9} {
			for i := range 4 {
				knows, starts := i&1 == 0, i&2 == 0
				m := machine{workers: 2, rate: rate, knows: knows, starts: starts, grades: grades}
				total := int(min(rate*30, 1.5e9))
				best, level := time.Duration(1<<62), LevelNone
				for l := range levels {
					if d, _, _ := m.play(total, nil, l); d < best {
						best, level = d, l
					}
				}
				got, out, used := m.play(total, NewGovernor(2), 0)
				line := fmt.Sprintf("%4.0f MB/s, known %v, slow start %v: %.1f s (%.2f of raw), best %.1f s with %s; %v",
					rate/1e6, knows, starts, got.Seconds(), float64(out)/float64(total), best.Seconds(), level, used)
				t.Log(line)
				allowed := 1.15
				switch {
				case !knows:
					allowed = 1.7 // it has to try, and does not try the strongest
				case rate > 300e6:
					allowed = 1.4 // none or fastest, either is fine
				}
				if float64(got) > allowed*float64(best) {
					t.Error("too slow: " + line)
				}
			}
		}
	}
}

// Blocks that take seconds must not make a rate look new.
func TestGovernorSettles(t *testing.T) {
	clock := time.Unix(0, 0)
	g := NewGovernor(2)
	g.now = func() time.Time { return clock }
	hear := func(rate float64, after time.Duration) Level {
		clock = clock.Add(after)
		g.Queue(g.Ahead(), g.Ahead())
		g.Link(rate, false)
		l, _ := g.Next()
		return l
	}
	for i, rate := range []float64{1e5, 4e5, 9e5} {
		if l := hear(rate, 300*time.Millisecond); l > LevelDefault {
			t.Errorf("a rate that grows, %d: %s", i, l)
		}
	}
	hear(1e6, 300*time.Millisecond)
	for range 5 {
		if l := hear(1e6, 3*time.Second); l != LevelMost {
			t.Errorf("1 MB/s for seconds: %s", l)
		}
	}
	for range 3 {
		if l := hear(5e7, time.Second); l > LevelBest {
			t.Errorf("a rate that jumps: %s", l)
		}
	}
	if l := hear(5e7, time.Second); l < LevelBetter || l > LevelBest {
		t.Errorf("50 MB/s for seconds: %s", l)
	}
}

// What ran dry while the cores were busy elsewhere does not keep the levels low afterwards.
func TestGovernorForgetsABusyMoment(t *testing.T) {
	clock := time.Unix(0, 0)
	g := NewGovernor(2)
	g.now = func() time.Time { return clock }
	pack := func(waiting int, took time.Duration) Level {
		clock = clock.Add(50 * time.Millisecond)
		g.Queue(waiting, g.Ahead())
		g.Link(12.5e6, false)
		l, n := g.Next()
		if l > LevelNone {
			g.Encoded(l, Zstd, n, int(prior[l].ratio*float64(n)), took)
		}
		return l
	}
	for range 60 {
		pack(0, 100*time.Millisecond)
	}
	if l := pack(0, time.Millisecond); l > LevelQuick {
		t.Fatalf("a dry link and busy cores: %s", l)
	}
	for range 12 {
		pack(g.Ahead(), 5*time.Millisecond)
	}
	if l := pack(g.Ahead(), 5*time.Millisecond); l < LevelDefault {
		t.Errorf("a moment after the link was full again: %s", l)
	}
}
