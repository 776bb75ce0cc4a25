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

// Excluded says whether p is left out, itself or by a folder above it. p need not
// be in the tree.
func (r *Rules) Excluded(p string, isDir bool) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for dir := p; dir != ""; {
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
		if g, ok := r.folders[dir]; ok {
			return g.Excluded(p, isDir)
		}
	}
	return false
}
