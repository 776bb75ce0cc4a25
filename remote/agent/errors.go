package agent

// Why there is no helper, in words that a person can act on.

import (
	"fmt"
	"strings"
)

// MissingError is returned where the helper cannot be had on an instance. Other
// ways of transfer work without it, more slowly.
type MissingError struct {
	Why   string    // a sentence without its full stop
	Tried []Attempt // folders, in order
	Err   error     // the cause, where there is one
}

// Attempt is one folder that the helper was not put into.
type Attempt struct {
	Dir string
	Why string
}

func (e *MissingError) Error() string {
	var b strings.Builder
	b.WriteString("rentop's helper does not run there: " + e.Why)
	for i, a := range e.Tried {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s %s", sep, a.Dir, a.Why)
	}
	return b.String()
}

func (e *MissingError) Unwrap() error { return e.Err }
