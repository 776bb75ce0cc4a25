package tree

import (
	"strings"
	"sync"
)

// Rules is what a walk has learnt about what is left out, by folder. It is safe
// for concurrent use; nil learns nothing and leaves nothing out.
type Rules struct {
	mu      sync.RWMutex
	folders map[string]*Ignore // those with rules of their own, which hold those above
}

func (r *Rules) add(dir string, g *Ignore) {
	if r == nil || g == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folders == nil {
		r.folders = map[string]*Ignore{}
	}
	r.folders[dir] = g
}

// anew forgets what the folder dir and those below it said, and gives what holds
// there from above.
func (r *Rules) anew(dir string) *Ignore {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for d := range r.folders {
		if Under(d, dir) {
			delete(r.folders, d)
		}
	}
	return r.above(dir)
}

// above is what holds for p, nil where there is nothing; r.mu is held.
func (r *Rules) above(p string) *Ignore {
	for p != "" {
		p = p[:max(strings.LastIndexByte(p, '/'), 0)]
		if g, ok := r.folders[p]; ok {
			return g
		}
	}
	return nil
}

// Excluded says whether p is left out, itself or by a folder above it. p need not
// be in the tree.
func (r *Rules) Excluded(p string, isDir bool) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.above(p).Excluded(p, isDir)
}
