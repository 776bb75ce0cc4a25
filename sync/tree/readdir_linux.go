package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// This file reads a folder through its descriptor: names with their types first,
// then the state of those that no rule leaves out, relative to the descriptor, so
// that no path is walked twice and no symlink that comes into a path is followed.

type reader struct {
	root    int
	old     atomic.Bool // no openat2
	buffers sync.Pool
}

func openReader(root string) (*reader, error) {
	fd, err := open(unix.AT_FDCWD, root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	r := &reader{root: fd}
	r.buffers.New = func() any { b := make([]byte, 64<<10); return &b }
	return r, nil
}

func (r *reader) close() { unix.Close(r.root) }

func open(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// folder opens a folder under the root.
func (r *reader) folder(p string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if p == "" {
		return open(r.root, ".", flags)
	}
	if !r.old.Load() {
		fd, err := unix.Openat2(r.root, p, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
		switch err {
		case unix.ENOSYS, unix.EPERM, unix.EINVAL: // before Linux 5.6, or a container's filter
			r.old.Store(true)
		case unix.EINTR, unix.EAGAIN:
		default:
			return fd, err
		}
	}
	return open(r.root, p, flags)
}

func (r *reader) read(ctx context.Context, w *walker, f *folder) error {
	fd, err := r.folder(f.path)
	if err != nil {
		return &fs.PathError{Op: "open", Path: f.path, Err: err}
	}
	defer unix.Close(fd)
	names, err := r.names(fd)
	for _, n := range names {
		if n.mode == 0 && w.wantsRules(n.name) {
			if text, ok := ruleText(fd, n.name); ok {
				w.addRules(f, n.name, text)
			}
		}
	}
	known := names[:0]
	var unsure []found // a file system that tells no types
	for _, n := range names {
		if n.mode == fs.ModeIrregular {
			unsure = append(unsure, n)
		} else {
			known = append(known, n)
		}
	}
	for _, n := range unsure {
		var st unix.Stat_t
		if lstat(fd, n.name, &st) == nil {
			n.mode = modeOf(st.Mode).Type()
		}
		known = append(known, n)
	}
	kept := w.keep(f, known)
	f.records = make([]record, len(kept))
	look := func(from, to int) {
		for i := from; i < to; i++ {
			f.records[i] = stat(fd, kept[i])
		}
	}
	if len(kept) <= 2*statChunk {
		look(0, len(kept))
	} else {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(4)
		for from := 0; from < len(kept) && gctx.Err() == nil; from += statChunk {
			g.Go(func() error { look(from, min(from+statChunk, len(kept))); return nil })
		}
		g.Wait()
	}
	if ctx.Err() != nil {
		f.records = nil
		return ctx.Err()
	}
	there := f.records[:0]
	for _, rec := range f.records {
		if rec.rare == nil || !errors.Is(rec.rare.err, fs.ErrNotExist) {
			there = append(there, rec)
		}
	}
	f.records = there
	if err != nil {
		return &fs.PathError{Op: "read", Path: f.path, Err: err}
	}
	return nil
}

// names reads all names of a folder. An error comes with the names before it.
func (r *reader) names(fd int) ([]found, error) {
	buf := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buf)
	var out []found
	for {
		n, err := unix.Getdents(fd, *buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return out, err
		}
		// one string for all names of the buffer
		text := string((*buf)[:n])
		out = slices.Grow(out, n/(nameAt+13)) // names of 12 bytes: more is seldom
		for at := 0; at+nameAt < n; {
			size := int(binary.NativeEndian.Uint16((*buf)[at+16:]))
			if size <= nameAt || at+size > n {
				return out, unix.EIO
			}
			name := text[at+nameAt : at+size]
			if i := bytes.IndexByte((*buf)[at+nameAt:at+size], 0); i >= 0 {
				name = name[:i]
			}
			if name != "." && name != ".." {
				out = append(out, found{name: name, mode: typeOf((*buf)[at+18])})
			}
			at += size
		}
	}
}

// nameAt is where a name begins in struct linux_dirent64.
const nameAt = int(unsafe.Offsetof(unix.Dirent{}.Name))

func typeOf(t byte) fs.FileMode {
	switch t {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_BLK, unix.DT_CHR:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

func lstat(fd int, name string, st *unix.Stat_t) error {
	for {
		err := unix.Fstatat(fd, name, st, unix.AT_SYMLINK_NOFOLLOW)
		if err != unix.EINTR {
			return err
		}
	}
}

// stat looks at one name of the folder fd.
func stat(fd int, n found) record {
	var st unix.Stat_t
	r := record{name: n.name, mode: n.mode, only: n.only}
	if err := lstat(fd, n.name, &st); err != nil {
		r.rare = &rare{err: err}
		return r
	}
	r.mode = modeOf(st.Mode)
	r.sec, r.nsec = int64(st.Mtim.Sec), int32(st.Mtim.Nsec)
	switch {
	case r.mode.IsRegular():
		r.size = st.Size
		if st.Nlink > 1 {
			r.rare = &rare{id: inode{uint64(st.Dev), st.Ino}, links: uint64(st.Nlink)}
		}
	case r.mode.IsDir():
		r.enter = goInto(n.name)
	case r.mode&fs.ModeSymlink != 0:
		target, err := readlink(fd, n.name, int(st.Size))
		r.rare = &rare{target: target, err: err}
	}
	return r
}

func readlink(fd int, name string, size int) (string, error) {
	for size = min(max(size, 0), MaxPath) + 1; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(fd, name, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n < size:
			return string(b[:n]), nil
		case size > 2*MaxPath:
			return "", unix.ENAMETOOLONG
		}
	}
}

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m) & fs.ModePerm
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK, unix.S_IFCHR:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

// ruleText reads an ignore file; like git, no symlink.
func ruleText(dir int, name string) ([]byte, bool) {
	fd, err := open(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, false // it is named when it is sent
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxIgnoreFile))
	return text, err == nil
}
