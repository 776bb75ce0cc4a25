package far

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"rentop/sync/tree"
)

// This file answers what is there: single paths, listings and sums.

// home is where "~" and relative paths start.
func home() (string, error) {
	if h, err := os.UserHomeDir(); err == nil {
		return h, nil
	}
	return os.Getwd()
}

func (s *server) resolve(k *call, p string) error {
	h, err := home()
	if err != nil {
		return err
	}
	switch {
	case p == "~" || p == "":
		p = h
	case len(p) > 1 && p[:2] == "~/":
		p = filepath.Join(h, p[2:])
	case !filepath.IsAbs(p):
		p = filepath.Join(h, p)
	}
	abs := filepath.Clean(p)
	e := tree.Entry{Path: path.Base(filepath.ToSlash(abs))}
	b := appendString(nil, filepath.ToSlash(abs))
	fi, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return k.send(whatFound, append(b, 0))
	}
	if err != nil {
		return err
	}
	e.Mode, e.ModTime = fi.Mode()&(fs.ModeType|fs.ModePerm), fi.ModTime()
	if e.Mode.IsRegular() {
		e.Size = fi.Size()
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			e.Target = filepath.ToSlash(real)
		}
	}
	var f front
	return k.send(whatFound, f.appendEntry(append(b, 1), &e))
}

// lister packs entries into messages.
type lister struct {
	s *server
	k *call
	f front
	b []byte
}

func (l *lister) add(e tree.Entry) error {
	l.b = l.f.appendEntry(l.b, &e)
	if len(l.b) < goodList {
		return nil
	}
	return l.flush()
}

func (l *lister) flush() error {
	if len(l.b) == 0 {
		return nil
	}
	out := packList(l.s.codec, l.b)
	l.b, l.f = l.b[:0], front{}
	return l.k.send(whatEntries, out)
}

// problem comes after the entries that were met before it.
func (l *lister) problem(p string, mode fs.FileMode, err error) error {
	if ferr := l.flush(); ferr != nil {
		return ferr
	}
	return l.k.send(whatProblem, appendError(appendMode(appendString(nil, p), mode), err))
}

// What a walk leaves out, as flags.
const (
	walkGit = 1 << iota // .gitignore is honoured
	walkOwn             // .rentopignore is
)

func (s *server) list(k *call, root string, d *decoder) error {
	flags := d.byte()
	o := tree.Options{GitIgnore: flags&walkGit != 0, OwnIgnore: flags&walkOwn != 0}
	o.Include, o.Exclude = d.strings(), d.strings()
	if err := d.end(); err != nil {
		return err
	}
	l := &lister{s: s, k: k}
	var lost error
	o.Problem = func(p string, mode fs.FileMode, err error) {
		if lost == nil {
			lost = l.problem(p, mode, err)
		}
	}
	ignored, err := tree.Walk(k.ctx, root, o, func(e tree.Entry) error {
		if lost != nil {
			return lost
		}
		return l.add(e)
	})
	if err == nil {
		err = lost
	}
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return err
	}
	return k.send(whatCount, binary.AppendUvarint(nil, uint64(max(0, ignored))))
}

// eachPath calls do with every path that the client sends.
func (s *server) eachPath(k *call, do func(string) error) error {
	return k.eachList(s.codec, whatPaths, func(d *decoder) error {
		for f := (front{}); len(d.b) > 0; {
			p := f.path(d)
			if d.err != nil {
				return d.err
			}
			if err := do(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// stat answers the states of single paths; a symlink on the way is followed as
// far as it stays inside.
func (s *server) stat(k *call, root string) error {
	p, err := openPlace(root)
	if err != nil {
		return err
	}
	defer p.Close()
	l := &lister{s: s, k: k}
	near := nearby{p: p}
	defer near.close()
	err = s.eachPath(k, func(name string) error {
		d, err := near.folder(path.Dir(name))
		if err != nil {
			return nil // what is not there is left out
		}
		e, err := d.entry(path.Base(name), name)
		if err != nil {
			return nil
		}
		return l.add(e)
	})
	if err != nil {
		return err
	}
	return l.flush()
}

// hash reads files by several goroutines and answers in the order of the paths.
func (s *server) hash(k *call, root string) error {
	p, err := openPlace(root)
	if err != nil {
		return err
	}
	defer p.Close()
	type result struct {
		sum [sha256.Size]byte
		err error
	}
	ordered := make(chan chan result, 4*s.workers)
	slots := make(chan struct{}, s.workers)
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		var b []byte
		n := 0
		flush := func() error {
			if n == 0 {
				return nil
			}
			out := packList(s.codec, b)
			b, n = b[:0], 0
			return k.send(whatSums, out)
		}
		var err error
		for c := range ordered {
			var r result
			select {
			case r = <-c:
			default: // the answers so far do not wait for a long file
				if err == nil {
					err = flush()
				}
				r = <-c
			}
			if b = appendError(b, r.err); r.err == nil {
				b = append(b, r.sum[:]...)
			}
			if n++; len(b) >= goodList && err == nil {
				err = flush()
			}
			if err != nil {
				k.cancel(err)
			}
		}
		if err == nil {
			err = flush()
		}
		failed <- err
	}()
	err = s.eachPath(k, func(name string) error {
		c := make(chan result, 1)
		ordered <- c
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			var r result
			r.sum, r.err = p.hash(k.ctx, name)
			c <- r
		}()
		return context.Cause(k.ctx)
	})
	close(ordered)
	if ferr := <-failed; err == nil {
		err = ferr
	}
	return err
}

// hash is the SHA-256 of one file.
func (p *place) hash(ctx context.Context, name string) (sum [sha256.Size]byte, err error) {
	f, fi, err := p.openSource(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h, r := sha256.New(), tree.Contents(f, fi)
	buf := make([]byte, min(1<<20, fi.Size()+1))
	for {
		if err := context.Cause(ctx); err != nil {
			return sum, err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return [sha256.Size]byte(h.Sum(nil)), nil
		}
		if err != nil {
			return sum, err
		}
	}
}

// openSource opens a regular file to read it.
func (p *place) openSource(name string) (*os.File, fs.FileInfo, error) {
	dir, base := path.Split(name)
	d, err := p.folder(path.Clean(dir))
	if err != nil {
		return nil, nil, err
	}
	defer d.put()
	f, err := d.read(base)
	if err != nil {
		if m, lerr := d.lstat(base); lerr == nil {
			err = cmp.Or(regular(m), err)
		}
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		err = regular(fi.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// apply carries out items in their order.
func (s *server) apply(k *call, root string) error {
	do, settle := applyAbove, func() {}
	if root != "/" {
		p, err := openPlace(root)
		if err != nil {
			return err
		}
		defer p.Close()
		do, settle = p.apply, p.settle
	}
	return k.eachList(s.codec, whatItems, func(d *decoder) error {
		var out []byte
		tell := func() error {
			settle()
			err := k.send(whatDone, packList(s.codec, out))
			out = out[:0]
			return err
		}
		for f := (front{}); len(d.b) > 0; {
			it := f.item(d)
			if d.err != nil {
				return d.err
			}
			if out = appendError(out, do(&it)); len(out) >= goodList {
				if err := tell(); err != nil {
					return err
				}
			}
		}
		if len(out) == 0 {
			return nil
		}
		return tell()
	})
}
