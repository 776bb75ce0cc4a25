//go:build unix

package far

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rentop/sync/tree"
)

// This file works inside one open folder by file descriptor: one step for a name.

// handle is an open folder.
type handle struct {
	dir *os.File
	fd  int
}

func openHandle(root *os.Root, dir string) (handle, error) {
	f, err := root.OpenFile(filepath.FromSlash(dir), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return handle{}, err
	}
	return handle{dir: f, fd: int(f.Fd())}, nil
}

func (h handle) close() error { return h.dir.Close() }

// settle brings the names in it to disk. On macOS File.Sync would empty the drive's
// cache each time, which the files' own have done.
func (h handle) settle() { _ = retry(func() error { return unix.Fsync(h.fd) }) }

// settleAt is settle for a folder by its path.
func settleAt(dir string) {
	if f, err := os.Open(dir); err == nil {
		handle{dir: f, fd: int(f.Fd())}.settle()
		f.Close()
	}
}

// retry repeats what a signal interrupted.
func retry(do func() error) error {
	for {
		if err := do(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (h handle) openFile(name string, flags int, perm uint32) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(h.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// create makes a file that is not there.
func (h handle) create(name string) (*os.File, error) {
	return h.openFile(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
}

// read opens a file; a named pipe does not keep it waiting.
func (h handle) read(name string) (*os.File, error) {
	return h.openFile(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
}

// part opens a file to go on with, or makes it; held says that another process does.
func (h handle) part(name string) (f *os.File, held bool, err error) {
	f, err = h.openFile(name, unix.O_RDWR|unix.O_CREAT|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, false, err
	}
	if held, _ := lock(f); held {
		f.Close()
		return nil, true, nil
	}
	return f, false, nil // a file system without locks: at worst SHA-256 tells
}

func (h handle) rename(from, to string) error {
	return retry(func() error { return unix.Renameat(h.fd, from, h.fd, to) })
}

func (h handle) remove(name string) error {
	return retry(func() error { return unix.Unlinkat(h.fd, name, 0) })
}

func (h handle) mkdir(name string, perm fs.FileMode) error {
	return retry(func() error { return unix.Mkdirat(h.fd, name, uint32(perm)) })
}

func (h handle) chmodSelf(perm fs.FileMode) error { return h.dir.Chmod(perm) }

// times sets the time of a file of ours.
func (h handle) times(name string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	return retry(func() error {
		return unix.UtimesNanoAt(h.fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// lstat is only the type of what is at name.
func (h handle) lstat(name string) (fs.FileMode, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return 0, err
	}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		return 0, nil
	case unix.S_IFDIR:
		return fs.ModeDir, nil
	case unix.S_IFLNK:
		return fs.ModeSymlink, nil
	}
	return fs.ModeIrregular, nil
}

// entry is what lies at name; p is its path in the tree.
func (h handle) entry(name, p string) (tree.Entry, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return tree.Entry{}, err
	}
	e := tree.Entry{Path: p, Mode: fs.FileMode(st.Mode) & fs.ModePerm, ModTime: time.Unix(st.Mtim.Unix())}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
		e.Size = st.Size
	case unix.S_IFDIR:
		e.Mode |= fs.ModeDir
	case unix.S_IFLNK:
		e.Mode |= fs.ModeSymlink
		var buf [tree.MaxPath]byte
		n, err := unix.Readlinkat(h.fd, name, buf[:])
		if err != nil {
			return e, err
		}
		e.Target = string(buf[:n])
	case unix.S_IFIFO:
		e.Mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		e.Mode |= fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		e.Mode |= fs.ModeDevice
	default:
		e.Mode |= fs.ModeIrregular
	}
	return e, nil
}

func isQuota(err error) bool { return errors.Is(err, syscall.EDQUOT) }
