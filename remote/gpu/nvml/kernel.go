//go:build linux

package nvml

import (
	"strings"
	"syscall"
)

// kernelFiles are files of the kernel's that are read each second. They stay open:
// opening and closing one costs several times what reading it does. The zero value
// is ready; one goroutine uses it.
type kernelFiles struct {
	fds map[string]int // by path; absent where the kernel has none
	buf [4 << 10]byte
}

const absent = -1

// head is the beginning of a file, "" where it cannot be read. It goes past the
// runtime's poller, which would cost more than the reading.
func (k *kernelFiles) head(path string) string {
	fd, known := k.fds[path]
	if !known {
		var err error
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
		case syscall.ENOENT, syscall.ENOTDIR:
			fd = absent // what a kernel does not have does not come
		default:
			return ""
		}
		if k.fds == nil {
			k.fds = map[string]int{}
		}
		k.fds[path] = fd
	}
	if fd == absent {
		return ""
	}
	n, err := syscall.Pread(fd, k.buf[:], 0) // at its beginning, the kernel writes it anew
	if err != nil || n <= 0 {
		syscall.Close(fd)
		delete(k.fds, path)
		return ""
	}
	return string(k.buf[:n])
}

// has says whether a file can be read.
func (k *kernelFiles) has(path string) bool { return k.head(path) != "" }

// one is a file's first line.
func (k *kernelFiles) one(path string) string {
	l, _, _ := strings.Cut(k.head(path), "\n")
	return l
}

// keyed is the word after key at the beginning of a line.
func (k *kernelFiles) keyed(path, key string) string {
	for l := range strings.Lines(k.head(path)) {
		if rest, ok := strings.CutPrefix(l, key+" "); ok {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}

func (k *kernelFiles) close() {
	for _, fd := range k.fds {
		if fd != absent {
			syscall.Close(fd)
		}
	}
	k.fds = nil
}
