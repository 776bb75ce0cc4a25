//go:build unix

package sync_test

import (
	"io"
	stdsync "sync"
	"testing"

	"rentop/remote/agent/link"
	"rentop/sync"
	"rentop/sync/far"
	"rentop/sync/transporttest"
)

// pipeLink is a link within this process.
type pipeLink struct {
	in, out *queue
}

type queue struct {
	mu     stdsync.Mutex
	cond   *stdsync.Cond
	list   []link.Message
	bytes  int
	closed bool
}

func newQueue() *queue { q := &queue{}; q.cond = stdsync.NewCond(&q.mu); return q }

func newPipe() (a, b link.Link) {
	x, y := newQueue(), newQueue()
	return &pipeLink{x, y}, &pipeLink{y, x}
}

func (p *pipeLink) Send(kind byte, parts ...[]byte) error {
	var b []byte
	for _, part := range parts {
		b = append(b, part...)
	}
	q := p.out
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > 4<<20 && !q.closed {
		q.cond.Wait()
	}
	if q.closed {
		return io.ErrClosedPipe
	}
	q.list = append(q.list, link.Message{Kind: kind, Payload: b})
	q.bytes += len(b)
	q.cond.Broadcast()
	return nil
}

func (p *pipeLink) Recv() (link.Message, error) {
	q := p.in
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.cond.Wait()
	}
	if len(q.list) == 0 {
		return link.Message{}, io.EOF
	}
	m := q.list[0]
	q.list = q.list[1:]
	q.bytes -= len(m.Payload)
	q.cond.Broadcast()
	return m, nil
}

func (p *pipeLink) Close() error {
	for _, q := range []*queue{p.in, p.out} {
		q.mu.Lock()
		q.closed = true
		q.cond.Broadcast()
		q.mu.Unlock()
	}
	return nil
}

// newAgent is the transport to a helper in this process.
func newAgent(t *testing.T) sync.Streamer {
	here, there := newPipe()
	served := make(chan error, 1)
	go func() { served <- far.Serve(t.Context(), there) }()
	tr := sync.NewAgent(here, nil)
	t.Cleanup(func() {
		tr.Close()
		if err := <-served; err != nil {
			t.Errorf("the helper ended with %v", err)
		}
	})
	return tr
}

func TestAgentTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Env {
		home := t.TempDir()
		t.Setenv("HOME", home)
		return transporttest.Env{Transport: newAgent(t), Home: home, Exact: true, Small: small(t)}
	})
}
