package command

// move: what was saved of an instance that is gone, and what is lost with it.

import (
	"fmt"
	"time"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

// printSaved says where files come from, and until when they are as they were.
func (a *app) printSaved(from string, p session.MovePlan) {
	fmt.Fprintf(a.Out, "%s cannot be reached: what was saved of it is taken, the newer of two versions\n", from)
	for _, s := range p.Sources {
		switch {
		case s.What == "snapshot":
			fmt.Fprintf(a.Out, "  its snapshot %s: %s, as of %s\n", remote.Clean(s.From), someFiles(s.Files), minuteOf(s.Newest))
		case s.What == "sync":
			fmt.Fprintf(a.Out, "  %s here, as it is now: %s that are not there\n", remote.Clean(s.From), someFiles(s.Files))
		default:
			fmt.Fprintf(a.Out, "  its artifacts in %s: %s, the newest of %s\n", remote.Clean(s.From), someFiles(s.Files), minuteOf(s.Newest))
		}
	}
	most := ""
	if p.Saved != nil { // what is in it is seen when it is unpacked
		most = "at most "
	}
	a.printLost(from, p, most)
}

// printLost says what is not there. What was never seen can only be told by time.
func (a *app) printLost(from string, p session.MovePlan, most string) {
	switch {
	case p.Seen == 0 && len(p.Sources) > 0:
		fmt.Fprintf(a.Out, "lost: what %s wrote after these times, and what was in none of these places; which files that is cannot be told\n", from)
	case len(p.Lost) == 0 && len(p.Older) == 0:
		fmt.Fprintf(a.Out, "lost: nothing of what the move found on %s; what was written there since cannot be told\n", from)
	default:
		if n := len(p.Lost); n > 0 {
			fmt.Fprintf(a.Out, "lost: %s%s that the move found on %s, %s\n", most, someFiles(n), from, sync.Size(p.LostBytes))
		}
		if n := len(p.Older); n > 0 {
			fmt.Fprintf(a.Out, "in an older version than %s had: %s%s\n", from, most, someFiles(n))
		}
		if most != "" {
			return
		}
		for i, path := range append(append([]string{}, p.Lost...), p.Older...) {
			if i == maxNamed {
				a.note("… and %d more; --json names all", len(p.Lost)+len(p.Older)-maxNamed)
				break
			}
			fmt.Fprintf(a.Out, "  %s\n", remote.Clean(path))
		}
	}
}

func minuteOf(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.Local().Format("2006-01-02 15:04")
}
