// The journal: what a release did and was about to do, written before and after
// each effect.

package release

import (
	"context"
	"encoding/json"
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
