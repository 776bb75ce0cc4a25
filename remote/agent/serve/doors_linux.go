package serve

// Further stripes: another process on the instance, started by rentop over another
// channel, hands its stdin and stdout to this one through a socket and waits. So
// no byte is copied twice, and whatever ends the channel is seen here.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rentop/remote/agent/hello"
	"rentop/remote/agent/link"
)

const (
	maxSocketPath = 107
	doorPrefix    = "rentop-join-"
	maxJoined     = 32
)

// doors is the socket of one serving process, in a folder of its own.
type doors struct {
	dir, path string

	mu     sync.Mutex // guards the fields below
	fd     int
	closed bool
	count  int
}

// open makes the socket; "" where there is no place for one, which only means
// that the link has one stripe.
func (d *doors) open() string {
	d.fd = -1
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} {
		if base == "" || len(base) > 70 {
			continue
		}
		abandoned(base)
		dir, err := os.MkdirTemp(base, doorPrefix) // 0700
		if err != nil {
			continue
		}
		if d.fd, err = listen(filepath.Join(dir, "s")); err == nil {
			d.dir, d.path = dir, filepath.Join(dir, "s")
			return d.path
		}
		os.RemoveAll(dir)
	}
	return ""
}

func listen(path string) (int, error) {
	if len(path) > maxSocketPath {
		return -1, errors.New("the path is too long for a socket")
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Listen(fd, 16)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// abandoned removes the folders of processes that were killed: nobody listens at
// their sockets.
func abandoned(base string) {
	found, _ := filepath.Glob(filepath.Join(base, doorPrefix+"*"))
	for _, dir := range found[:min(len(found), 100)] {
		fi, err := os.Lstat(dir)
		if err != nil || !fi.IsDir() || time.Since(fi.ModTime()) < time.Minute {
			continue
		}
		if st, is := fi.Sys().(*syscall.Stat_t); !is || int(st.Uid) != os.Getuid() {
			continue
		}
		fd, err := connect(filepath.Join(dir, "s"))
		if err == nil {
			unix.Close(fd)
			continue
		}
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
			os.Remove(filepath.Join(dir, "s"))
			os.Remove(dir)
		}
	}
}

func connect(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// admit takes in who joins until the socket is closed.
func (d *doors) admit(l *link.Carrier) {
	if d.fd < 0 {
		return
	}
	for {
		fd, _, err := unix.Accept4(d.fd, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if err != nil {
			return
		}
		d.mu.Lock()
		d.count++
		full := d.closed || d.count > maxJoined
		d.mu.Unlock()
		if full {
			unix.Close(fd)
			continue
		}
		go func() { // ends with who joins, or the process
			if s, err := receive(fd); err != nil {
				unix.Close(fd)
			} else if err := greetStripe(s); err != nil {
				s.Close()
			} else {
				l.Add(s)
			}
		}()
	}
}

// receive takes the two files that come over the socket.
func receive(fd int) (*stripe, error) {
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(2*4))
	_, n, _, _, err := unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("no files came")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 2 {
		for _, f := range fds {
			unix.Close(f)
		}
		return nil, errors.New("not two files came")
	}
	return &stripe{in: file(fds[0], "stripe"), out: file(fds[1], "stripe"), end: sync.OnceFunc(func() { unix.Close(fd) })}, nil
}

// greetStripe makes both sides begin at the same time: rentop uses a stripe once
// it has read the first word, and we once we have read the second.
func greetStripe(s *stripe) error {
	if _, err := io.WriteString(s, hello.Joined); err != nil {
		return err
	}
	s.in.SetReadDeadline(time.Now().Add(time.Minute)) // an error: it cannot be; its channel's end ends it
	var b [len(hello.Go)]byte
	if _, err := io.ReadFull(s, b[:]); err != nil {
		return err
	}
	if string(b[:]) != hello.Go {
		return fmt.Errorf("%q came", b)
	}
	return s.in.SetReadDeadline(time.Time{})
}

func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.path == "" {
		return
	}
	d.closed = true
	os.Remove(d.path)
	os.Remove(d.dir)
	unix.Shutdown(d.fd, unix.SHUT_RDWR) // wakes Accept
	unix.Close(d.fd)
}

// join hands stdin and stdout to the process that serves at path and waits until
// it lets go of them.
func join(path string) error {
	if !strings.Contains(path, doorPrefix) {
		return fmt.Errorf("%s is no socket of rentop's", path)
	}
	fd, err := connect(path)
	if err != nil {
		return fmt.Errorf("join %s: %w", path, err)
	}
	if err := unix.Sendmsg(fd, []byte{1}, unix.UnixRights(0, 1), nil, 0); err != nil {
		return fmt.Errorf("join %s: %w", path, err)
	}
	os.Stdin.Close() // so that only the serving process holds them
	os.Stdout.Close()
	for {
		n, err := unix.Read(fd, make([]byte, 1))
		if err != unix.EINTR && n <= 0 {
			return nil
		}
	}
}

// file makes a file of a descriptor that the runtime can wait on.
func file(fd int, name string) *os.File {
	unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}

func stdio() *stripe { return &stripe{in: file(0, "stdin"), out: file(1, "stdout")} }
