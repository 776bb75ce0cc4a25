package sync

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// This file takes old lines out of a record: seldom, since that reads it whole,
// and with some 40 bytes of memory a path, since there may be a million.

// tidyAbove is how many bytes a record may grow before it is worth a look.
const tidyAbove = 32 << 20

// tidied is the record's first line: how long the file was when it was last looked
// at. Rows have no such field, and it is no row.
type tidied struct {
	Tidied int64 `json:"tidied"`
}

const tidiedLine = 40 // bytes, so that the number can be written over

func (t tidied) line() []byte {
	b, _ := json.Marshal(t)
	return append(append(b, bytes.Repeat([]byte(" "), tidiedLine-1-len(b))...), '\n')
}

// Tidy removes old lines where the file has doubled since it was last looked at
// and half of it is old. It is for the end of a transfer.
func (r *Record) Tidy() error { return r.tidy(tidyAbove) }

func (r *Record) tidy(above int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.due(above) {
		return nil
	}
	return r.locked(func() error {
		if !r.due(above) { // another process was quicker
			return nil
		}
		newest, lines, err := r.newest()
		if err != nil {
			return err
		}
		return r.rewrite(newest, 2*len(newest) <= lines)
	})
}

// due says whether the file has grown enough.
func (r *Record) due(above int64) bool {
	f, err := os.Open(r.file)
	if err != nil {
		return false
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() <= above {
		return false
	}
	t, _ := readTidied(f)
	return fi.Size() >= 2*t.Tidied && fi.Size() >= t.Tidied+above
}

func readTidied(f *os.File) (t tidied, ok bool) {
	var b [tidiedLine]byte
	if n, _ := f.ReadAt(b[:], 0); n < len(b) || b[tidiedLine-1] != '\n' || !bytes.HasPrefix(b[:], []byte(`{"tidied":`)) {
		return t, false
	}
	return t, json.Unmarshal(b[:], &t) == nil
}

// rowID stands for a remote path.
type rowID [16]byte

func idOf(key []byte) rowID {
	sum := sha256.Sum256(key)
	return rowID(sum[:16])
}

// newest is the number of the last line of each path, and how many lines there are.
func (r *Record) newest() (last map[rowID]int32, lines int, err error) {
	last = map[rowID]int32{}
	err = r.lines(func(line []byte) error {
		if key, ok := rowKey(line); ok {
			last[idOf(key)] = int32(lines)
		}
		lines++
		return nil
	})
	return last, lines, err
}

// rewrite writes the newest lines into a new file; where too few are old it only
// notes that it looked.
func (r *Record) rewrite(newest map[rowID]int32, worth bool) error {
	if !worth {
		f, err := os.OpenFile(r.file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		fi, err := f.Stat()
		if _, has := readTidied(f); err == nil && has {
			_, err = f.WriteAt(tidied{fi.Size()}.line(), 0)
			return errors.Join(err, f.Close())
		}
		f.Close() // one that has no first line gets it below
	}
	f, err := os.CreateTemp(filepath.Dir(r.file), filepath.Base(r.file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	w := bufio.NewWriterSize(f, 1<<20)
	size, err := w.Write(tidied{}.line())
	n := int32(-1)
	if err == nil {
		err = r.lines(func(line []byte) error {
			n++
			if key, ok := rowKey(line); !ok || newest[idOf(key)] != n {
				return nil
			}
			size += len(line)
			_, err := w.Write(line)
			return err
		})
	}
	err = errors.Join(err, w.Flush())
	if err == nil {
		_, err = f.WriteAt(tidied{int64(size)}.line(), 0)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tidying %s: %w", r.file, err)
	}
	return os.Rename(f.Name(), r.file)
}
