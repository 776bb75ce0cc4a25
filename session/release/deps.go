// What a release needs from the rest of the program, as plain values and
// functions, and what a person can tell it.

package release

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

// Artifact is a path on the instance that must exist elsewhere.
type Artifact struct {
	Path string // a file, a folder or a pattern with * and **; "~" is the login's home there
	To   string // a local folder (a file for a file), relative to Deps.Base; or what Deps.Place knows
	Keep int    // of its checkpoints, the newest so many; 0: all
}

// KnownFile is a file that an earlier push left on the instance. It is believed
// only after both sides were hashed again.
type KnownFile struct {
	Remote string // absolute, or beginning with "~/"
	Local  string
	Size   int64
	SHA256 string
	// ModTime is the file's own there when it was equal; only CountUnsaved reads it.
	ModTime time.Time
}

// Clock is time as a release sees it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error // ctx's error where it ends first
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Sleep(ctx context.Context, d time.Duration) error { return remote.Sleep(ctx, d) }

// Timing says how long the provider is asked for proof. Zero values are the
// defaults in brackets.
type Timing struct {
	Prove   time.Duration // until Stuck after an accepted teardown [10m]
	Refused time.Duration // until Stuck after a refused one [30s]
	Grace   time.Duration // after a crash, until "still running" is believed [30s]
	Call    time.Duration // one call to the provider [2m]
	Stay    time.Duration // between questions while Stuck, with Deps.Stay [1m]
}

// Deps is everything that a release touches.
type Deps struct {
	Instance  string        // its name: what is typed
	UID       string        // survives a rename
	Runner    remote.Runner // nil: the instance cannot be reached
	Jobs      func(ctx context.Context) ([]tmux.Job, error)
	Artifacts []Artifact
	Base      string    // where relative destinations begin
	Since     time.Time // instance's clock: the earlier of first contact and the box's start
	Roots     []string  // where to look for unsaved files; empty: every writable local file system
	Pushed    func(ctx context.Context) ([]KnownFile, error)

	// Place opens a destination that is no folder here; nil: there is none.
	Place func(to string) (Place, error)
	// Newest leaves of files what belongs to no checkpoint, and the newest so many.
	Newest func(files []Found, keep int) []Found

	// OpenTransport serves the decision to pull; nil: nothing can be pulled from
	// here.
	OpenTransport func(ctx context.Context) (treesync.Transport, error)
	PullDir       string // unsaved files are pulled to PullDir/<absolute path>
	EnvDir        string // the captured environment's folder
	SnapshotDir   string // portable snapshots' folder

	// Provider nil is plain SSH: everything is checked, and the end is a
	// request to release it in the provider's console. ProviderID is pinned in
	// the journal: a release never acts on another id than it began with.
	Provider   provider.Provider
	ProviderID string
	GoesOn     func(ctx context.Context, after Goal) ([]GoesOn, error)
	Traffic    func(bytes int64) string                // what bringing so much away costs; nil: not known
	Cost       func(ctx context.Context) string        // the review's line
	Review     func(ctx context.Context) []phrase.Text // what else is to be learnt from this rental; nil: nothing

	Journal Journal    // of this instance only
	Clock   Clock      // nil: the wall clock
	Changed func(View) // called from Run's goroutine; must not block
	Timing  Timing
	Stay    bool // go on asking the provider while Stuck (a screen); else Run returns ErrStuck
}

func (d Deps) filled() Deps {
	def := func(t *time.Duration, v time.Duration) {
		if *t == 0 {
			*t = v
		}
	}
	def(&d.Timing.Prove, 10*time.Minute)
	def(&d.Timing.Refused, 30*time.Second)
	def(&d.Timing.Grace, 30*time.Second)
	def(&d.Timing.Call, 2*time.Minute)
	def(&d.Timing.Stay, time.Minute)
	if d.Clock == nil {
		d.Clock = wallClock{}
	}
	if d.Changed == nil {
		d.Changed = func(View) {}
	}
	if d.Cost == nil {
		d.Cost = func(context.Context) string { return "?" }
	}
	return d
}

func (d Deps) kind() string {
	if d.Provider == nil {
		return ""
	}
	return d.Provider.Kind()
}

func (d Deps) check(goal Goal) error {
	if d.Instance == "" {
		return fmt.Errorf("release: no instance is named")
	}
	if goal == CheckOnly {
		return nil
	}
	if goal != Stop && goal != Destroy {
		return fmt.Errorf("release %s: %q is neither stop nor destroy", d.Instance, goal)
	}
	if d.Journal == nil {
		return fmt.Errorf("release %s: there is no journal, and without one a crash would lose where it stood", d.Instance)
	}
	if d.Provider == nil {
		return nil
	}
	if d.ProviderID == "" {
		return fmt.Errorf("release %s: its id at %s is not known; set id = \"…\" in the config", d.Instance, d.kind())
	}
	can := d.Provider.Can()
	if goal == Stop && !can.Stop {
		return fmt.Errorf("release %s: %s cannot stop an instance, only destroy it; use --destroy", d.Instance, d.kind())
	}
	if goal == Destroy && !can.Destroy {
		return fmt.Errorf("release %s: %s cannot destroy an instance from here; use --stop, or its console", d.Instance, d.kind())
	}
	return nil
}

// SnapshotKind is a way to keep what is on the instance.
type SnapshotKind string

const (
	ProviderSnapshot SnapshotKind = "provider" // an image or disk snapshot, kept and billed there
	PortableSnapshot SnapshotKind = "portable" // an archive of chosen paths and the environment, pulled here
	NoSnapshot       SnapshotKind = "none"     // declined
)

// DecisionKind is what a person told a release.
type DecisionKind string

const (
	DecideName     DecisionKind = "name"     // tear down; waives the failing lines as shown
	DecideSnapshot DecisionKind = "snapshot" // take one, or decline
	DecidePull     DecisionKind = "pull"     // pull the unsaved files and the artifacts that differ
	DecideAgain    DecisionKind = "again"    // check everything anew
	DecideCancel   DecisionKind = "cancel"
)

// Decision is one word of the person. Cancel works until the teardown was
// requested; the others are heard in the phases Waiting and Stuck.
type Decision struct {
	Kind     DecisionKind
	Name     string       // DecideName: exactly the instance's name
	Shown    string       // DecideName: View.Shown of the picture that was looked at
	Snapshot SnapshotKind // DecideSnapshot
	Paths    []string     // DecideSnapshot, portable: what to keep; empty: all that is unsaved
}

func newRunID() string { return rand.Text()[:12] }
