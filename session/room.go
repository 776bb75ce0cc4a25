package session

import (
	"context"
	"fmt"
	"path"
	"strings"

	"rentop/sync"
)

// This file asks, before files are sent, whether they fit.

// NoRoomError refuses to fill a disk.
type NoRoomError struct {
	Where      string
	Need, Free int64
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("%s has %s free and %s are needed; nothing was changed. Make room there, or bring fewer folders", e.Where, sync.Size(e.Free), sync.Size(e.Need))
}

// spareRoom is left free.
const spareRoom = 64 << 20

// room adds up what comes to each file system of an instance. Those with equal room are
// taken for one.
type room struct {
	t     sync.Transport
	asked map[string]int64 // free by folder; -1 where nobody can tell
	need  map[int64]int64  // by free
	where map[int64]string
}

func newRoom(t sync.Transport) *room {
	return &room{t, map[string]int64{}, map[int64]int64{}, map[int64]string{}}
}

// maxRooms is how many folders are asked about: each is a question to the instance.
const maxRooms = 32

// add counts files that come below root. A data disk is mounted at most two folders
// below it, such as ~/autodl-tmp.
func (r *room) add(ctx context.Context, root string, files []sync.Entry) {
	for _, f := range files {
		dir := path.Dir(f.Path)
		if parts := strings.SplitN(dir, "/", 3); len(parts) == 3 {
			dir = parts[0] + "/" + parts[1]
		}
		dir = path.Join(root, dir)
		free, known := r.asked[dir]
		if !known && len(r.asked) >= maxRooms {
			dir = root
			free, known = r.asked[dir]
		}
		if !known {
			var tells bool
			if free, tells = sync.Room(ctx, r.t, dir); !tells {
				free = -1
			}
			r.asked[dir] = free
		}
		r.need[free] += f.Size
		if old, ok := r.where[free]; !ok || len(dir) < len(old) {
			r.where[free] = dir
		}
	}
}

// lacks is a *NoRoomError where what was added does not fit.
func (r *room) lacks(name string) error {
	for free, n := range r.need {
		if free >= 0 && n > 0 && n+spareRoom > free {
			return &NoRoomError{name + ":" + r.where[free], n + spareRoom, free}
		}
	}
	return nil
}
