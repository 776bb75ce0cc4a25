// Package sync plans and moves trees of files between this machine and an
// instance, and proves that they arrived.
//
// A [Plan] is made from two listings; a [Transport] carries it out. The engine
// knows what must move and why, the transport only how.
//
//	t, err := sync.Open(ctx, conn, facts)
//	r, err := sync.Transfer(ctx, t, sync.Spec{Direction: sync.Push, Local: ".", Remote: "~/project"}, nil, report)
//
// A file has under its final name the old content or the whole new one, and its
// SHA-256 was compared between the two sides before it got it (a pull by SFTP
// alone compares size and time; Verify reads again). Nothing is deleted unless
// asked for, nothing that ignore rules name is ever deleted, and no deletes
// follow a failure. Everything that no rule ignores is sent, .git too.
package sync

import (
	"context"
	"strconv"
	"time"

	"rentop/sync/tree"
)

// Entry is one thing in a tree.
type Entry = tree.Entry

// Direction of a transfer.
type Direction string

const (
	Push Direction = "push" // to the instance
	Pull Direction = "pull" // from it
)

// Action is what a plan does with one path.
type Action struct {
	Op    Op
	Entry Entry  // as the source has it; for Delete as the destination has it
	Why   string // "new", "size differs", "time differs", "content differs", "not in the source"
	// Basis of a Send are paths under the destination's root that may hold much of
	// the content, the likeliest first: a hint, they may be gone or other by now.
	Basis []string
	To    string // of a Move
}

// Op is one kind of Action.
type Op string

const (
	Send   Op = "send" // write the file, beside and renamed
	Mkdir  Op = "mkdir"
	Link   Op = "symlink"
	Attr   Op = "attr" // only mode or time
	Delete Op = "delete"
	// Move renames Entry.Path to To, both under the root, with all that is below it.
	// The folders of To are made as needed, with mode 0700. Where To is there already the
	// action fails and nothing is changed; where Entry.Path is not, nothing is done and
	// there is no error. Neither path is followed through a symlink out of the root. It
	// fills and empties the trash (trash.go), so To may be one of our own names.
	Move Op = "move"
	Skip Op = "skip" // cannot be done: Why says so; makes the transfer fail at its end
)

// Progress is the state of a running transfer, for a screen or a line.
type Progress struct {
	Stage      string // "scan", "plan", "send", "verify", "done"
	Files      int64  // done
	FilesAll   int64
	Bytes      int64 // of file contents done (resumed ones included)
	BytesAll   int64
	Growing    bool  // FilesAll and BytesAll are what was found so far
	Wire       int64 // bytes that crossed the connection
	Reused     int64 // of Bytes, what the destination had already and was not sent (delta, resumed)
	Current    string
	Started    time.Time
	Rate       float64       // content bytes a second, over the last seconds
	Left       time.Duration // <0: not known yet
	Transport  string        // "tar+zstd", "sftp", …
	WhySlower  string        // what is missing on the instance, "" where nothing is
	FailedSoon int           // failures so far
}

// Failure is one path that did not make it.
type Failure struct {
	Path string
	Err  error
}

// Result is what a transfer did.
type Result struct {
	Files     int64   // that were moved
	Sent      []Entry // the first 1000 of them, with SHA256 as it was computed while moving
	Deleted   []string
	Unchanged int64
	FailedAll int64
	Failed    []Failure // the first 10 000 of them
	Bytes     int64
	Kept      int64 // of large files that did not arrive whole: what the next run does not move again
	Wire      int64
	Reused    int64 // of Bytes, what the destination had already and was not sent
	Took      time.Duration
	Transport string
	Verified  bool // every path of the plan re-read on both sides and equal
}

// Transport moves files of one remote tree. It has no opinion about what should
// move. Every method may be called again after an error; Send and Fetch leave
// under a final name either the old file or the whole new one.
type Transport interface {
	// Name is what Progress.Transport shows; why says what a better one lacked.
	Name() (name, why string)
	// Resolve makes path absolute on the instance ("~" and relative ones from the
	// login's home) and says what is there, symlinks followed. Where nothing is,
	// abs is still set and the error is fs.ErrNotExist. Of a file behind a symlink
	// Target is the absolute path.
	Resolve(ctx context.Context, path string) (abs string, what Entry, err error)
	// List reports what is under root on the instance, root itself excluded, in
	// any order; a root that does not exist is fs.ErrNotExist. Where parts could
	// not be read, the rest is emitted and the error is a *ListError.
	List(ctx context.Context, root string, emit func(Entry) error) error
	// Stat is List for these paths only; those that do not exist are not emitted.
	Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error
	// Send writes files from the local folder src to root on the instance, whose
	// folders exist. done is called once a file, with its SHA-256 as the instance
	// confirmed it, or its error; never from two goroutines at once. The error is
	// for what ended the whole call; files not reported by then were not sent.
	Send(ctx context.Context, src, root string, files []Entry, p Meter, done func(Entry, error)) error
	// Fetch is Send the other way. dst is written through os.Root: no entry
	// leaves it, whatever the instance says.
	Fetch(ctx context.Context, root, dst string, files []Entry, p Meter, done func(Entry, error)) error
	// Hash reads files on the instance and reports each one's SHA-256.
	Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error
	// Apply makes folders, symlinks and attributes, and deletes, on the instance,
	// in the order given. Deletes never follow a symlink; a folder goes only empty.
	Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error
	Close() error
}

// Meter hears of bytes as they move; it must not block.
type Meter interface {
	Content(n int64) // file bytes
	Wire(n int64)
	Current(path string)
}

// ListError names what a listing could not read. The rest was emitted, so a
// plan from it must not delete.
type ListError struct{ Problems []Failure }

func (e *ListError) Error() string {
	if len(e.Problems) == 1 {
		return "listing is incomplete: " + e.Problems[0].Path + ": " + e.Problems[0].Err.Error()
	}
	return "listing is incomplete: " + strconv.Itoa(len(e.Problems)) + " folders or names could not be read"
}
