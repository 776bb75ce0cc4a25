package far

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// This file is how errors cross the link: a class that code can ask for and a
// text for people.

// Class is what kind of thing went wrong.
type Class byte

const (
	Other    Class = 1 + iota
	NotExist       // nothing is there
	Denied         // permission
	Full           // disk or quota
	Changed        // the source changed while it was read
	Differs        // the two sides computed different SHA-256
	IsFolder       // a folder is in the place of a file
	Stopped        // the call was given up
	lastClass
)

// Error is an error of the other side or of this one that concerns one path or
// one call. Text is of the side where it happened: clean it before showing.
type Error struct {
	Class Class
	Text  string
	Here  bool // it happened on this side
}

func (e *Error) Error() string { return e.Text }

// Is makes errors.Is work with fs.ErrNotExist, fs.ErrPermission and
// context.Canceled.
func (e *Error) Is(target error) bool {
	switch e.Class {
	case NotExist:
		return target == fs.ErrNotExist
	case Denied:
		return target == fs.ErrPermission
	case Stopped:
		return target == context.Canceled
	}
	return false
}

// ProtocolError is the end of a link whose other side broke a rule.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string {
	return "the sync helper broke its protocol: " + e.What
}

func broken(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// errEarly is the end of a call that has not done what it was asked for.
var errEarly = broken("a transfer ends before it is done")

// maxErrorText bounds a text on the wire.
const maxErrorText = 1 << 10

var (
	errChanged = &Error{Class: Changed, Text: "changed while it was being read", Here: true}
	errGrown   = &Error{Class: Changed, Text: "is much larger by now than it was when listed", Here: true}
	errDiffers = &Error{Class: Differs, Text: "arrived with another SHA-256 than it was sent with", Here: true}
	errFolder  = &Error{Class: IsFolder, Text: "a folder is in its place", Here: true}
)

// classify makes an Error of this side of any error, without the path, which is
// shown beside it.
func classify(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	text := err.Error()
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		text = pe.Err.Error()
	case errors.As(err, &le):
		text = le.Err.Error()
	}
	c := Other
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c = NotExist
	case errors.Is(err, fs.ErrPermission):
		c = Denied
	case errors.Is(err, syscall.ENOSPC), isQuota(err):
		c = Full
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		c = Stopped
	}
	return &Error{Class: c, Text: text, Here: true}
}

// appendError writes err, nil as a zero byte.
func appendError(b []byte, err error) []byte {
	if err == nil {
		return append(b, 0)
	}
	e := classify(err)
	text := e.Text
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	b = append(b, byte(e.Class))
	return appendString(b, text)
}

// error reads what appendError wrote.
func (d *decoder) error() error {
	c := Class(d.byte())
	if c == 0 {
		return nil
	}
	if c >= lastClass {
		c = Other
	}
	return &Error{Class: c, Text: d.string(maxErrorText)}
}
