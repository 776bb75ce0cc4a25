// Channels for more of the same: several at once, and only what is free.

package remote

import (
	"context"
	"sync"
)

// several opens up to n channels that are free now, at once, and proves that spare
// more would be.
func (c *channels) several(ctx context.Context, n, spare int) []*channel {
	c.mu.Lock()
	l := c.lines[0]
	want := n + spare
	if l.limit > 0 {
		want = min(want, l.limit-l.used)
	}
	if c.closed || l.gone() || want <= spare {
		c.mu.Unlock()
		return nil
	}
	l.used += want
	c.mu.Unlock()
	opened := make(chan *channel, want)
	for range want {
		go func() { // ends with the answer
			ch, err := openOn(ctx, l)
			if err != nil {
				c.give(l, false)
				opened <- nil
				return
			}
			ch.given = sync.OnceFunc(func() { c.give(l, true) })
			opened <- ch
		}()
	}
	var got []*channel
	for range want {
		if ch := <-opened; ch != nil {
			got = append(got, ch)
		}
	}
	if len(got) < want && ctx.Err() == nil && !l.gone() {
		c.mu.Lock()
		l.limit = max(l.used, 1) // refused: this is all there are
		c.mu.Unlock()
	}
	keep := max(0, min(n, len(got)-spare))
	for _, ch := range got[keep:] {
		go ch.wait()
		ch.Close()
		ch.given()
	}
	return got[:keep]
}
