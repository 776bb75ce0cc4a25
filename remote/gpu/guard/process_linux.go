package guard

// Processes of this machine: who we are, what the person's jobs do, and running a
// script.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// statOf is the state and the start, in ticks since boot, of a process.
func statOf(pid int) (state string, start uint64, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	f := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:]) // the name before may hold anything
	if len(f) < 20 {
		return "", 0, false
	}
	start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return string(f[0]), start, err == nil
}

func alive(pid int, start uint64) bool {
	state, at, ok := statOf(pid)
	return ok && at == start && state != "Z"
}

// box is the boot of the machine and of the container, as remote/tmux writes it.
func box() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, start, ok := statOf(1)
	if err != nil || !ok {
		return "", errors.New("which boot this is cannot be read")
	}
	return fmt.Sprintf("%s/%d", strings.TrimSpace(string(id)), start), nil
}

const (
	maxJobs = 5000
	newJob  = 2 * time.Minute // a job may take so long from its folder to its start
)

// jobList reads the folders of remote/tmux. What has ended is read once.
type jobList struct {
	dir   string
	box   string
	ended map[string]string
}

func (l *jobList) read(now time.Time) Jobs {
	j := Jobs{Ended: l.ended}
	d, err := os.Open(l.dir)
	if errors.Is(err, os.ErrNotExist) {
		return j
	}
	if err != nil {
		j.Err = err.Error()
		return j
	}
	defer d.Close()
	names, err := d.Readdirnames(maxJobs + 1)
	if len(names) > maxJobs {
		j.Err = fmt.Sprintf("there are more than %d", maxJobs)
		return j
	}
	if err != nil && !errors.Is(err, io.EOF) {
		j.Err = err.Error()
		return j
	}
	slices.Sort(names)
	for _, id := range names {
		if _, over := l.ended[id]; over || !isJob(id) {
			continue
		}
		switch how, over := l.look(filepath.Join(l.dir, id), now); {
		case over && how != "":
			l.ended[id] = how
		case !over:
			j.Running = append(j.Running, id)
		}
	}
	return j
}

// look says whether a job is over, and how; "" is one that never was.
func (l *jobList) look(dir string, now time.Time) (how string, over bool) {
	line := func(name string) []string {
		b, _ := readBounded(filepath.Join(dir, name), 400)
		return strings.Fields(string(b))
	}
	fi, err := os.Stat(filepath.Join(dir, "spec"))
	if err != nil {
		return "", true
	}
	pid, exit := line("pid"), line("exit")
	switch {
	case len(exit) == 2:
		return "exit code " + exit[0], true
	case len(pid) != 5:
		if now.Sub(fi.ModTime()).Abs() < newJob {
			return "", false
		}
		return "", true
	case pid[4] != l.box:
		return "lost: the instance was started again", true
	}
	n, err1 := strconv.Atoi(pid[0])
	start, err2 := strconv.ParseUint(pid[1], 10, 64)
	if err1 == nil && err2 == nil && alive(n, start) {
		return "", false
	}
	if exit = line("exit"); len(exit) == 2 { // it may have ended between
		return "exit code " + exit[0], true
	}
	return "lost: its runner was killed", true
}

// moving says whether rentop's helper moves files for this login.
func moving() bool {
	own := uint32(os.Getuid())
	d, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(1 << 16)
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		var fi syscall.Stat_t
		if syscall.Stat("/proc/"+n, &fi) != nil || fi.Uid != own {
			continue
		}
		b, _ := readBounded("/proc/"+n+"/cmdline", 4096)
		if !bytes.Contains(b, []byte("\x00serve\x00sync\x00")) {
			continue
		}
		env, _ := os.ReadFile("/proc/" + n + "/environ")
		if bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+os.Getenv("HOME")+"\x00")) {
			return true
		}
	}
	return false
}

// runScript runs one with sh, in the person's home, and gives the end of what it
// printed. It is in a file, not in the arguments that every user may read.
func runScript(ctx context.Context, dir string, s script) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	file := filepath.Join(dir, s.name+".sh")
	if err := os.WriteFile(file, []byte(s.text+"\n"), 0o600); err != nil {
		return "", err
	}
	out := &tail{max: maxOut}
	cmd := exec.CommandContext(ctx, "/bin/sh", file)
	cmd.Env = append(os.Environ(), s.env...)
	if cmd.Dir = os.Getenv("HOME"); cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second // what it left behind may hold its output open
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	case ctx.Err() == context.DeadlineExceeded:
		err = fmt.Errorf("it did not end within %v", s.limit)
	}
	return strings.TrimSpace(string(out.b)), err
}

// tail keeps the last bytes.
type tail struct {
	b   []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - t.max; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}
