package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// ErrDamaged is in the error where the file is no ledger or is damaged.
var ErrDamaged = errors.New("the file is damaged")

// failed turns what went wrong into a sentence that names the file and what to
// do. An error that is one already passes unchanged.
func (l *Ledger) failed(doing string, err error) error {
	var done *failure
	if err == nil {
		return nil
	}
	if errors.As(err, &done) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	cure := ""
	var e *sqlite.Error
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		cure = "rentop must be able to write it: change its permissions, or set RENTOP_STATE_DIR to a folder of yours"
	case errors.Is(err, syscall.ENOSPC):
		cure = "the disk is full, nothing was recorded: free some space in " + filepath.Dir(l.path)
	case errors.As(err, &e):
		switch e.Code() & 0xff {
		case lib.SQLITE_FULL:
			cure = "the disk is full, nothing was recorded: free some space in " + filepath.Dir(l.path)
		case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
			return l.damaged(err)
		case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
			cure = "rentop must be able to write it and its folder: change their permissions, or set RENTOP_STATE_DIR to a folder of yours"
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
			cure = "another program holds it for more than 10 s: end that program and try again"
		case lib.SQLITE_IOERR:
			cure = "nothing was recorded: the disk may be full or failing, check " + filepath.Dir(l.path)
		}
	}
	return &failure{doing: doing, path: l.path, cure: cure, err: err}
}

func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_BUSY
}

// damaged says what to do about a file that cannot be believed.
func (l *Ledger) damaged(err error) error {
	return &failure{doing: "reading", path: l.path, err: fmt.Errorf("%w: %w", ErrDamaged, err),
		cure: "rentop changes nothing in it: move it away together with its -wal and -shm files and restore a copy, or start anew without it"}
}

type failure struct {
	doing, path, cure string
	err               error
}

func (f *failure) Error() string {
	s := fmt.Sprintf("%s the ledger %s: %v", f.doing, f.path, f.err)
	if f.cure != "" {
		s += " (" + f.cure + ")"
	}
	return s
}

func (f *failure) Unwrap() error { return f.err }
