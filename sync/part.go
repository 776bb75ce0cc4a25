package sync

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
	stdsync "sync"

	"rentop/sync/tree"
)

// This file is about large files on their way: the name of the part beside the
// destination, and the journal of how much of it is known to be written. A
// part's length says nothing: writes in flight when a connection is cut leave
// holes (pkg/sftp#472), so the journal counts only bytes without a gap that were
// acknowledged.

// largeFile is from where on a file travels by itself and can be resumed.
const largeFile = 4 << 20

const journalSuffix = ".at"

// partName is where e waits until it is whole: the name holds what makes this
// version of the source, so that no other version goes on with it.
func partName(e Entry) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", e.Path, e.Size, e.ModTime.UnixNano()))
	dir, name := path.Split(e.Path)
	if len(name) > 180 {
		name = strings.ToValidUTF8(name[:180], "")
	}
	return dir + "." + name + tree.PartInfix + hex.EncodeToString(h[:8])
}

// journalText is a journal's whole content: fixed in width, so that it is
// overwritten in place.
func journalText(at int64) string { return fmt.Sprintf("%020d\n", at) }

// parseJournal returns 0 for anything that is not a whole journal.
func parseJournal(b string, size int64) int64 {
	if len(b) != 21 || b[20] != '\n' {
		return 0
	}
	at, err := strconv.ParseInt(b[:20], 10, 64)
	if err != nil || at < 0 || at > size {
		return 0
	}
	return at
}

// acked finds the end of what was acknowledged without a gap, from pieces that
// finish in any order.
type acked struct {
	mu   stdsync.Mutex
	at   int64
	done map[int64]int64 // start to end of pieces beyond at
}

// add returns the new end, and whether it moved.
func (a *acked) add(start, end int64) (int64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done == nil {
		a.done = map[int64]int64{}
	}
	a.done[start] = end
	before := a.at
	for {
		e, ok := a.done[a.at]
		if !ok {
			return a.at, a.at != before
		}
		delete(a.done, a.at)
		a.at = e
	}
}
