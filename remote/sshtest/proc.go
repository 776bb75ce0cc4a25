package sshtest

// Reading /proc: whose processes run, and which belong to a server.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type process struct {
	pid, parent, uid int
	name             string // comm
	command          string // argv, joined by spaces
	state            string // "R", "S", "Z", …
}

// server says whether this is a daemon's own process (sshd-session and sshd-auth
// are OpenSSH 9.8's).
func (p process) server() bool {
	return strings.HasPrefix(p.name, "sshd") || p.name == "dropbear"
}

func processes() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var list []process
	for _, dir := range dirs {
		status, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue // gone meanwhile
		}
		p := process{uid: -1}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		for _, line := range strings.Split(string(status), "\n") {
			key, value, _ := strings.Cut(line, ":")
			f := strings.Fields(value)
			if len(f) == 0 {
				continue
			}
			switch key {
			case "Name":
				p.name = f[0]
			case "State":
				p.state = f[0]
			case "PPid":
				p.parent, _ = strconv.Atoi(f[0])
			case "Uid":
				p.uid, _ = strconv.Atoi(f[0])
			}
		}
		argv, _ := os.ReadFile(dir + "/cmdline")
		p.command = strings.TrimSpace(strings.ReplaceAll(string(argv), "\x00", " "))
		list = append(list, p)
	}
	return list
}

// killServers kills the server processes that descend from pid through server
// processes only. Each is stopped before its children are listed: one that forks
// meanwhile (as sshd does right after the login) would leave an orphan.
func killServers(pid int, itself bool) {
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		if i > 0 || itself {
			freeze(found[i])
		}
		for _, p := range processes() {
			if p.parent == found[i] && p.server() {
				found = append(found, p.pid)
			}
		}
	}
	for i, p := range found {
		if i > 0 || itself {
			kill9(p)
		}
	}
}

func freeze(pid int) {
	exec.Command("kill", "-s", "STOP", strconv.Itoa(pid)).Run()
	for try := 0; try < 50; try++ {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if err != nil || strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z") {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func kill9(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}
