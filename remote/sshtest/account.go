package sshtest

// The throw-away user: made by useradd, ended with everything it runs.

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// passwd serialises useradd and userdel within this process; between processes
// they wait for each other's lock file.
var passwd sync.Mutex

type account struct {
	name     string
	uid, gid int
}

func newAccount(t testing.TB, home, shell, password string) *account {
	t.Helper()
	var b [5]byte
	rand.Read(b[:])
	a := &account{name: "rt" + hex.EncodeToString(b[:])}
	run := func(stdin, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, bytes.TrimSpace(out))
		}
	}
	passwd.Lock()
	defer passwd.Unlock()
	// '*' is "no password", where '!' is "locked", which sshd refuses.
	run("", "useradd", "-M", "-d", home, "-s", shell, "-p", "*", "-K", "MAIL_DIR=/nonexistent", a.name)
	t.Cleanup(func() {
		a.killAll()
		passwd.Lock()
		defer passwd.Unlock()
		for try := 0; try < 20; try++ { // a session's last process may still be dying
			if out, err := exec.Command("userdel", a.name).CombinedOutput(); err == nil || bytes.Contains(out, []byte("does not exist")) {
				return
			}
			a.killAll()
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("userdel %s failed", a.name)
	})
	if password != "" {
		run(a.name+":"+password+"\n", "chpasswd")
	}
	u, err := user.Lookup(a.name)
	check(t, err)
	a.uid, err = strconv.Atoi(u.Uid)
	check(t, err)
	a.gid, err = strconv.Atoi(u.Gid)
	check(t, err)
	return a
}

// fill makes dir, owned by the user, with the files in it.
func (a *account) fill(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		check(t, os.WriteFile(file, []byte(text), 0o644))
	}
	check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, a.uid, a.gid)
	}))
}

// killAll ends every process of the user, also those it forks meanwhile.
func (a *account) killAll() {
	for try := 0; try < 200; try++ {
		if a.kill9("") == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (a *account) kill9(text string) int {
	n := 0
	for _, p := range processes() {
		if p.uid == a.uid && p.state != "Z" && strings.Contains(p.command, text) {
			kill9(p.pid)
			n++
		}
	}
	return n
}

func (a *account) processes() []string {
	var list []string
	for _, p := range processes() {
		if p.uid == a.uid && p.state != "Z" && !p.server() {
			list = append(list, fmt.Sprintf("%d %s", p.pid, p.command))
		}
	}
	return list
}
