// A Journal of JSON lines, to see a release survive in a file as it does in the
// ledger.

package release

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FileJournal is a Journal of JSON lines in one file. A last line that a crash
// cut short is ignored.
type FileJournal struct{ Path string }

// Append implements Journal.
func (j FileJournal) Append(_ context.Context, e Entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(j.Path), 0o700); err != nil {
		return fmt.Errorf("write the release journal: %w", err)
	}
	f, err := os.OpenFile(j.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the release journal: %w", err)
	}
	defer f.Close()
	// A cut line must not swallow the next one.
	if n, err := f.Seek(0, io.SeekEnd); err == nil && n > 0 {
		last := []byte{0}
		if _, err := f.ReadAt(last, n-1); err == nil && last[0] != '\n' {
			b = append([]byte{'\n'}, b...)
		}
	}
	if _, err := f.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write the release journal: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write the release journal: %w", err)
	}
	return nil
}

// Load implements Journal.
func (j FileJournal) Load(context.Context) ([]Entry, error) {
	b, err := os.ReadFile(j.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the release journal: %w", err)
	}
	var out []Entry
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e Entry
		if json.Unmarshal(sc.Bytes(), &e) == nil && e.Run != "" {
			out = append(out, e)
		}
	}
	return out, sc.Err()
}
