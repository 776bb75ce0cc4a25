package sync

import (
	"context"
	"path/filepath"
	"time"
)

// This file looks at the content of files whose size is equal and whose time does
// not decide: all of them with Checksum; else where their times are off in a way
// that no edit explains. A copy without times (cp -r, a checkout, an archive) or a
// clock that was wrong must not send everything again.

const (
	maxDoubts   = 4096             // that wait at once
	fewDoubts   = 8                // as many may just have been edited
	sameOffset  = 2 * time.Second  // times that are off by the same
	doubtsBytes = 256 << 20        // that are read in one go
	hashCosts   = int64(largeFile) // from this size on looking is cheaper than sending, where nothing else helps
)

type doubts struct {
	j     *job
	c     *comparer
	pairs []doubt
	same  int // files that are there already, without doubt
}

type doubt struct{ e, there Entry }

// add takes a pair.
func (d *doubts) add(ctx context.Context, e, there Entry) error {
	d.pairs = append(d.pairs, doubt{e, there})
	if len(d.pairs) < maxDoubts {
		return nil
	}
	return d.flush(ctx)
}

// flush settles all pairs.
func (d *doubts) flush(ctx context.Context) error {
	if d.c.err != nil {
		return d.c.err
	}
	pairs := d.pairs
	d.pairs = nil
	odd := d.j.s.Checksum || d.odd(pairs)
	_, streams := optional[Streamer](d.j.t)
	var look, plain []doubt
	for _, p := range pairs {
		if odd || !streams && p.e.Size >= hashCosts && readsThere(d.j.t) {
			look = append(look, p)
		} else {
			plain = append(plain, p)
		}
	}
	for _, p := range plain {
		d.c.settle(p.e, p.there)
	}
	for len(look) > 0 {
		n, bytes := 0, int64(0)
		for n < len(look) && (n == 0 || bytes+look[n].e.Size <= doubtsBytes) {
			bytes += look[n].e.Size
			n++
		}
		if err := d.read(ctx, look[:n]); err != nil {
			return err
		}
		look = look[n:]
	}
	return nil
}

// odd says whether the times of pairs are off as those of a copy are: most by the
// same, or more files than are as they should be.
func (d *doubts) odd(pairs []doubt) bool {
	if len(pairs) < fewDoubts || !readsThere(d.j.t) {
		return false
	}
	if len(pairs) > d.same {
		return true
	}
	by := map[int64]int{}
	for _, p := range pairs {
		by[int64(p.e.ModTime.Sub(p.there.ModTime)/sameOffset)]++
	}
	most := 0
	for slot, n := range by {
		most = max(most, n+by[slot+1])
	}
	return 4*most >= 3*len(pairs)
}

// readsThere says whether the instance reads its files itself: otherwise looking
// costs as much as sending.
func readsThere(t Transport) bool {
	s, alone := optional[*sftpTransport](t)
	return !alone || s.sh != nil
}

// read compares contents.
func (d *doubts) read(ctx context.Context, pairs []doubt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	push := d.j.s.Direction == Push
	far := make([]string, len(pairs))
	for i, p := range pairs {
		if far[i] = p.there.Path; !push {
			far[i] = p.e.Source()
		}
	}
	sums, n := make([]string, len(pairs)), 0
	done := make(chan error, 1)
	go func() {
		done <- d.j.t.Hash(ctx, d.j.remote, far, func(_, sum string, err error) {
			if err == nil && n < len(sums) {
				sums[n] = sum
			}
			n++
		})
	}()
	here := make([]string, len(pairs))
	for i, p := range pairs {
		near := p.there.Path
		if push {
			near = p.e.Source()
		}
		here[i], _ = d.j.s.sumHere(ctx, filepath.Join(d.j.local, filepath.FromSlash(near)), !d.j.s.Checksum, nil) // what cannot be read is sent, and says why
	}
	if err := <-done; err != nil {
		return err
	}
	for i, p := range pairs {
		if p.e.SHA256, p.there.SHA256 = here[i], sums[i]; !push {
			p.e.SHA256, p.there.SHA256 = sums[i], here[i]
		}
		d.c.settle(p.e, p.there)
	}
	return ctx.Err()
}
