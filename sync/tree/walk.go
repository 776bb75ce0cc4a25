package tree

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// This file walks a folder on this machine in tree order. The caller's goroutine
// hands the entries over; workers read the folders that come next, no more of
// them than a bound, so that memory does not grow with the tree. How one folder
// is read is in readdir_*.go.

// Options of a walk. The zero value reads everything.
type Options struct {
	GitIgnore bool // honour .gitignore
	OwnIgnore bool // honour .rentopignore
	// Include and Exclude are patterns as in an ignore file of the root; they win
	// over all files, and Include over Exclude. An Include that names a path
	// ("out/best.pt") also reaches into folders that are left out, for that only.
	Include, Exclude []string
	// Below is a folder under the root that alone is walked, with paths from the root.
	// Rules then has what holds above it, Include and Exclude among them.
	Below string
	// Rules learns the rules of each folder before anything that comes after the
	// folder is emitted; may be nil.
	Rules *Rules
	// Problem hears of what could not be read, in order with the entries (a folder's
	// comes after the folder itself); nil drops it. mode holds the type alone.
	Problem func(p string, mode fs.FileMode, err error)
}

const (
	readAhead  = 32 << 10 // entries that are read and not emitted yet
	foldersOut = 256      // folders of one folder that wait to be read
	statChunk  = 2048     // names of a large folder that one worker looks at
	maxGroups  = 1 << 17  // groups of hard links that are remembered
)

// Walk emits what is under root, root itself excluded, in the order of Compare.
// Symlinks are reported and never followed, root excepted. Sockets, pipes and
// devices are emitted like files, with their type in Mode. What goes while the
// walk is running is as if it had never been there. ignored counts what rules left
// out, a folder once. Our own names are emitted whatever the rules say; the trash
// is not read.
func Walk(ctx context.Context, root string, o Options, emit func(Entry) error) (ignored int64, err error) {
	fi, err := os.Stat(root)
	if err != nil {
		return 0, err
	}
	if !fi.IsDir() {
		return 0, fmt.Errorf("%s is not a folder", root)
	}
	r, err := openReader(root)
	if err != nil {
		return 0, err
	}
	defer r.close()
	w := &walker{o: o, reader: r, emit: emit, groups: map[inode]*group{}}
	w.work.L = &w.mu
	top := &folder{path: o.Below, done: make(chan struct{})}
	if o.Below == "" {
		top.rules = Patterns(o.Include, o.Exclude)
		o.Rules.add("", top.rules)
	} else {
		top.rules = o.Rules.anew(o.Below)
	}
	heap.Push(&w.queue, top)

	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
		w.work.Broadcast()
	}
	stop := context.AfterFunc(ctx, end)
	var workers sync.WaitGroup
	defer func() {
		stop()
		cancel()
		end()
		workers.Wait()
	}()
	for range min(max(4, runtime.GOMAXPROCS(0)), 16) {
		workers.Go(func() { w.ahead(ctx) })
	}
	err = w.give(ctx, top)
	return w.ignored, err
}

// inode names a file whatever its path.
type inode struct{ dev, ino uint64 }

type group struct {
	first string
	left  uint64 // names that were not met yet
}

// record is one name in a folder, smaller than an Entry.
type record struct {
	name  string
	size  int64
	sec   int64
	nsec  int32
	mode  fs.FileMode
	rare  *rare
	sub   *folder // of a folder that is queued
	enter bool    // a folder to go into
	only  bool    // left out, but for what an include names in it
}

// rare is what few entries have.
type rare struct {
	target string
	id     inode
	links  uint64
	err    error // why it could not be looked at
}

// folder is one that was met, is being read or was read.
type folder struct {
	path  string
	rules *Ignore // of the folders above until it was read, then its own too
	only  bool

	taken   bool          // under walker.mu
	done    chan struct{} // closed when what follows is set
	records []record
	ignored int64
	err     error

	queued  int // records up to which folders were queued; under walker.mu
	waiting int // of those, how many were not given yet
}

type walker struct {
	o       Options
	reader  *reader
	emit    func(Entry) error
	ignored int64
	groups  map[inode]*group

	mu    sync.Mutex // protects what follows
	work  sync.Cond  // something was queued, or emitted
	queue queue
	held  int // records that are read and not emitted
	over  bool
}

// ahead reads folders before they are needed.
func (w *walker) ahead(ctx context.Context) {
	for {
		w.mu.Lock()
		for !w.over && (len(w.queue) == 0 || w.held >= readAhead) {
			w.work.Wait()
		}
		if w.over {
			w.mu.Unlock()
			return
		}
		f := heap.Pop(&w.queue).(*folder)
		mine := !f.taken
		f.taken = true
		w.mu.Unlock()
		if mine {
			w.read(ctx, f)
		}
	}
}

