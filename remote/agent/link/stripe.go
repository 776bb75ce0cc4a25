package link

// A stripe's two goroutines: one writes what the outbox gives, one reads frames
// into the inbox. They end with the stripe's last frame or the link.

import (
	"bufio"
	"encoding/binary"
	"io"
	"time"
)

// readAhead is small: a body longer than it is read without a copy.
const readAhead = 4 << 10

type stripe struct {
	rwc     io.ReadWriteCloser
	control []byte // frames of its own that wait; guarded by outbox.mu
}

func (l *Carrier) write(s *stripe) {
	for {
		control, c, bye, err := l.out.take(s)
		if err != nil {
			return
		}
		if len(control) > 0 {
			_, err = s.rwc.Write(control)
		}
		if c.buf != nil {
			if err == nil {
				_, err = s.rwc.Write(c.bytes())
			}
			chunks.Put(c.buf)
		}
		if err != nil {
			l.fail(cut(err))
			return
		}
		if bye {
			if h, is := s.rwc.(interface{ CloseWrite() error }); is {
				h.CloseWrite() // an error: the other side has gone, as it may now
			}
			return
		}
	}
}

func (l *Carrier) read(s *stripe) {
	if err := l.frames(s, bufio.NewReaderSize(s.rwc, readAhead)); err != nil {
		l.fail(err)
	}
}

// frames reads until the stripe's last frame.
func (l *Carrier) frames(s *stripe, r *bufio.Reader) error {
	var b [headerSize]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return cut(err)
		}
		h, err := parseHeader(b[:])
		if err != nil {
			return err
		}
		switch h.typ {
		case frameFirst, frameMore:
			l.meter.wake()
			if err := l.in.frame(h, r); err != nil {
				return err
			}
			l.received.Add(int64(headerSize + h.size))
			l.report(s)
		case framePing:
			l.answer(s, h.number)
		case framePong:
			var body [pongSize]byte
			if _, err := io.ReadFull(r, body[:]); err != nil {
				return cut(err)
			}
			if err := l.pong(h.number, binary.BigEndian.Uint64(body[:]), binary.BigEndian.Uint64(body[8:])); err != nil {
				return err
			}
		case frameBye:
			missing, err := l.in.bye(h)
			if missing {
				l.expect()
			}
			return err
		}
	}
}

// expect ends the link where the other side has said that it is done, but a stripe
// that it used never comes.
func (l *Carrier) expect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended { // Close waits for the others already
		return
	}
	l.others.Go(func() {
		t := time.NewTimer(l.o.patience)
		defer t.Stop()
		select {
		case <-t.C:
			if !l.in.over() {
				l.fail(ErrCut)
			}
		case <-l.life.Done():
		}
	})
}
