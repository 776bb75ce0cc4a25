// Package tree describes trees of files the same way on both ends of a
// transfer: what an entry is, in which order entries come, which names are
// refused and which rules leave something out. The helper on the instance links
// it, so it depends on nothing but the standard library.
package tree

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"strings"
	"time"
)

// Entry is one thing in a tree. Path is relative to the root, slash-separated,
// never absolute and never with "..": a transport that hears otherwise from an
// instance drops the entry and reports it.
type Entry struct {
	Path    string
	Size    int64
	Mode    fs.FileMode // type and permission bits
	ModTime time.Time   // as fine as the side can tell
	Target  string      // of a symlink
	SHA256  string      // hex; "" where not computed
	From    string      // path under the source's root where it is not Path (one file pushed under another name)
	// Link is the path of the first of a group of hard links in this tree, "" for that
	// first one and for files with one name. In an Action it means: that path has the
	// same content at the destination once the actions before are done, so link it
	// rather than send it, if size and time are the entry's there; else send it.
	Link string
}

// Source is the entry's path under the source's root.
func (e Entry) Source() string {
	if e.From != "" {
		return e.From
	}
	return e.Path
}

// Compare orders paths as a walk meets them that reads each folder sorted by
// name and goes into a folder right after naming it: a slash sorts before every
// other byte.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		switch {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}

// SameTime compares two file times: exactly, or by the second where one side
// keeps no more (SFTP, tar in the form that BusyBox reads).
func SameTime(a, b time.Time) bool {
	if a.Nanosecond() == 0 || b.Nanosecond() == 0 {
		return a.Unix() == b.Unix()
	}
	d := a.Sub(b)
	return -time.Microsecond < d && d < time.Microsecond
}

// Under says whether p is dir or lies below it; "" and "." are the root.
func Under(p, dir string) bool {
	if dir == "" || dir == "." || p == dir {
		return true
	}
	return strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// Token is a name that nobody can guess, for temporary files.
func Token() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
