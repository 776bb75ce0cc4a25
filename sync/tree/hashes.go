package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// This file remembers the SHA-256 of files here by what the system says of them,
// so that an unchanged one need not be read again. A program that sets times back
// is seen by the change time, which none can set. It is for deciding what to look
// at, never for a proof that something exists.

const (
	hashesMagic = "rentop hashes 1\n"
	hashRow     = 16 + 4*8 + 32
	maxHashes   = 500_000 // rows: 40 MB
	// racy is how young a change may be when a file is read: a later one within the
	// file system's tick would look the same (git's "racily clean").
	racy = 2 * time.Second
)

// Hashes is such a memory. It is safe for concurrent use; nil remembers nothing.
type Hashes struct {
	file string
	now  func() time.Time

	mu    sync.Mutex          // protects what follows
	rows  map[[16]byte]hashed // nil: the file was not read yet
	dirty bool
}

type hashed struct {
	size           int64
	mtime, changed int64 // ns
	ino            uint64
	sum            [32]byte
}

// NewHashes is the memory in file, which is read when it is first asked: most
// transfers never do. One that is not there, torn or strange holds nothing. now may
// be nil.
func NewHashes(file string, now func() time.Time) *Hashes {
	if now == nil {
		now = time.Now
	}
	return &Hashes{file: file, now: now}
}

// open reads the file once; mu is held.
func (h *Hashes) open() {
	if h.rows != nil {
		return
	}
	h.rows = map[[16]byte]hashed{}
	if fi, err := os.Stat(h.file); err != nil || fi.Size() > maxHashes*hashRow+1024 {
		return
	}
	if b, err := os.ReadFile(h.file); err == nil {
		h.load(b)
	}
}

// load reads magic, rows and the sum of both.
func (h *Hashes) load(b []byte) {
	n := len(b) - len(hashesMagic) - sha256.Size
	if n < 0 || n%hashRow != 0 || !bytes.HasPrefix(b, []byte(hashesMagic)) {
		return
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return
	}
	for row := body[len(hashesMagic):]; len(row) > 0; row = row[hashRow:] {
		number := func(at int) uint64 { return binary.LittleEndian.Uint64(row[16+8*at:]) }
		x := hashed{size: int64(number(0)), mtime: int64(number(1)), changed: int64(number(2)), ino: number(3)}
		copy(x.sum[:], row[48:])
		h.rows[[16]byte(row)] = x
	}
}

func hashKey(name string) [16]byte {
	s := sha256.Sum256([]byte(name))
	return [16]byte(s[:])
}

// Lookup returns the sum of the file name, whose state is fi.
func (h *Hashes) Lookup(name string, fi fs.FileInfo) (sum string, ok bool) {
	if h == nil {
		return "", false
	}
	want, known := stateOf(fi)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open()
	x, found := h.rows[hashKey(name)]
	if !known || !found {
		return "", false
	}
	if want.sum = x.sum; want != x {
		return "", false
	}
	return hex.EncodeToString(x.sum[:]), true
}

// Put remembers that name had sum when its state was fi, before and after it was
// read.
func (h *Hashes) Put(name string, fi fs.FileInfo, sum string) {
	if h == nil {
		return
	}
	x, known := stateOf(fi)
	raw, err := hex.DecodeString(sum)
	if !known || err != nil || len(raw) != len(x.sum) {
		return
	}
	young := h.now().Add(-racy).UnixNano()
	if x.mtime > young || x.changed > young {
		return
	}
	copy(x.sum[:], raw)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open()
	if len(h.rows) >= maxHashes {
		for k := range h.rows { // any: what is gone is read again
			delete(h.rows, k)
			break
		}
	}
	h.rows[hashKey(name)] = x
	h.dirty = true
}

func stateOf(fi fs.FileInfo) (hashed, bool) {
	id, ok := identify(fi)
	if !ok || !fi.Mode().IsRegular() {
		return hashed{}, false
	}
	return hashed{size: fi.Size(), mtime: fi.ModTime().UnixNano(), changed: id.changed.UnixNano(), ino: id.ino}, true
}

// Save writes the memory, whole or not at all.
func (h *Hashes) Save() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		return nil
	}
	b := make([]byte, 0, len(hashesMagic)+len(h.rows)*hashRow+sha256.Size)
	b = append(b, hashesMagic...)
	for k, x := range h.rows {
		b = append(b, k[:]...)
		for _, n := range []uint64{uint64(x.size), uint64(x.mtime), uint64(x.changed), x.ino} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		b = append(b, x.sum[:]...)
	}
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(h.file), filepath.Base(h.file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	h.dirty = false
	return os.Rename(f.Name(), h.file)
}
