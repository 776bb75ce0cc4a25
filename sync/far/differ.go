package far

import (
	"io"

	"rentop/sync/codec"
	"rentop/sync/delta"
)

// This file sends a large file as steps from what the receiver has: its older
// version, or files that are named as likely to hold much of it.

// ahead is how far the signature of a single basis must reach beyond what is
// being compared: what moved further back than that is found all the same once
// it has come, since the signature is read faster than the link carries content.
const ahead = 8 << 20

// diff compares the file with the receiver's signatures and sends the steps.
func (l *largeFile) diff() error {
	d := &diffReader{l: l, index: delta.NewIndex()}
	var b steps
	level, size := l.s.choose()
	upTo := int64(0)
	flush := func() error {
		if b.n == 0 {
			return nil
		}
		if err := l.s.room(); err != nil {
			return err
		}
		copied := b.copied
		raw := b.block()
		err := l.data(msgSteps, raw, upTo, copied, codec.Hint{Level: level}, func() { putBuffer(raw) })
		level, size = l.s.choose()
		return err
	}
	err := delta.Diff(l.s.k.ctx, d, l.o.entry.Size, d.index, func(op delta.Op) error {
		if l.o.stop.Load() {
			return errChanged
		}
		if op.Len > 0 {
			b.copy(op.Basis+1, op.Off, op.Len)
			upTo += op.Len
		} else {
			if len(b.literals)+len(op.Literal) > maxLiterals {
				if err := flush(); err != nil {
					return err
				}
			}
			b.literal(op.Literal)
			upTo += int64(len(op.Literal))
		}
		// Few and long blocks pack better; the receiver should not wait for long either.
		if len(b.literals) >= size || b.n >= maxSteps || b.copied >= 16*int64(size) {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil && d.at != l.size {
		err = errChanged
	}
	return err
}

// diffReader reads the file for delta.Diff and adds the signature to its index
// as it comes: Diff calls Read from the goroutine that uses the index.
type diffReader struct {
	l     *largeFile
	index *delta.Index
	full  bool // the index takes no more
	at    int64
	buf   []byte // read and not yet given
	free  func()
}

func (d *diffReader) Read(p []byte) (int, error) {
	if len(d.buf) == 0 {
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.buf)
	if d.buf = d.buf[n:]; len(d.buf) == 0 {
		d.free()
	}
	return n, nil
}

// fill reads the next part of the file once its signature is far enough.
func (d *diffReader) fill() error {
	if err := d.learn(); err != nil {
		return err
	}
	left := d.l.size - d.at
	if left == 0 {
		if n, _ := d.l.r.Read(make([]byte, 1)); n > 0 {
			return errChanged
		}
		return io.EOF
	}
	buf := getBuffer(int(min(left, 1<<20)))
	n, err := io.ReadFull(d.l.r, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errChanged
	}
	if err != nil {
		return err
	}
	d.at += int64(n)
	d.buf = buf
	d.free = shared(2, func() { putBuffer(buf) })
	d.l.hash.add(buf, d.free)
	return nil
}

// learn waits for signatures and adds them.
func (d *diffReader) learn() error {
	o := d.l.o
	err := d.l.s.until(o, func(h *have) bool {
		return h.ended || h.bases == 1 && h.signed >= d.at+ahead
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	list := o.have.chunks
	o.have.chunks = nil
	o.mu.Unlock()
	for _, c := range list {
		if d.full {
			continue
		}
		if err := d.index.Add(c.basis-1, c.chunks); err != nil {
			d.full = true // what is found by now is found
		}
	}
	return nil
}
