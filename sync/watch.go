package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"rentop/sync/tree"
)

// This file hears what changes in a folder on this machine. What it says is only
// where to look: events come late, twice, or for what is gone by now, so whoever
// gets them compares anew.

const (
	settleFor  = 200 * time.Millisecond // quiet after the last event: an editor's save is several
	settleMost = 2 * time.Second        // but a folder that is never quiet is looked at too
	pollEvery  = 2 * time.Second        // where the system gives no events; and
	pollShare  = 10                     // so many times as long as a reading takes
)

// Changes is where a folder has changed since the last look. Paths are relative
// to it, slash-separated.
type Changes struct {
	Paths []string // looked at by themselves, whether they are there or not
	Trees []string // folders that came: all below is new
	All   bool     // events were lost, or there are none: look everywhere
}

// Watcher hears of changes below a folder. Its methods are for one goroutine.
type Watcher struct {
	root    string
	ignored func(p string, dir bool) bool
	fs      *fsnotify.Watcher
	ended   stdsync.WaitGroup
	stir    chan struct{}
	polled  time.Time     // when Next last said that all is to be read
	rest    time.Duration // between two such readings

	mu      stdsync.Mutex // protects what follows
	dirs    map[string]bool
	paths   map[string]bool
	trees   map[string]bool
	all     bool
	first   time.Time // event since the last look; zero: none
	last    time.Time
	polling string // why there are no events; "" where there are
}

// Watch begins to hear of changes below root. Folders for which ignored says yes
// are not watched; it is called from several goroutines. Close ends it.
func Watch(root string, ignored func(p string, dir bool) bool) (*Watcher, error) {
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder that can be watched", ErrUsage, root)
	}
	w := &Watcher{root: root, ignored: ignored, stir: make(chan struct{}, 1), dirs: map[string]bool{}, paths: map[string]bool{}, trees: map[string]bool{}}
	var err error
	if w.fs, err = fsnotify.NewBufferedWatcher(4096); err != nil {
		w.poll(err)
		return w, nil
	}
	w.mu.Lock()
	w.add("")
	w.mu.Unlock()
	w.ended.Go(w.listen)
	return w, nil
}

// Close ends the watching.
func (w *Watcher) Close() error {
	if w.fs == nil {
		return nil
	}
	err := w.fs.Close()
	w.ended.Wait()
	return err
}

// Polling says why the folder is read again and again instead of being told of
// changes; "" where it is told.
func (w *Watcher) Polling() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.polling
}

// poll gives up on events. w.mu is held, or nobody else has w yet.
func (w *Watcher) poll(err error) {
	if w.polling == "" {
		w.polling = fmt.Sprintf("this system watches no more folders (%s), so all is read again every %v or more", reason(err), pollEvery)
	}
}

// Refresh watches folders that are not ignored any more.
func (w *Watcher) Refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add("")
}

// add watches the folder rel and those below it; w.mu is held. A folder is watched
// before it is read: what comes meanwhile is heard or seen.
func (w *Watcher) add(rel string) {
	if w.polling != "" || w.fs == nil {
		return
	}
	full := filepath.Join(w.root, filepath.FromSlash(rel))
	if err := w.fs.Add(full); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fsnotify.ErrClosed) {
			return // gone again, or named when it is sent
		}
		w.poll(err)
		return
	}
	w.dirs[rel] = true
	names, err := os.ReadDir(full)
	if err != nil {
		return
	}
	for _, d := range names {
		if !d.IsDir() {
			continue
		}
		if p := join2(rel, d.Name()); !w.ignored(p, true) {
			w.add(p)
		}
	}
}

func join2(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// listen takes events until the watcher is closed.
func (w *Watcher) listen() {
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			w.heard(e)
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			w.mu.Lock()
			w.all = true // an overflow; and whatever else it is, looking is right
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.poll(err)
			}
			w.note()
			w.mu.Unlock()
		}
	}
}

// heard notes one event.
func (w *Watcher) heard(e fsnotify.Event) {
	rel, err := filepath.Rel(w.root, e.Name)
	if err != nil || strings.HasPrefix(rel, "..") {
		return
	}
	rel = filepath.ToSlash(rel)
	w.mu.Lock()
	defer w.mu.Unlock()
	if rel == "." {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			w.all = true
			w.note()
		}
		return
	}
	if tree.OursIn(rel) {
		return
	}
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		w.forget(rel)
	}
	dir := false
	if e.Has(fsnotify.Create) {
		fi, err := os.Lstat(e.Name)
		dir = err == nil && fi.IsDir()
	}
	if w.ignored(rel, dir || w.dirs[rel]) {
		return
	}
	if dir {
		w.add(rel)
		w.trees[rel] = true
	} else {
		w.paths[rel] = true
	}
	w.note()
}

// forget ends the watching of a folder that is gone, and of those below it: where
// it was renamed, they would speak under the old name.
func (w *Watcher) forget(rel string) {
	if !w.dirs[rel] {
		return
	}
	for d := range w.dirs {
		if tree.Under(d, rel) {
			_ = w.fs.Remove(filepath.Join(w.root, filepath.FromSlash(d))) // most are gone with their folder
			delete(w.dirs, d)
		}
	}
}

// note wakes Next; w.mu is held.
func (w *Watcher) note() {
	w.last = time.Now()
	if w.first.IsZero() {
		w.first = w.last
	}
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// Next waits until something has changed and it is quiet again, and says where.
// It returns the error of ctx when that ends first.
func (w *Watcher) Next(ctx context.Context) (Changes, error) {
	w.rest = pollEvery
	if !w.polled.IsZero() { // a large tree is not read all the time
		w.rest = max(pollEvery, pollShare*time.Since(w.polled))
		w.polled = time.Time{}
	}
	for {
		wait, c, ready := w.settled()
		if ready {
			return c, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.stir:
		case <-timer.C:
			if w.Polling() != "" && wait == w.rest {
				w.polled = time.Now()
				return Changes{All: true}, nil
			}
		case <-ctx.Done():
			timer.Stop()
			return Changes{}, ctx.Err()
		}
		timer.Stop()
	}
}

// settled takes what has changed, or says how long to wait for it.
func (w *Watcher) settled() (wait time.Duration, c Changes, ready bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first.IsZero() {
		if w.polling != "" {
			return w.rest, c, false
		}
		return time.Hour, c, false
	}
	now := time.Now()
	if wait = min(settleFor-now.Sub(w.last), settleMost-now.Sub(w.first)); wait > 0 {
		return wait, c, false
	}
	if c.All = w.all; c.All {
		w.add("") // folders may have come unheard
	}
	for d := range w.trees {
		// A folder that was renamed loses its watch when the system tells of that
		// itself, after it came under the new name.
		w.add(d)
		c.Trees = append(c.Trees, d)
	}
	for p := range w.paths {
		c.Paths = append(c.Paths, p)
	}
	slices.Sort(c.Trees)
	slices.Sort(c.Paths)
	w.first, w.all = time.Time{}, false
	clear(w.trees)
	clear(w.paths)
	return 0, c, true
}
