//go:build unix

package demo

// Finding and ending all that runs on a simulated instance, whatever it did to get
// away: a daemon in its own session still has the instance's mark in its environment.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markName is the variable that all processes of an instance have; its value is the
// instance's own folder.
const markName = "RENTOP_DEMO_BOX"

// proc is one process of this machine.
type proc struct {
	pid, parent int
	marked      bool
}

// processes lists this machine's processes. mark matches as a prefix of the value,
// so that a demo's folder matches all of its instances.
func processes(mark string) []proc {
	if runtime.GOOS == "linux" {
		return fromProc([]byte(markName + "=" + mark))
	}
	return fromPS(markName + "=" + mark)
}

func fromProc(mark []byte) []proc {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	list := make([]proc, 0, len(dirs))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		env, _ := os.ReadFile(dir + "/environ") // another user's: not ours
		list = append(list, proc{pid, parent, bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...))})
	}
	return list
}

// fromPS reads ps, whose E (macOS) or e (BSD) shows the environment of one's own
// processes where the system permits it; descent finds most of the others.
func fromPS(mark string) []proc {
	args := []string{"axeww", "-o", "pid=,ppid=,stat=,command="}
	if runtime.GOOS == "darwin" {
		args = []string{"-A", "-E", "-ww", "-o", "pid=,ppid=,stat=,command="}
	}
	out, err := exec.Command("ps", args...).Output()
	if err != nil {
		return nil
	}
	var list []proc
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[2], "Z") {
			continue
		}
		pid, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		if err1 == nil && err2 == nil {
			list = append(list, proc{pid, parent, strings.Contains(line, mark)})
		}
	}
	return list
}

// running returns the marked processes, those in roots, and all below them; never
// this process.
func running(mark string, roots map[int]bool) []int {
	all := processes(mark)
	in := map[int]bool{}
	for _, p := range all {
		if p.marked || roots[p.pid] {
			in[p.pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if !in[p.pid] && in[p.parent] {
				in[p.pid], grew = true, true
			}
		}
	}
	delete(in, os.Getpid())
	list := make([]int, 0, len(in))
	for pid := range in {
		if pid > 1 {
			list = append(list, pid)
		}
	}
	return list
}

// endAll kills what runs under mark, as pulling the plug does, and returns when
// nothing is left.
func endAll(ctx context.Context, mark string, roots map[int]bool) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		left := running(mark, roots)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes of the demo do not end: %v", len(left), left)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is fine
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
