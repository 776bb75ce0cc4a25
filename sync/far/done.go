package far

import (
	"encoding/binary"
	"sync"

	"rentop/sync/codec"
)

// This file tells the sender what has become of its files and items.

func appendDone(b []byte, index uint32, err error) []byte {
	return appendError(binary.AppendUvarint(b, uint64(index)), err)
}

// doneList gathers what has been done and sends it, many at a time.
type doneList struct {
	k     *call
	codec *codec.Codec
	// settle is called before what was added so far is sent; may be nil.
	settle func()
	mu     sync.Mutex // protects b, ended
	b      []byte
	ended  bool
	more   chan struct{}
}

func newDoneList(k *call, c *codec.Codec) *doneList {
	return &doneList{k: k, codec: c, more: make(chan struct{}, 1)}
}

func (l *doneList) add(index uint32, err error) {
	l.mu.Lock()
	l.b = appendDone(l.b, index, err)
	l.mu.Unlock()
	signal(l.more)
}

func (l *doneList) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	signal(l.more)
}

// run sends until end was called and all is sent.
func (l *doneList) run() error {
	for {
		l.mu.Lock()
		b, ended := l.b, l.ended
		l.b = nil
		l.mu.Unlock()
		if len(b) > 0 && l.settle != nil {
			l.settle()
		}
		for len(b) > 0 {
			part := b
			if len(part) > goodList {
				part = l.cut(b)
			}
			if err := l.k.send(msgDone, packList(l.codec, part)); err != nil {
				return err
			}
			b = b[len(part):]
		}
		if ended {
			return nil
		}
		select {
		case <-l.more:
		case <-l.k.ctx.Done():
			return l.k.why()
		}
	}
}

// cut is a beginning of b with whole entries.
func (l *doneList) cut(b []byte) []byte {
	d := decoder{b: b}
	for len(b)-len(d.b) < goodList/2 && d.err == nil {
		d.index()
		d.error()
	}
	return b[:len(b)-len(d.b)]
}
