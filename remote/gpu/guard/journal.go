package guard

// The journal: what a guard did, a line each. A line is on the disk before what it
// announces begins.

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"rentop/remote/clean"
)

// Entry is one line of the journal.
type Entry struct {
	At      time.Time `json:"at"` // by the instance's clock
	ID      string    `json:"id"` // of the spec
	What    string    `json:"what"`
	Rule    Kind      `json:"rule,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Error   string    `json:"error,omitempty"`
	Out     string    `json:"out,omitempty"` // the end of what a script printed
}

// What an Entry tells.
const (
	toldArmed   = "armed"
	toldRefused = "refused"
	toldAgain   = "started again"
	toldTrip    = "tripped"
	toldSave    = "save begins"
	toldSaved   = "save ended"
	toldAct     = "action begins"
	toldActed   = "action ended"
	toldAlive   = "still alive after the action"
	toldUnsure  = "killed during the action"
	toldOff     = "disarmed"
)

const (
	maxJournal = 1 << 20
	maxOut     = 2000
)

// tell appends an entry to the journal at name and syncs it. One that has grown
// large begins anew; the one before is kept.
func tell(name string, e Entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if fi, err := os.Stat(name); err == nil && fi.Size() > maxJournal {
		if err := os.Rename(name, name+".old"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// parseEntry reads a line that an instance sent.
func parseEntry(line []byte) (Entry, bool) {
	var e Entry
	if json.Unmarshal(line, &e) != nil {
		return e, false
	}
	e.At = sane(e.At)
	e.ID, e.What, e.Rule = clean.Short(e.ID, 40), clean.Short(e.What, 60), Kind(clean.Short(string(e.Rule), 20))
	e.Error, e.Out = clean.Short(e.Error, maxArg), clean.Short(e.Out, maxOut)
	return e, true
}
