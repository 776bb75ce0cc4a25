package sync

import (
	"context"
	"errors"
	"io"
	"time"

	"rentop/sync/tree"
)

// This file is the way in: what a person asks for, and the two ways to do it.
// Either all is planned first and then done, or both sides are walked and compared
// while the first files are on their way (stream.go).

// Spec is what a person asked for. The contents of a folder go into the
// destination folder; a file goes to the file at the destination, or into it
// where that is a folder or ends in a slash.
type Spec struct {
	Direction Direction
	Local     string // path on this machine
	Remote    string // path on the instance; "~" and relative ones start at the login's home
	Delete    bool   // remove at the destination what the source does not have
	Force     bool   // delete also where that is refused
	NoTrash   bool   // what Delete removes is gone at once: Undo has nothing to restore
	Checksum  bool   // decide by SHA-256, not by size and time
	Verify    bool   // read all again on both sides afterwards
	DryRun    bool   // plan only
	// NoIgnore sends what ignore files leave out. A push honours .gitignore and
	// .rentopignore; a pull only .rentopignore, since results and checkpoints
	// lie where .gitignore points, and losing one is worse than fetching one too
	// many. GitIgnore honours both there.
	NoIgnore  bool
	GitIgnore bool
	// Include and Exclude are patterns with gitignore's syntax, from the source's
	// root. They win over the files, also with NoIgnore, and Include over Exclude;
	// an Include that names a path reaches into folders that are left out.
	Include, Exclude []string
	Manifest         io.Writer // with Verify: lines for sha256sum -c, from the destination's root
	Record           *Record   // learns what is on both sides; may be nil
	// Hashes may save reading a file here, whose state in the file system is as when it
	// was last read, where its time and the instance's copy's differ in a way that no edit
	// explains. Checksum and Verify, which are to distrust, read all and only add to it.
	// nil reads all.
	Hashes *tree.Hashes
	Now    func() time.Time // nil: time.Now
}

func (s *Spec) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// ErrUsage is for a Spec that cannot be meant: a file onto a folder's children,
// a source that is not there.
var ErrUsage = errors.New("cannot be transferred")

// Run is Transfer without anybody who looks at the plan.
func Run(ctx context.Context, t Transport, s Spec, report func(Progress)) (*Result, error) {
	return Transfer(ctx, t, s, nil, report)
}

// Transfer does what s asks for. confirm sees the whole plan before anything is
// changed, and its error ends the transfer; where it is nil and nothing is to be
// deleted, a transport that streams starts sending before the plan is whole. With
// DryRun it only plans, and the result says what is unchanged. report may be nil;
// it is called at most ten times a second, and once more at the end. What fails for
// one path is listed in the result and the rest goes on; the error is for what ended
// the whole, with the result so far.
func Transfer(ctx context.Context, t Transport, s Spec, confirm func(*Plan) error, report func(Progress)) (*Result, error) {
	if st, can := optional[Streamer](t); can && confirm == nil && !s.Delete && !s.DryRun {
		return stream(ctx, t, st, s, report)
	}
	p, err := MakePlan(ctx, t, s, report)
	if err != nil {
		return nil, err
	}
	if confirm != nil {
		if err := confirm(p); err != nil {
			return nil, err
		}
	}
	if s.DryRun {
		name, _ := t.Name()
		return &Result{Unchanged: p.Unchanged, Transport: name, Took: p.took}, nil
	}
	return Execute(ctx, t, p, report)
}

// optional is t, or what it wraps, as an I that not every transport is.
func optional[I any](t Transport) (i I, is bool) {
	for t != nil {
		if i, is = t.(I); is {
			return i, true
		}
		w, wraps := t.(interface{ Unwrap() Transport })
		if !wraps {
			break
		}
		t = w.Unwrap()
	}
	return i, false
}

// MakePlan walks both sides and compares them. It changes nothing.
func MakePlan(ctx context.Context, t Transport, s Spec, report func(Progress)) (*Plan, error) {
	return (&job{t: t, s: s}).makePlan(ctx, report)
}
