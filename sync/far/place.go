package far

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"rentop/sync/tree"
)

// This file is the root of one side's tree, and the folders in it that are kept
// open: a small file costs one step from its folder, not one for each folder
// above it. Nothing leads out of the root: folders are opened through os.Root.

// place is a root with its open folders.
type place struct {
	root *os.Root

	run     string   // begins the names of this run's temporary files
	lock    *os.File // says that it lives; nil where there is none
	holding sync.Once
	count   atomic.Uint64
	left    *Sweeper // nil until something is swept

	settling sync.Mutex // held while folders are brought to disk
	mu       sync.Mutex // protects what follows
	open     map[string]*folder
	ring     []*folder // in the order of opening
	touched  []*folder // whose names are not known to be on disk
}

// keepOpen is how many folders stay open.
const keepOpen = 200

func openPlace(dir string) (*place, error) {
	r, err := os.OpenRoot(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	return &place{root: r, run: tree.TmpPrefix + tree.Token(), open: map[string]*folder{}}, nil
}

func (p *place) Close() error {
	p.settle()
	p.forget()
	p.release()
	if p.left != nil {
		p.left.Close()
	}
	return p.root.Close()
}

// folder is an open folder; users give it back with put.
type folder struct {
	dir  string
	uses atomic.Int32 // one for the place itself
	late bool         // among the place's touched; the place's mu protects it
	handle
}

func (f *folder) put() {
	if f.uses.Add(-1) == 0 {
		f.handle.close()
	}
}

// folder opens dir, slash-separated and relative to the root, "." for itself.
func (p *place) folder(dir string) (*folder, error) {
	p.mu.Lock()
	if f := p.open[dir]; f != nil {
		f.uses.Add(1)
		p.mu.Unlock()
		return f, nil
	}
	p.mu.Unlock()
	h, err := openHandle(p.root, dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, handle: h}
	f.uses.Store(2)
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.open[dir]; other != nil { // opened meanwhile
		other.uses.Add(1)
		h.close()
		return other, nil
	}
	p.open[dir] = f
	if p.ring = append(p.ring, f); len(p.ring) > keepOpen {
		old := p.ring[0]
		p.ring = p.ring[1:]
		if p.open[old.dir] == old {
			delete(p.open, old.dir)
		}
		old.put()
	}
	return f, nil
}

// nearby asks a place for one folder after the other; names next to each other
// mostly lie in the same.
type nearby struct {
	p *place
	d *folder
}

// folder is good until the next is asked for.
func (n *nearby) folder(dir string) (*folder, error) {
	if n.d != nil && n.d.dir == dir {
		return n.d, nil
	}
	n.close()
	d, err := n.p.folder(dir)
	n.d = d
	return d, err
}

func (n *nearby) close() {
	if n.d != nil {
		n.d.put()
		n.d = nil
	}
}

// forget closes all folders once nobody uses them: one may be another by now.
func (p *place) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.ring {
		f.put()
	}
	p.ring = nil
	clear(p.open)
}

// temp is a new name for a file on its way.
func (p *place) temp() string {
	p.holding.Do(p.hold)
	const digits = "0123456789abcdefghijklmnopqrstuv"
	n := p.count.Add(1)
	var b [13]byte
	i := len(b)
	for {
		i--
		b[i] = digits[n%32]
		if n /= 32; n == 0 {
			return p.run + "-" + string(b[i:])
		}
	}
}

// isFolder says whether a folder is at name.
func (f *folder) isFolder(name string) bool {
	m, err := f.lstat(name)
	return err == nil && m.IsDir()
}

// move gives the file tmp its name, with the reason where a folder is there.
func (f *folder) move(tmp, name string) error {
	err := f.rename(tmp, name)
	if err != nil && f.isFolder(name) {
		return errFolder
	}
	return err
}

// regular refuses all but regular files.
func regular(m fs.FileMode) error {
	if !m.IsRegular() {
		return &Error{Class: Changed, Text: "is a " + tree.TypeName(m) + " by now", Here: true}
	}
	return nil
}
