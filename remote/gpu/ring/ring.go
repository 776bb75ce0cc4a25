// Package ring keeps samples on the instance's disk while nobody is connected: the
// last hour at one a second and the last day at one each ten, in less than 20 MB.
//
// Records have a fixed size and stand alone: each carries its number, a checksum,
// the wall clock, the time since boot and which boot that was. A process that is
// killed at any write loses at most the sample that it was writing. Time since
// boot, not the wall clock, orders and spaces what is read: a clock that was set,
// or a machine that was started again, leaves no false history.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"rentop/remote/gpu/sample"
)

const (
	recordSize = 1536
	headSize   = 50
	room       = recordSize - headSize
	magic      = 0x31475452 // "RTG1"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// Clock is what a record is stamped with.
type Clock struct {
	Now  func() time.Time
	Mono func() time.Duration // since boot, also while the machine slept
	Boot [16]byte             // which boot that was
}

// Options of a Ring. Its Clock must be set; the rest may be zero.
type Options struct {
	Clock  Clock
	Fine   int // samples of the fine ring, one a second; 0: 3600
	Coarse int // samples of the coarse one, one each ten seconds; 0: 8640
}

const (
	fineEvery   = time.Second
	coarseEvery = 10 * time.Second
)

func (o Options) filled() Options {
	if o.Fine <= 0 {
		o.Fine = 3600
	}
	if o.Coarse <= 0 {
		o.Coarse = 8640
	}
	return o
}

// Ring is open for writing. Its methods are for one goroutine.
type Ring struct {
	o            Options
	fine, coarse *file
	fineAt       time.Duration // of the last record, since boot
	coarseAt     time.Duration
	sum          means
}

// Open opens or makes the rings in the folder dir.
func Open(dir string, o Options) (*Ring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the history: %w", err)
	}
	r := &Ring{o: o.filled(), fineAt: -time.Hour, coarseAt: -time.Hour}
	var err error
	if r.fine, err = openFile(filepath.Join(dir, "fine.ring"), r.o.Fine); err != nil {
		return nil, err
	}
	if r.coarse, err = openFile(filepath.Join(dir, "coarse.ring"), r.o.Coarse); err != nil {
		r.fine.f.Close()
		return nil, err
	}
	return r, nil
}

// Add keeps a sample: the fine ring takes at most one a second, the coarse one the
// means of ten.
func (r *Ring) Add(s sample.Sample) error {
	now := r.o.Clock.Mono()
	const slack = fineEvery / 10 // ticks jitter
	if now-r.fineAt >= fineEvery-slack {
		r.fineAt = now
		if err := r.fine.write(r.o.Clock, s); err != nil {
			return err
		}
	}
	r.sum.add(&s)
	if now-r.coarseAt >= coarseEvery-slack {
		r.coarseAt = now
		mean := r.sum.take(s)
		return r.coarse.write(r.o.Clock, mean)
	}
	return nil
}

// Close closes the files.
func (r *Ring) Close() error { return errors.Join(r.fine.f.Close(), r.coarse.f.Close()) }

// file is one ring on disk: slot n mod slots holds record n.
type file struct {
	f     *os.File
	slots uint64
	next  uint64
}

func openFile(path string, slots int) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is being written by another process: %w", path, err)
	}
	r := &file{f: f, slots: uint64(slots), next: 1}
	all, err := readAll(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	for _, x := range all {
		r.next = max(r.next, x.number+1)
	}
	return r, nil
}

// write puts a record into its slot with one call.
func (r *file) write(c Clock, s sample.Sample) error {
	b := make([]byte, recordSize)
	binary.LittleEndian.PutUint32(b, magic)
	binary.LittleEndian.PutUint64(b[8:], r.next)
	binary.LittleEndian.PutUint64(b[16:], uint64(c.Now().UnixMilli()))
	binary.LittleEndian.PutUint64(b[24:], uint64(c.Mono()))
	copy(b[32:48], c.Boot[:])
	body := fit(s, room)
	binary.LittleEndian.PutUint16(b[48:], uint16(len(body)))
	copy(b[headSize:], body)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], table))
	if _, err := r.f.WriteAt(b, int64(r.next%r.slots)*recordSize); err != nil {
		return fmt.Errorf("writing the history %s: %w", r.f.Name(), err)
	}
	r.next++
	return nil
}

// record is one that was read whole.
type record struct {
	number uint64
	wall   time.Time
	mono   time.Duration
	boot   [16]byte
	body   []byte
}

const maxFile = 64 << 20

// readAll reads every whole record; what was cut or is being overwritten is left out.
func readAll(f io.ReaderAt, name string) ([]record, error) {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, maxFile))
	if err != nil {
		return nil, fmt.Errorf("reading the history %s: %w", name, err)
	}
	var out []record
	for ; len(raw) >= recordSize; raw = raw[recordSize:] {
		if x, ok := parse(raw[:recordSize]); ok {
			out = append(out, x)
		}
	}
	return out, nil
}

func parse(b []byte) (record, bool) {
	n := int(binary.LittleEndian.Uint16(b[48:]))
	if binary.LittleEndian.Uint32(b) != magic || n > room || binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:], table) {
		return record{}, false
	}
	x := record{number: binary.LittleEndian.Uint64(b[8:]), wall: time.UnixMilli(int64(binary.LittleEndian.Uint64(b[16:]))).UTC(),
		mono: time.Duration(binary.LittleEndian.Uint64(b[24:])), body: b[headSize : headSize+n]}
	copy(x.boot[:], b[32:48])
	return x, true
}
