package far

import (
	"encoding/binary"
	"io"

	"rentop/sync/codec"
	"rentop/sync/tree"
)

// This file is what calls carry out, and how lists of it are written.

// Op is what an Item asks for.
type Op byte

const (
	Send     Op = 1 + iota // write the file
	Mkdir                  // make the folder and those above it
	Link                   // make the symlink
	Attr                   // set mode and, of a file, time
	Delete                 // remove; a folder only where it is empty
	Move                   // rename Entry.Path to To
	hardLink               // give the file at Entry.Link the name Entry.Path too
	lastOp
)

// Item is one thing to do under a destination's root.
type Item struct {
	Op    Op
	Entry tree.Entry
	To    string   // of a Move
	Fresh bool     // of a Send: nothing is at its path, as far as is known
	Basis []string // of a Send: paths under the destination's root that may hold much of it
	Ref   any      // the caller's own; stays on this side
}

// maxBasis bounds the candidates of one file.
const maxBasis = 8

// appendItem writes what the other side does: all but a Send.
func (f *front) appendItem(b []byte, it *Item) []byte {
	b = append(b, byte(it.Op))
	b = f.appendEntry(b, &it.Entry)
	if it.Op == Move {
		b = appendString(b, it.To)
	}
	return b
}

func (f *front) item(d *decoder) Item {
	var it Item
	it.Op = Op(d.byte())
	if it.Op <= Send || it.Op >= lastOp {
		d.fail("an unknown operation")
		return it
	}
	it.Entry = f.entry(d)
	d.checkPath(it.Entry.Path)
	if it.Op == Move {
		it.To = d.string(tree.MaxPath)
		d.checkPath(it.To)
	}
	return it
}

// maxList bounds a list of paths, entries or items in one message, unpacked.
const (
	maxList  = 1 << 20
	goodList = 128 << 10 // when one is sent
)

// packList compresses a list: method, raw length, bytes.
func packList(c *codec.Codec, raw []byte) []byte {
	head := binary.AppendUvarint([]byte{0}, uint64(len(raw)))
	l := codec.LevelDefault
	if len(raw) < 200 {
		l = codec.LevelNone
	}
	m, out := c.Encode(head, raw, codec.Hint{Level: l})
	out[0] = byte(m)
	return out
}

// unpackList is the way back.
func unpackList(c *codec.Codec, b []byte) (*decoder, error) {
	d := decoder{b: b}
	m := codec.Method(d.byte())
	n := d.length(maxList)
	if d.err != nil {
		return nil, d.err
	}
	raw, err := c.Decode(nil, m, d.b, n)
	if err != nil {
		return nil, broken("%v", err)
	}
	return &decoder{b: raw}, nil
}

// eachList calls do with every list of kind what that the other side sends, until
// its end.
func (k *call) eachList(c *codec.Codec, what byte, do func(d *decoder) error) error {
	for {
		m, err := k.recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if m.what != what {
			return broken("a message of kind %d among lists of kind %d", m.what, what)
		}
		d, err := unpackList(c, m.body)
		if err != nil {
			return err
		}
		k.release(m.size())
		m.free()
		if err := do(d); err != nil {
			return err
		}
	}
}
