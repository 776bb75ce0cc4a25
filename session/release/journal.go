// The journal: what a release did and was about to do, written before and after
// each effect.

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
	"slices"
	"sync"
	"time"
)

// Entry is one line of the journal.
type Entry struct {
	Run  string          `json:"run"`
	Step string          `json:"step"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Journal keeps the entries of one instance in the order of Append. An Append
// that returned nil survives kill -9.
type Journal interface {
	Append(ctx context.Context, e Entry) error
	Load(ctx context.Context) ([]Entry, error)
}

// Steps of the journal.
const (
	stepStart    = "start"             // startData
	stepResume   = "resumed"           //
	stepCheck    = "check"             // checkData, before
	stepChecked  = "checked"           // checkData, after
	stepDecision = "decision"          // Decision
	stepSnap     = "snapshot"          // takenSnapshot, before
	stepSnapped  = "snapshot taken"    // takenSnapshot, after
	stepPull     = "pull"              // before
	stepPulled   = "pulled"            // pullData, after
	stepRecheck  = "recheck"           // before
	stepProven   = "recheck equal"     // after: what was shown still holds
	stepOver     = "started over"      // whyData
	stepTeardown = "teardown"          // teardownData, before the request
	stepAnswer   = "teardown answered" // teardownData, after it
	stepAsk      = "proof asked"       // before
	stepProof    = "proof"             // proofData, after
	stepStuck    = "stuck"             // whyData
	stepDone     = "done"              // the end
	stepCancel   = "cancelled"         // the end
	stepHanded   = "handed over"       // the end, plain SSH: the person releases it
)

type startData struct {
	Goal         Goal   `json:"goal"`
	Instance     string `json:"instance"`
	UID          string `json:"uid"`
	ProviderKind string `json:"provider_kind,omitempty"`
	ProviderID   string `json:"provider_id,omitempty"`
}

type checkData struct {
	ID      CheckID    `json:"id"`
	State   CheckState `json:"state,omitempty"`
	Summary string     `json:"summary,omitempty"`
}

type teardownData struct {
	Goal  Goal   `json:"goal"`
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

type proofData struct {
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

type whyData struct {
	Why string `json:"why"`
}

func ends(step string) bool {
	return step == stepDone || step == stepCancel || step == stepHanded
}

// MemoryJournal is a Journal that lasts as long as the process. Its zero value
// is empty.
type MemoryJournal struct {
	mu      sync.Mutex // guards entries
	entries []Entry
}

// Append implements Journal.
func (j *MemoryJournal) Append(_ context.Context, e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	return nil
}

// Load implements Journal.
func (j *MemoryJournal) Load(context.Context) ([]Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries), nil
}

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
