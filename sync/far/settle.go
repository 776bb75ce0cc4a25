package far

import "sync"

// This file brings names to disk: a rename is in the folder, which the file's own
// fsync leaves out. It is done for many names at once, before the other side hears
// that they are there.

const (
	// maxTouched bounds the folders that wait, which are open.
	maxTouched = 128
	// settlers is how many are brought to disk at once: the file system makes few
	// commits of many that wait together.
	settlers = 16
)

// touch notes that a name in f has changed.
func (p *place) touch(f *folder) {
	p.mu.Lock()
	if !f.late {
		f.late = true
		f.uses.Add(1)
		p.touched = append(p.touched, f)
	}
	full := len(p.touched) > maxTouched
	p.mu.Unlock()
	if full {
		p.settle()
	}
}

// touchDir is touch for a folder that may not be open.
func (p *place) touchDir(dir string) {
	if f, err := p.folder(dir); err == nil {
		p.touch(f)
		f.put()
	}
}

// settle brings to disk what was touched so far. An error has no use: the names
// are there, and only a crash would tell.
func (p *place) settle() {
	p.settling.Lock()
	defer p.settling.Unlock()
	p.mu.Lock()
	list := p.touched
	p.touched = nil
	for _, f := range list {
		f.late = false
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, settlers)
	for i, f := range list {
		if i == len(list)-1 { // the last, and so a single one, needs no goroutine
			f.settle()
			f.put()
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			f.settle()
			f.put()
			<-slots
		})
	}
	wg.Wait()
}