// read fills f, which the caller has taken.
func (w *walker) read(ctx context.Context, f *folder) {
	if f.err = ctx.Err(); f.err == nil {
		f.err = w.reader.read(ctx, w, f)
	}
	w.mu.Lock()
	w.held += len(f.records)
	w.enqueue(f)
	w.mu.Unlock()
	close(f.done)
}

// enqueue lets workers have the next folders of f. w.mu is held.
func (w *walker) enqueue(f *folder) {
	for ; f.queued < len(f.records) && f.waiting < foldersOut; f.queued++ {
		r := &f.records[f.queued]
		if !r.enter {
			continue
		}
		r.sub = &folder{path: join(f.path, r.name), rules: f.rules, only: r.only, done: make(chan struct{})}
		f.waiting++
		heap.Push(&w.queue, r.sub)
		w.work.Signal()
	}
}

// give emits what is in f and below. It reads f itself where no worker has begun.
func (w *walker) give(ctx context.Context, f *folder) error {
	w.mu.Lock()
	mine := !f.taken
	f.taken = true
	w.mu.Unlock()
	if mine {
		w.read(ctx, f)
	}
	<-f.done
	w.ignored += f.ignored
	if f.err != nil {
		if ctx.Err() != nil || f.path == "" {
			return f.err
		}
		if !errors.Is(f.err, fs.ErrNotExist) {
			w.problem(f.path, fs.ModeDir, f.err)
		}
	}
	given := 0 // since w.held was told
	for i := range f.records {
		r := f.records[i] // its folder is queued: enqueue is always ahead of what is given
		f.records[i] = record{}
		given++
		if err := w.one(f, r); err != nil {
			return err
		}
		if r.sub == nil && given < 256 {
			continue
		}
		w.told(f, given, r.sub != nil)
		given = 0
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.sub != nil {
			if err := w.give(ctx, r.sub); err != nil {
				return err
			}
		}
	}
	w.told(f, given, false)
	return nil
}

// told counts records of f that were emitted, a folder among them or not.
func (w *walker) told(f *folder, n int, folder bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held -= n
	if folder {
		f.waiting--
		w.enqueue(f)
	}
	w.work.Signal()
}

// one emits a record.
func (w *walker) one(f *folder, r record) error {
	e := Entry{Path: join(f.path, r.name), Mode: r.mode, Size: r.size, ModTime: time.Unix(r.sec, int64(r.nsec))}
	if r.rare != nil {
		if r.rare.err != nil {
			w.problem(e.Path, r.mode.Type(), r.rare.err)
			return nil
		}
		e.Target = r.rare.target
		if r.rare.links > 1 {
			e.Link = w.link(e.Path, r.rare)
		}
	}
	return w.emit(e)
}

// link is the first path of the group that p is in, "" where that is p.
func (w *walker) link(p string, r *rare) string {
	g := w.groups[r.id]
	if g == nil {
		if len(w.groups) < maxGroups {
			w.groups[r.id] = &group{first: p, left: r.links - 1}
		}
		return ""
	}
	if g.left--; g.left == 0 {
		delete(w.groups, r.id)
	}
	return g.first
}

func (w *walker) problem(p string, mode fs.FileMode, err error) {
	if w.o.Problem != nil {
		w.o.Problem(p, mode, err)
	}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// queue is a heap of folders, the first in tree order on top.
type queue []*folder

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return Compare(q[i].path, q[j].path) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*folder)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	f := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return f
}

// found is a name that a folder holds, before it is looked at.
type found struct {
	name string
	mode fs.FileMode // the type
	only bool
}

// keep applies the rules to the names of f; those that stay are sorted. sure says
// that mode holds the type: a name without one is kept until it was looked at.
func (w *walker) keep(f *folder, names []found) []found {
	kept := names[:0]
	for _, n := range names {
		isDir := n.mode.IsDir()
		if f.rules != nil && !Ours(n.name) {
			verdict := f.rules.judge(join(f.path, n.name), isDir, f.only)
			if verdict == leftOut {
				f.ignored++
				continue
			}
			n.only = verdict == reachInto
		}
		kept = append(kept, n)
	}
	slices.SortFunc(kept, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return kept
}

// wantsRules says whether the walk honours an ignore file of this name.
func (w *walker) wantsRules(name string) bool {
	return w.o.GitIgnore && name == GitIgnoreFile || w.o.OwnIgnore && name == OwnIgnoreFile
}

// addRules takes the text of an ignore file of f.
func (w *walker) addRules(f *folder, name string, text []byte) {
	f.rules = f.rules.With(name, f.path, text)
	w.o.Rules.add(f.path, f.rules)
}

// goInto says whether a folder of this name is read.
func goInto(name string) bool { return name != TrashDir }
