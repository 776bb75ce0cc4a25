package link

// A Carrier is the Link: an outbox and an inbox with stripes between them and the
// other side's.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stuckAfter = 10 * time.Second // Close gives up when nothing has left for so long
	linger     = 2 * time.Second  // Close waits for the other side's end, and for its stripes to let go
)

// Options of a Carrier. The zero value is a link that measures and does not grow.
type Options struct {
	// Grow is called when the link's rate times its round trip comes near to what
	// its stripes' windows hold, with the number of stripes that would be better. It
	// returns at once; stripes come by Add, or not.
	Grow func(want int)
	// MaxStripes bounds what Grow asks for; 0 is 8.
	MaxStripes int
	// Hasty is for whoever has heard all that it waits for, or ends with its link:
	// Close does not wait for the other side's end once all has been written.
	Hasty    bool
	Now      func() time.Time // nil: time.Now
	patience time.Duration    // with a stripe that does not come; 0: lostAfter
}

// Carrier is a Link over one or more stripes: byte streams in both directions
// whose Close returns at once and soon ends a Read and a Write that are under way. Where a stripe has a
// CloseWrite method, it is called after its last frame. A stripe that ends early
// ends the link.
type Carrier struct {
	o     Options
	out   outbox
	in    inbox
	meter meter

	life context.Context
	stop context.CancelFunc

	mu      sync.Mutex // guards the fields below
	stripes []*stripe
	ended   bool
	err     error

	writers, readers, others sync.WaitGroup
	received                 atomic.Int64 // bytes of messages' frames
	closing                  sync.Once
	closeErr                 error
}

var _ Link = (*Carrier)(nil)

// New starts a link over its first stripe, which it owns. Close ends it.
func New(first io.ReadWriteCloser, o Options) *Carrier {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxStripes == 0 {
		o.MaxStripes = 8
	}
	if o.patience == 0 {
		o.patience = lostAfter
	}
	l := &Carrier{o: o}
	l.life, l.stop = context.WithCancel(context.Background())
	l.out.init()
	l.in.init()
	l.meter.init(o.Now())
	l.Add(first)
	l.others.Go(l.measure)
	return l
}

// Add puts another stripe to work, at once and in both directions: the other side
// must add its end too. The link owns it, also where Add fails because the link
// has ended.
func (l *Carrier) Add(rwc io.ReadWriteCloser) error {
	s := &stripe{rwc: rwc}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	l.out.mu.Lock()
	switch {
	case err == nil && l.out.closing:
		err = ErrClosed
	case err == nil && l.out.stripes == maxStripes:
		err = fmt.Errorf("a link has at most %d stripes", maxStripes)
	case err == nil:
		l.out.stripes++
	}
	l.out.mu.Unlock()
	if err != nil {
		rwc.Close()
		return err
	}
	l.stripes = append(l.stripes, s)
	l.meter.restart()
	l.writers.Go(func() { l.write(s) })
	l.readers.Go(func() { l.read(s) })
	return nil
}

// Send implements Link.
func (l *Carrier) Send(kind byte, parts ...[]byte) error {
	l.meter.wake() // what is large is measured while it is queued
	err := l.out.put(kind, parts)
	l.meter.wake() // it may have looked before there was anything, and dozed off again
	return err
}

// Recv implements Link.
func (l *Carrier) Recv() (Message, error) {
	m, broken, err := l.in.recv()
	if broken != nil {
		l.fail(broken)
	}
	return m, err
}

// Close implements Link. The error says what was not delivered to the stripes.
func (l *Carrier) Close() error {
	l.closing.Do(func() { l.closeErr = l.close() })
	return l.closeErr
}

func (l *Carrier) close() error {
	if err := l.in.discard(); err != nil {
		l.fail(err)
	}
	l.out.close()
	flushed, heard := make(chan struct{}), make(chan struct{})
	go func() { l.writers.Wait(); close(flushed) }() // both end with the stripes
	go func() { l.readers.Wait(); close(heard) }()
	err := l.await(flushed)
	if err == nil && !l.o.Hasty {
		t := time.NewTimer(linger)
		select {
		case <-heard:
		case <-t.C:
		}
		t.Stop()
	}
	l.fail(ErrClosed)
	l.others.Wait()
	waits := []chan struct{}{flushed, heard}
	if l.o.Hasty { // the other side's last word is a round trip away
		waits = waits[:1]
	}
	t := time.NewTimer(linger) // a stripe may be slow to let go; its goroutines end with it
	defer t.Stop()
	for _, c := range waits {
		select {
		case <-c:
		case <-t.C:
			return err
		}
	}
	return err
}

// await waits for the flush while it goes on.
func (l *Carrier) await(flushed <-chan struct{}) error {
	t := time.NewTicker(stuckAfter)
	defer t.Stop()
	for last := int64(-1); ; {
		select {
		case <-flushed:
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.err
		case <-t.C:
			l.out.mu.Lock()
			sent := l.out.sent
			l.out.mu.Unlock()
			if sent == last {
				return errors.New("the other side of the link takes nothing more")
			}
			last = sent
		}
	}
}

// fail ends the link; the first reason counts.
func (l *Carrier) fail(err error) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	l.ended, l.err = true, err
	stripes := l.stripes
	l.mu.Unlock()
	l.stop()
	l.out.fail(err)
	l.in.fail(err)
	for _, s := range stripes {
		s.rwc.Close()
	}
}

// Done is closed when the link has ended, for whatever reason.
func (l *Carrier) Done() <-chan struct{} { return l.life.Done() }
