package sync

import (
	"context"
	"fmt"
	"slices"

	"rentop/sync/tree"
)

// This file hands the entries of a walk from the goroutine that walks to the one
// that compares: in batches, no more than a few at once.

const (
	feedBatch = 256 // entries
	feedAhead = 16  // batches
)

// feed is a walk as it is read. peek and take are for one goroutine.
type feed struct {
	ch    <-chan []Entry
	batch []Entry
	whole []Entry        // what batch is the rest of
	spare chan<- []Entry // batches that were taken go back; nil: nowhere
	prev  string         // the last path that was looked at
	err   error          // why there is no more; set once peek returned nil

	cause error // set before ch is closed
}

// newFeed runs walk in a goroutine until it ends or ctx does; its error is the
// feed's. Whoever cancels ctx and reads the feed to its end knows that walk is over.
func newFeed(ctx context.Context, walk func(ctx context.Context, emit func(Entry) error) error) *feed {
	ch := make(chan []Entry, feedAhead)
	spare := make(chan []Entry, feedAhead)
	f := &feed{ch: ch, spare: spare}
	go func() {
		defer close(ch)
		size := 16 // the first batch comes soon
		batch := make([]Entry, 0, size)
		flush := func() error {
			select {
			case ch <- batch:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := walk(ctx, func(e Entry) error {
			batch = append(batch, e)
			if len(batch) < size {
				return nil
			}
			err := flush()
			size = min(2*size, feedBatch)
			select {
			case batch = <-spare:
			default:
				batch = nil
			}
			if cap(batch) < size {
				batch = make([]Entry, 0, size)
			}
			return err
		})
		if len(batch) > 0 && ctx.Err() == nil { // what came before an error counts
			flush()
		}
		f.cause = err
	}()
	return f
}

// sorted is a listing in memory as a feed. Of entries with one path the first
// counts: no honest listing has two.
func sorted(list []Entry) *feed {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Entry) int { return tree.Compare(a.Path, b.Path) })
	list = slices.CompactFunc(list, func(a, b Entry) bool { return a.Path == b.Path })
	ch := make(chan []Entry)
	close(ch)
	return &feed{ch: ch, batch: list}
}

// peek is the next entry, nil where there is none: then err says why.
func (f *feed) peek() *Entry {
	for len(f.batch) == 0 {
		if f.whole != nil {
			select {
			case f.spare <- f.whole[:0]:
			default:
			}
			f.whole = nil
		}
		batch, more := <-f.ch
		if !more {
			if f.err == nil {
				f.err = f.cause
			}
			return nil
		}
		for _, e := range batch {
			if f.prev != "" && tree.Compare(f.prev, e.Path) >= 0 {
				f.err = fmt.Errorf("a listing is out of order: %q after %q", e.Path, f.prev)
			}
			f.prev = e.Path
		}
		if f.err != nil {
			return nil
		}
		f.batch, f.whole = batch, batch
	}
	return &f.batch[0]
}

// take goes past the entry that peek showed and returns it.
func (f *feed) take() Entry {
	e := f.batch[0]
	f.batch[0] = Entry{}
	f.batch = f.batch[1:]
	return e
}

// drain waits for a walk whose context has ended.
func (f *feed) drain() {
	for range f.ch {
	}
}
