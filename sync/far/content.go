package far

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"time"

	"rentop/sync/codec"
	"rentop/sync/tree"
)

// This file is what content's messages hold. The sender is the client in a push
// and the server in a pull; the receiver is the other.

// From the sender.
const (
	msgItems    = 16 + iota // push: packed list of index and item
	msgBatch                // many small files, packed as one block
	msgAnnounce             // push: a large file is coming; say what of it you have
	msgStart                // a large file begins: index, size, time
	msgData                 // index, a block
	msgCopy                 // index, a range of the receiver's part, at the same place
	msgSteps                // index, a block of steps
	msgEnd                  // index, SHA-256
	msgFail                 // index, why the file does not come (any more)
	msgLast                 // push: nothing follows unless something fails
)

// From the receiver.
const (
	msgDone   = 32 + iota // push: packed list of index and error or none
	msgWant               // pull: packed list of files
	msgHave               // index, length of the part, number of bases
	msgSums               // index, sums of the part's blocks
	msgChunks             // index, basis, a batch of its signature
)

// Sizes that decide how a file travels.
const (
	// wholeBelow is what is sent without asking what the receiver has of it.
	wholeBelow = 64 << 10
	// largeFrom is what travels by itself, in blocks.
	largeFrom = 1 << 20
	// partFrom is what keeps its unfinished part for the next run.
	partFrom = 4 << 20
	// maxBatchFiles bounds the files of a batch.
	maxBatchFiles = 1024
	// maxPending bounds the items on their way.
	maxPending = 32 << 10
	// maxAnnounced bounds the large files whose bases are held open.
	maxAnnounced = 32
)

// small is one file in a batch.
type small struct {
	index uint32
	path  string      // push
	perm  fs.FileMode // push
	size  int64
	time  time.Time
	sum   [sha256.Size]byte
}

// appendBatch writes a batch's header: what its files are. named is for a push.
func appendBatch(b []byte, files []small, named bool) []byte {
	var head []byte
	var f front
	all := sha256.New()
	last := int64(0)
	head = binary.AppendUvarint(head, uint64(len(files)))
	for i := range files {
		s := &files[i]
		head = binary.AppendVarint(head, int64(s.index)-last)
		last = int64(s.index)
		if named {
			head = f.append(head, s.path)
			head = binary.AppendUvarint(head, uint64(s.perm.Perm()))
		}
		head = binary.AppendUvarint(head, uint64(s.size))
		head = appendTime(head, s.time)
		all.Write(s.sum[:])
	}
	head = all.Sum(head)
	b = binary.AppendUvarint(b, uint64(len(head)))
	return append(b, head...)
}

// batch reads the header; what follows it are the contents. sum is the SHA-256
// of the files' own.
func (d *decoder) batch(named bool) (files []small, sum []byte) {
	h := decoder{b: d.bytes(d.length(uint64(len(d.b))))}
	n := h.length(maxBatchFiles)
	var f front
	index := int64(0)
	var all int64
	for range n {
		var s small
		index += h.varint()
		s.index = uint32(index)
		if index < 0 || index > 1<<32-1 {
			h.fail("an index is out of its range")
		}
		if named {
			s.path = f.path(&h)
			s.perm = fs.FileMode(h.length(0o777))
		}
		s.size = int64(h.length(codec.MaxBlock))
		s.time = h.time()
		all += s.size
		if h.err != nil {
			break
		}
		files = append(files, s)
	}
	sum = h.bytes(sha256.Size)
	if err := h.end(); err != nil && d.err == nil {
		d.err = err
	}
	if d.err == nil && all != int64(len(d.b)) {
		d.fail("a batch's sizes are not its length")
	}
	if d.err != nil {
		return nil, nil
	}
	return files, sum
}

// appendBlock writes the head of a packed block; its bytes follow.
func appendBlock(b []byte, m codec.Method, raw int) []byte {
	return binary.AppendUvarint(append(b, byte(m)), uint64(raw))
}

// block reads the head; what is left of d is packed.
func (d *decoder) block() (m codec.Method, raw int) {
	m = codec.Method(d.byte())
	return m, d.length(codec.MaxBlock)
}

func (d *decoder) index() uint32 { return uint32(d.length(1<<32 - 1)) }

// announced is what an announcement says.
type announced struct {
	index uint32
	entry tree.Entry
	fresh bool
	basis []string
}

func appendAnnounce(b []byte, a *announced) []byte {
	b = binary.AppendUvarint(b, uint64(a.index))
	var f front
	b = f.appendEntry(b, &a.entry)
	flag := byte(0)
	if a.fresh {
		flag = 1
	}
	b = append(b, flag)
	b = binary.AppendUvarint(b, uint64(len(a.basis)))
	for _, p := range a.basis {
		b = appendString(b, p)
	}
	return b
}

func (d *decoder) announce() (a announced) {
	a.index = d.index()
	var f front
	a.entry = f.entry(d)
	d.checkPath(a.entry.Path)
	a.fresh = d.byte() == 1
	for range d.length(maxBasis) {
		p := d.string(tree.MaxPath)
		d.checkPath(p)
		a.basis = append(a.basis, p)
	}
	return a
}

// wanted is one file of a pull, as the client asks for it.
type wanted struct {
	index uint32
	path  string // under the server's root
	size  int64  // as it was listed
	large bool   // send it by itself
	have  bool   // wait for what the client has of it
}

func (f *front) appendWanted(b []byte, w *wanted) []byte {
	b = binary.AppendUvarint(b, uint64(w.index))
	b = f.append(b, w.path)
	b = binary.AppendUvarint(b, uint64(w.size))
	flag := byte(0)
	if w.large {
		flag |= 1
	}
	if w.have {
		flag |= 2
	}
	return append(b, flag)
}

func (f *front) wanted(d *decoder) (w wanted) {
	w.index = d.index()
	w.path = f.path(d)
	w.size = d.size()
	flag := d.byte()
	w.large, w.have = flag&1 != 0, flag&2 != 0
	return w
}

// span is a range of the receiver's part.
type span struct{ off, len int64 }

func appendSpan(b []byte, s span) []byte {
	b = binary.AppendUvarint(b, uint64(s.off))
	return binary.AppendUvarint(b, uint64(s.len))
}

func (d *decoder) span() span { return span{off: d.size(), len: d.size()} }
