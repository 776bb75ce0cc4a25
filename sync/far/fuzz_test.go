//go:build unix

package far

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rentop/sync/codec"
	"rentop/sync/delta"
	"rentop/sync/tree"
)

// Fuzz targets for what each end reads of the other. A message is a kind, two
// bytes of length, and its body.

func split(b []byte) []frame {
	var out []frame
	for len(b) >= 3 {
		n := min(int(b[1])|int(b[2])<<8, len(b)-3)
		out = append(out, frame{what: b[0], body: append([]byte(nil), b[3:3+n]...)})
		b = b[3+n:]
	}
	return out
}

func joined(msgs ...frame) (out []byte) {
	for _, m := range msgs {
		out = append(out, m.what, byte(len(m.body)), byte(len(m.body)>>8))
		out = append(out, m.body...)
	}
	return out
}

// seeds are honest messages.
func seeds() [][]byte {
	c := codec.New(1)
	var f front
	e := tree.Entry{Path: "d/f", Size: 3, Mode: 0o644, ModTime: time.Unix(1, 2)}
	item := func(op Op) []byte {
		it := Item{Op: op, Entry: e, To: "x/y"}
		it.Entry.Target = "t"
		return packList(c, new(front).appendItem(u(5), &it))
	}
	batch := func(named bool) []byte {
		raw := append(appendBatch(nil, []small{{index: 1, path: "f", perm: 0o644, size: 3, time: time.Unix(1, 2)}}, named), "abc"...)
		return cat(appendBlock(nil, codec.Raw, len(raw)), raw)
	}
	var s steps
	s.literal([]byte("abc"))
	s.copy(1, 0, 7)
	b := s.block()
	w := wanted{index: 1, path: "f", size: 3, large: true, have: true}
	return [][]byte{
		joined(frame{what: msgItems, body: item(Mkdir)}, frame{what: msgItems, body: item(Move)}, frame{what: msgItems, body: item(Link)}),
		joined(frame{what: msgBatch, body: batch(true)}), joined(frame{what: msgBatch, body: batch(false)}),
		joined(frame{what: msgAnnounce, body: appendAnnounce(nil, &announced{index: 1, entry: e, basis: []string{"g"}})},
			frame{what: msgStart, body: start(1, 10)}, frame{what: msgSteps, body: cat(u(1), appendBlock(nil, codec.Raw, len(b)), b)},
			frame{what: msgData, body: data(1, []byte("0123456789"))}, frame{what: msgCopy, body: appendSpan(u(1), span{0, 10})},
			frame{what: msgEnd, body: cat(u(1), make([]byte, 32))}),
		joined(frame{what: msgStart, body: start(1, 3)}, frame{what: msgFail, body: cat(u(1), appendError(nil, errChanged))}),
		joined(frame{what: msgDone, body: packList(c, appendError(u(1), errDiffers))}, frame{what: msgHave, body: cat(u(1), u(1<<20), u(2))},
			frame{what: msgSums, body: cat(u(1), []byte{1}, make([]byte, 16))}, frame{what: msgChunks, body: cat(u(1), []byte{0}, u(1), delta.Append(nil, []delta.Chunk{{Sum: 1, Len: 9}}))}),
		joined(frame{what: msgWant, body: packList(c, f.appendWanted(nil, &w))}),
		joined(frame{what: whatEntries, body: packList(c, new(front).appendEntry(nil, &e))}, frame{what: whatProblem, body: appendError(appendMode(appendString(nil, "p"), fs.ModeDir), errChanged)},
			frame{what: whatCount, body: u(3)}),
	}
}

// replay is a call in which the other side has sent msgs and ended.
func replay(msgs []frame) *call {
	here, there := newPipe()
	there.Close() // what is sent goes nowhere
	c := newConn(here, nil)
	k := c.newCall(context.Background(), 1)
	for _, m := range msgs {
		if k.put(m) != nil {
			break
		}
	}
	k.finish(nil)
	return k
}

// FuzzReceiver is both receivers: a helper's and a client's. Nothing is written
// outside of their folder.
func FuzzReceiver(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, true)
		f.Add(s, false)
	}
	base := f.TempDir()
	dst := filepath.Join(base, "in", "dst")
	f.Fuzz(func(t *testing.T, b []byte, named bool) {
		os.RemoveAll(dst)
		os.MkdirAll(dst, 0o755)
		os.WriteFile(filepath.Join(dst, "g"), make([]byte, 70<<10), 0o644)
		p, err := openPlace(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		k := replay(split(b))
		r := newReceiver(k, p, codec.New(2), 2)
		r.named = named
		r.done = func(uint32, source, error) {}
		r.lookup = func(index uint32) (string, fs.FileMode, int64, bool) { return "f", 0o644, 1 << 20, index < 3 }
		r.run()
		for dir, only := range map[string]string{base: "in", filepath.Dir(dst): "dst"} {
			if names, err := os.ReadDir(dir); err != nil || len(names) != 1 || names[0].Name() != only {
				t.Fatalf("%s holds %v", dir, names)
			}
		}
	})
}

// FuzzAnswers is what a sender hears from a receiver.
func FuzzAnswers(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := openPlace(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		k := replay(split(b))
		defer k.close()
		s := newSender(k, p, codec.New(1), 1)
		o := newOutgoing(announced{index: 1})
		s.outs[1] = o
		fl := newFlow(Options{}, nil)
		fl.pending[1] = &underway{it: Item{Op: Send}}
		if err := s.answers(fl); err == nil {
			t.Error("no end")
		}
		if n := int64(len(o.have.sums)); n > o.have.part/partBlock {
			t.Errorf("%d sums of a part of %d bytes", n, o.have.part)
		}
		w := &wishes{more: make(chan struct{}, 1)}
		s.k = replay(split(b))
		defer s.k.close()
		w.hear(&server{codec: codec.New(1)}, s)
	})
}

// FuzzListing is what a client hears of a tree.
func FuzzListing(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k := replay(split(b))
		defer k.close()
		c := &Client{codec: codec.New(1)}
		c.entries(k, func(e tree.Entry) error {
			if tree.CheckPath(e.Path) != nil || e.Size < 0 {
				t.Errorf("emitted %+v", e)
			}
			return nil
		}, func(string, fs.FileMode, error) {}, func(int64) {})
	})
}
