package sync

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	stdsync "sync"
	"time"
	"unicode/utf8"
)

// This file remembers what is known to exist on both sides. Release leaves out
// pushed files by it, after looking at them again: it is a hint where to look,
// never the proof.

// Recorded is one file that was on both sides, equal, at At.
type Recorded struct {
	Remote  string    `json:"remote"` // absolute, on the instance
	Local   string    `json:"local"`  // absolute, on this machine
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	SHA256  string    `json:"sha256"`
	At      time.Time `json:"at"`
}

// Record is a file of JSON lines, the last line of a remote path counts. Several
// processes may add to it at once: lines are appended by one write each time, and
// Tidy takes a lock file that adding respects. It is safe for concurrent use.
type Record struct {
	file string
	mu   stdsync.Mutex // orders this process's reads and writes
}

const (
	maxRecordLine = 64 << 10
	lockStale     = 30 * time.Second
)

// OpenRecord uses the record in file and makes its folder; the file comes with
// the first Add.
func OpenRecord(file string) (*Record, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return &Record{file: file}, nil
}

// Add appends rows.
func (r *Record) Add(rows []Recorded) error {
	var b []byte
	for _, row := range rows {
		if !utf8.ValidString(row.Remote + row.Local) {
			continue // JSON cannot hold it; not known is the safe side
		}
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if len(line) < maxRecordLine {
			b = append(append(b, line...), '\n')
		}
	}
	if len(b) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locked(func() error {
		f, err := os.OpenFile(r.file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if torn(f) {
			b = append([]byte("\n"), b...) // a killed writer's half line ends here
		}
		_, err = f.Write(b) // not synced: a hint that a power cut takes is only looked for again
		return errors.Join(err, f.Close())
	})
}

// torn says whether the file's last line lacks its end.
func torn(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return false
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], fi.Size()-1)
	return err == nil && last[0] != '\n'
}

// Lookup returns what is recorded of a remote path.
func (r *Record) Lookup(remotePath string) (row Recorded, ok bool, err error) {
	want, err := json.Marshal(remotePath)
	if err != nil {
		return Recorded{}, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.lines(func(line []byte) error {
		if key, found := rowKey(line); found && bytes.Equal(key, want) {
			var x Recorded
			if json.Unmarshal(line, &x) == nil {
				row, ok = x, true
			}
		}
		return nil
	})
	return row, ok, err
}

// All returns the newest row of each remote path, sorted by it.
func (r *Record) All() ([]Recorded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]Recorded{}
	err := r.lines(func(line []byte) error {
		var row Recorded
		if json.Unmarshal(line, &row) == nil && row.Remote != "" {
			all[row.Remote] = row
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Recorded, 0, len(all))
	for _, row := range all {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b Recorded) int { return strings.Compare(a.Remote, b.Remote) })
	return out, nil
}

// lines gives each line of the file, which is valid until do returns; those that
// are longer than any of ours are left out.
func (r *Record) lines(do func(line []byte) error) error {
	f, err := os.Open(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	br := bufio.NewReaderSize(f, maxRecordLine)
	for {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = br.ReadSlice('\n')
			}
			line = nil
		}
		if len(line) > 0 {
			if derr := do(line); derr != nil {
				return derr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", r.file, err)
		}
	}
}

// rowKey is the remote path of a line as JSON has it; false of what is torn or
// strange.
func rowKey(line []byte) ([]byte, bool) {
	const head = `{"remote":`
	rest, ours := bytes.CutPrefix(line, []byte(head))
	if ours && len(rest) > 1 && rest[0] == '"' {
		end := bytes.IndexByte(rest[1:], '"')
		// a quote within a name is escaped, so that this is found only where the line is whole
		if whole := bytes.Contains(line, []byte(`,"at":"`)) && bytes.HasSuffix(line, []byte("\"}\n")); whole && end > 0 && bytes.IndexByte(rest[1:1+end], '\\') < 0 {
			return rest[:end+2], true
		}
	}
	var row Recorded
	if json.Unmarshal(line, &row) != nil || row.Remote == "" {
		return nil, false
	}
	key, err := json.Marshal(row.Remote)
	return key, err == nil
}

// locked runs fn while no other process writes. A lock whose owner died is
// taken over after a while.
func (r *Record) locked(fn func() error) error {
	lock := r.file + ".lock"
	began := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close()
			break
		}
		// Windows says "permission" of a lock that is just being removed.
		if waits := errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) && runtime.GOOS == "windows"; !waits || time.Since(began) > 2*lockStale {
			return fmt.Errorf("the record of what was moved cannot be locked: %w; rentop must be able to write its folder", err)
		}
		if fi, serr := os.Stat(lock); serr == nil && time.Since(fi.ModTime()) > lockStale {
			os.Remove(lock)
		}
		time.Sleep(wait)
	}
	defer os.Remove(lock)
	return fn()
}
