//go:build unix

package far

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/agent/link"
	"rentop/sync/codec"
	"rentop/sync/tree"
)

// pipe is a link within this process.
type pipe struct{ in, out *mailbox }

type mailbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	list   []link.Message
	bytes  int
	closed bool
}

func newPipe() (a, b *pipe) {
	box := func() *mailbox { m := &mailbox{}; m.cond = sync.NewCond(&m.mu); return m }
	x, y := box(), box()
	return &pipe{x, y}, &pipe{y, x}
}

func (p *pipe) Send(kind byte, parts ...[]byte) error {
	var b []byte
	for _, part := range parts {
		b = append(b, part...)
	}
	m := p.out
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.bytes > 4<<20 && !m.closed {
		m.cond.Wait()
	}
	if m.closed {
		return link.ErrClosed
	}
	m.list = append(m.list, link.Message{Kind: kind, Payload: b})
	m.bytes += len(b)
	m.cond.Broadcast()
	return nil
}

func (p *pipe) Recv() (link.Message, error) {
	m := p.in
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.list) == 0 && !m.closed {
		m.cond.Wait()
	}
	if len(m.list) == 0 {
		return link.Message{}, io.EOF
	}
	x := m.list[0]
	m.list = m.list[1:]
	m.bytes -= len(x.Payload)
	m.cond.Broadcast()
	return x, nil
}

func (p *pipe) Close() error {
	for _, m := range []*mailbox{p.in, p.out} {
		m.mu.Lock()
		m.closed = true
		m.cond.Broadcast()
		m.mu.Unlock()
	}
	return nil
}

// against is a client whose server does what serve does with each call.
func against(t *testing.T, serve func(k *call)) *Client {
	here, there := newPipe()
	c := newConn(there, serve)
	ended := make(chan struct{})
	go func() { defer close(ended); c.read(context.Background()); there.Close() }()
	client := NewClient(here)
	t.Cleanup(func() {
		client.Close()
		there.Close()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("the link does not end")
		}
	})
	return client
}

