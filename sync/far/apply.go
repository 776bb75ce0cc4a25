package far

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"rentop/sync/tree"
)

// This file does all that is not content: folders, symlinks, attributes,
// deletes and moves, inside a root.

// applyAbove is apply for the root "/": the person named the path, and symlinks
// on it lead where they lead.
func applyAbove(it *Item) error {
	name := "/" + it.Entry.Path
	if it.Op != Mkdir {
		return fmt.Errorf("only folders are made directly under /")
	}
	var made []string // folders that a name comes into
	for dir := name; ; {
		fi, err := os.Stat(dir)
		if err == nil && fi.IsDir() || dir == "/" {
			break
		}
		dir = path.Dir(dir)
		made = append(made, dir)
	}
	if len(made) == 0 {
		return nil
	}
	err := os.MkdirAll(name, it.Entry.Mode.Perm()|0o700)
	for _, dir := range made {
		settleAt(dir)
	}
	return err
}

func (p *place) apply(it *Item) error {
	name := filepath.FromSlash(it.Entry.Path)
	switch it.Op {
	case Mkdir:
		return p.mkdir(it.Entry)
	case Delete:
		p.forget()
		if Temporary(it.Entry.Path) {
			if p.left == nil {
				p.left = NewSweeper(p.root)
			}
			return p.left.Remove(it.Entry.Path)
		}
		err := p.root.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	case Link:
		p.forget()
		return p.symlink(it.Entry.Path, it.Entry.Target)
	case Attr:
		return p.attr(it.Entry)
	case hardLink:
		return p.hardLink(it.Entry)
	case Move:
		p.forget()
		return p.rename(name, filepath.FromSlash(it.To))
	}
	return fmt.Errorf("operation %d is not done here", it.Op)
}

// mkdir makes a folder that its owner may write for now, and those above it.
func (p *place) mkdir(e tree.Entry) error {
	perm := e.Mode.Perm() | 0o700
	dir, base := path.Split(e.Path)
	f, err := p.folder(path.Clean(dir))
	if err == nil {
		if err = f.mkdir(base, perm); err == nil {
			p.touch(f)
		}
		f.put()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = p.root.MkdirAll(filepath.FromSlash(path.Clean(dir)), 0o755); err == nil {
			err = p.root.Mkdir(filepath.FromSlash(e.Path), perm)
			for up := path.Clean(dir); ; up = path.Dir(up) {
				p.touchDir(up)
				if up == "." {
					break
				}
			}
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	own, oerr := p.folder(e.Path)
	if oerr != nil {
		if err != nil {
			return err // what is there is no folder
		}
		return oerr
	}
	defer own.put()
	cerr := own.chmodSelf(perm)
	if err != nil && errors.Is(cerr, fs.ErrPermission) {
		return nil // it was there, and is another's
	}
	return cerr
}

// symlink replaces a file or symlink by a symlink in one step.
func (p *place) symlink(at, target string) error {
	dir, base := path.Split(at)
	tmp := filepath.FromSlash(dir + p.temp())
	if err := p.root.Symlink(filepath.FromSlash(target), tmp); err != nil {
		return err
	}
	err := p.root.Rename(tmp, filepath.FromSlash(dir+base))
	if err != nil {
		p.root.Remove(tmp)
		return err
	}
	p.touchDir(path.Clean(dir))
	return nil
}

func (p *place) attr(e tree.Entry) error {
	name := filepath.FromSlash(e.Path)
	if err := p.root.Chmod(name, e.Mode.Perm()); err != nil {
		return err
	}
	if e.Mode.IsRegular() {
		return p.root.Chtimes(name, e.ModTime, e.ModTime)
	}
	return nil
}

// rename moves what is at from to a free place, whose folders are made.
func (p *place) rename(from, to string) error {
	if _, err := p.root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := p.root.Lstat(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return p.root.Rename(from, to)
}

// hardLink gives the file at e.Link the name e.Path too, where it is the one
// that e says.
func (p *place) hardLink(e tree.Entry) error {
	if err := tree.CheckPath(e.Link); err != nil {
		return err
	}
	old := filepath.FromSlash(e.Link)
	fi, err := p.root.Lstat(old)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() != e.Size || !tree.SameTime(fi.ModTime(), e.ModTime) {
		return errChanged
	}
	tmp := filepath.FromSlash(path.Dir(e.Path) + "/" + p.temp())
	if err := p.root.Link(old, tmp); err != nil {
		return err
	}
	err = p.root.Rename(tmp, filepath.FromSlash(e.Path))
	p.root.Remove(tmp) // rename leaves it where both are one file already
	p.touchDir(path.Dir(e.Path))
	return err
}