func u(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func cat(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// start, data and end are a large file's messages.
func start(index uint64, size uint64) []byte {
	return appendTime(cat(u(index), u(size)), time.Unix(1, 0))
}
func data(index uint64, b []byte) []byte {
	return cat(u(index), appendBlock(nil, codec.Raw, len(b)), b)
}

// TestHostileInstance: whatever an instance sends in a pull, nothing but what was
// asked for is written, and no more of it than was said.
func TestHostileInstance(t *testing.T) {
	block := make([]byte, 1<<20)
	batch := func(files []small, contents ...[]byte) []byte {
		raw := cat(append([][]byte{appendBatch(nil, files, false)}, contents...)...)
		return cat(appendBlock(nil, codec.Raw, len(raw)), raw)
	}
	named := func(files []small, contents ...[]byte) []byte {
		raw := cat(append([][]byte{appendBatch(nil, files, true)}, contents...)...)
		return cat(appendBlock(nil, codec.Raw, len(raw)), raw)
	}
	for _, c := range []struct {
		name   string
		serve  func(k *call)
		breaks string // what the client says of the protocol; "" where only the file fails
	}{
		{"endless file", func(k *call) {
			k.send(msgStart, start(1, 2<<20))
			for k.send(msgData, data(1, block)) == nil {
			}
		}, "longer than it was announced"},
		{"much larger than listed", func(k *call) {
			k.send(msgStart, start(1, 200<<30))
			for range 40 {
				k.send(msgData, data(1, block))
			}
			k.send(msgFail, cat(u(1), appendError(nil, errChanged)))
		}, ""},
		{"short", func(k *call) {
			k.send(msgStart, start(1, 2<<20))
			k.send(msgData, data(1, block))
			k.send(msgEnd, cat(u(1), make([]byte, 32)))
		}, "shorter than it was announced"},
		{"another sum", func(k *call) {
			k.send(msgStart, start(1, 1<<20))
			k.send(msgData, data(1, block))
			k.send(msgEnd, cat(u(1), make([]byte, 32)))
		}, ""},
		{"another batch sum", func(k *call) { k.send(msgBatch, batch([]small{{index: 1, size: 3}}, []byte("abc"))) }, ""},
		{"unasked file", func(k *call) { k.send(msgStart, start(7, 5)) }, "nobody asked for"},
		{"unasked in a batch", func(k *call) { k.send(msgBatch, batch([]small{{index: 9, size: 3}}, []byte("abc"))) }, "nobody asked for"},
		{"named batch", func(k *call) {
			k.send(msgBatch, named([]small{{index: 1, path: "../x", size: 3}}, []byte("abc")))
		}, "protocol"},
		{"operations", func(k *call) {
			var f front
			it := Item{Op: Delete, Entry: tree.Entry{Path: "mine"}}
			k.send(msgItems, packList(codec.New(1), f.appendItem(u(1), &it)))
		}, "operations in a pull"},
		{"part that is not there", func(k *call) {
			k.send(msgStart, start(1, 1<<20))
			k.send(msgCopy, appendSpan(u(1), span{0, 1 << 20}))
		}, "does not have"},
		{"basis that is not there", func(k *call) {
			k.send(msgStart, start(1, 1<<20))
			var s steps
			s.copy(1, 0, 1<<20)
			b := s.block()
			k.send(msgSteps, cat(u(1), appendBlock(nil, codec.Raw, len(b)), b))
		}, "does not have"},
		{"bomb", func(k *call) {
			k.send(msgStart, start(1, 1<<20))
			m, packed := codec.New(1).Encode(nil, make([]byte, 8<<20), codec.Hint{Level: codec.LevelFastest})
			k.send(msgData, cat(u(1), appendBlock(nil, m, 1000), packed))
		}, "protocol"},
		{"giant length", func(k *call) { k.send(msgBatch, cat([]byte{1}, u(1<<62), block[:100])) }, "beyond its limit"},
		{"unknown message", func(k *call) { k.send(99, block[:10]) }, "kind 99"},
		{"more than granted", func(k *call) {
			k.mu.Lock()
			k.credit, k.sent = -1<<40, 1<<40 // whatever is granted meanwhile is no fault to this side
			k.mu.Unlock()
			raw := func(what byte, body []byte) error {
				return k.c.l.Send(kindData, append(le32(k.id), what), body)
			}
			for raw(msgStart, start(1, 1<<20)) == nil && raw(msgData, data(1, block)) == nil {
			}
		}, "protocol"},
		{"grant beyond the window", func(k *call) { k.c.l.Send(kindCredit, cat(le32(k.id), le32(1<<31), make([]byte, 8))) }, "beyond the window"},
		{"call of its own", func(k *call) { k.c.l.Send(kindOpen, cat(le32(77), []byte{svcSend})) }, "opened a call"},
		{"message for nobody", func(k *call) { k.c.l.Send(kindData, cat(le32(77), []byte{1})) }, "nobody opened"},
		{"empty message", func(k *call) { k.c.l.Send(kindData) }, "a message of 0 bytes"},
		{"early end", func(k *call) { k.sendEnd(nil) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := t.TempDir()
			os.WriteFile(filepath.Join(dst, "mine"), []byte("mine"), 0o644)
			client := against(t, func(k *call) {
				k.recv() // what is asked for
				c.serve(k)
				for { // as a helper that has nothing to add
					if m, err := k.recv(); err != nil {
						break
					} else {
						k.release(m.size())
					}
				}
				k.sendEnd(nil)
				k.close()
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var failed error
			items := []Item{{Op: Send, Entry: tree.Entry{Path: "f", Size: 1 << 20, Mode: 0o644, ModTime: time.Unix(1, 0)}, Fresh: true}}
			err := client.Pull(ctx, "/x", dst, feed(items), Options{Done: func(_ Item, err error) { failed = err }})
			if ctx.Err() != nil {
				t.Fatal("it waits for ever")
			}
			switch {
			case c.breaks != "":
				if err == nil || !strings.Contains(err.Error(), c.breaks) {
					t.Errorf("the call ended with %v, want %q", err, c.breaks)
				}
			case err == nil && failed == nil:
				t.Error("nothing was said")
			}
			names, _ := os.ReadDir(dst)
			if len(names) != 1 || names[0].Name() != "mine" {
				t.Errorf("the folder holds %v", names)
			}
		})
	}
}

func le32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// TestHostileListing: names that leave the folder are dropped and told.
func TestHostileListing(t *testing.T) {
	var list []byte
	var f front
	for _, p := range []string{"../up", "/abs", "a", "a/../../b", "b\x00", "c"} {
		list = f.appendEntry(list, &tree.Entry{Path: p, Mode: 0o644})
	}
	answer := func(lists ...[]byte) *Client {
		return against(t, func(k *call) {
			for _, l := range lists {
				k.send(whatEntries, packList(codec.New(1), l))
			}
			k.send(whatCount, u(0))
			k.sendEnd(nil)
			k.close()
		})
	}
	var got, bad []string
	_, err := answer(list).List(t.Context(), "/x", Walk{Problem: func(p string, _ os.FileMode, _ error) { bad = append(bad, p) }},
		func(e tree.Entry) error { got = append(got, e.Path); return nil })
	if err != nil || strings.Join(got, " ") != "a c" || len(bad) != 4 {
		t.Errorf("%q, dropped %q, %v", got, bad, err)
	}
	// twice the same, or backwards, would make a comparison go wrong
	_, err = answer(list, list).List(t.Context(), "/x", Walk{}, func(tree.Entry) error { return nil })
	var p *ProtocolError
	if !errors.As(err, &p) {
		t.Errorf("out of order: %v", err)
	}
}

// TestHostileAnswers: what was not asked for, or is missing, breaks the protocol.
func TestHostileAnswers(t *testing.T) {
	sum := cat(appendError(nil, nil), make([]byte, 32))
	for _, c := range []struct {
		name string
		what byte
		list []byte // empty: none comes
		want string // "" where all is well
	}{
		{"one", whatSums, sum, ""},
		{"two", whatSums, cat(sum, sum), "more answers"},
		{"none", whatSums, nil, "ends early"},
		{"cut", whatSums, sum[:20], "protocol"},
		{"of another kind", whatDone, sum, "a message of kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := against(t, func(k *call) {
				k.recv() // the path
				if len(c.list) > 0 {
					k.send(c.what, packList(codec.New(1), c.list))
				}
				k.sendEnd(nil)
				k.close()
			})
			heard := 0
			err := client.Hash(t.Context(), "/x", []string{"f"}, func(string, []byte, error) { heard++ })
			var p *ProtocolError
			switch {
			case c.want == "" && (err != nil || heard != 1):
				t.Errorf("%v, %d heard", err, heard)
			case c.want != "" && (!errors.As(err, &p) || !strings.Contains(err.Error(), c.want) || heard > 1):
				t.Errorf("%v, %d heard; want %q", err, heard, c.want)
			}
		})
	}
}

// TestRequestsToServer: a client that breaks the protocol ends the helper.
func TestRequestsToServer(t *testing.T) {
	for _, m := range []link.Message{
		{Kind: kindOpen, Payload: cat(le32(5), []byte{svcList})},
		{Kind: kindOpen, Payload: cat(le32(1), []byte{99}, appendString(nil, "/"))},
		{Kind: kindOpen, Payload: cat(le32(1), []byte{svcStat}, u(1<<40))},
		{Kind: kindOpen, Payload: le32(1)},
		{Kind: kindData, Payload: cat(le32(1), []byte{1})},
		{Kind: 77, Payload: le32(1)},
		{Kind: kindData, Payload: nil},
	} {
		here, there := newPipe()
		ended := make(chan error, 1)
		go func() { ended <- Serve(t.Context(), there) }()
		here.Send(m.Kind, m.Payload)
		select {
		case err := <-ended:
			var p *ProtocolError
			if !errors.As(err, &p) {
				t.Errorf("%v: ended with %v", m, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%v: the helper goes on", m)
		}
		here.Close()
	}
}
