package main_test

// The speeds that a person feels: how soon the screen is there, how soon it answers
// a key, and what it costs to leave it open.

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

// fleetOf writes a config of n instances, all on srv.
func fleetOf(b *testing.B, n int, srv *sshtest.Server) (dir string) {
	b.Helper()
	dir = b.TempDir()
	var text strings.Builder
	addr, key := "root@192.0.2.1:22", "/nonexistent"
	if srv != nil {
		addr, key = srv.User+"@"+srv.Addr, srv.KeyFile
	}
	login, hostPort, _ := strings.Cut(addr, "@")
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		fmt.Fprintf(&text, "[instance.box%02d]\nssh = \"ssh -p %s -i %s %s@%s\"\nrate = { per_hour = \"8.00\", currency = \"CNY\" }\nlook_in = [\"~\"]\n\n", i, port, key, login, host)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

// show starts rentop in a terminal of its own and copies what it draws to seen.
func show(b *testing.B, bin, dir string, seen *bytes.Buffer, until func([]byte) bool) (*exec.Cmd, *os.File, time.Duration) {
	b.Helper()
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "RENTOP_CONFIG_DIR="+dir, "RENTOP_STATE_DIR="+filepath.Join(dir, "state"), "RENTOP_LANG=en", "TERM=xterm-256color")
	began := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 140})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for !until(seen.Bytes()) {
		n, err := tty.Read(buf)
		if err != nil {
			b.Fatalf("rentop ended: %v: %q", err, seen.Bytes())
		}
		seen.Write(buf[:n])
	}
	return cmd, tty, time.Since(began)
}

// BenchmarkFirstFrame is from exec to the first frame that names an instance.
func BenchmarkFirstFrame(b *testing.B) {
	bin := build(b)
	dir := fleetOf(b, 20, nil)
	var all []time.Duration
	for b.Loop() {
		var seen bytes.Buffer
		cmd, tty, took := show(b, bin, dir, &seen, func(s []byte) bool { return bytes.Contains(s, []byte("box00")) })
		all = append(all, took)
		cmd.Process.Kill()
		tty.Close()
		cmd.Wait()
	}
	report(b, all)
}

// report tells the median and the slow end: a shared machine has moments of its own.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}

// BenchmarkKey is from a key to the first byte that answers it, over twenty instances.
func BenchmarkKey(b *testing.B) {
	dir := fleetOf(b, 20, nil)
	var seen bytes.Buffer
	cmd, tty, _ := show(b, build(b), dir, &seen, func(s []byte) bool { return bytes.Contains(s, []byte("box00")) })
	defer func() {
		cmd.Process.Kill()
		tty.Close()
		cmd.Wait()
	}()
	drawn := make(chan time.Time, 1024)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := tty.Read(buf); err != nil {
				close(drawn)
				return
			}
			drawn <- time.Now()
		}
	}()
	var took []time.Duration
	for b.Loop() {
		for quiet := false; !quiet; { // not in the middle of a frame of its own
			select {
			case <-drawn:
			case <-time.After(100 * time.Millisecond):
				quiet = true
			}
		}
		began := time.Now()
		if _, err := tty.Write([]byte{"jk"[len(took)%2]}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-drawn).Sub(began))
	}
	report(b, took)
}

// BenchmarkIdleTwenty is the processor time of rentop alone, in percent of a
// core, while twenty live sessions are on an idle screen.
func BenchmarkIdleTwenty(b *testing.B) {
	needtest.That(b, runtime.GOOS == "linux", "Linux's /proc/PID/stat")
	srv := sshtest.Start(b, sshtest.Options{Extra: []string{"MaxStartups 100", "MaxSessions 20"}})
	bin := build(b)
	dir := fleetOf(b, 20, srv)
	for i := range 20 { // the host key is known beforehand
		cmd := exec.Command(bin, "exec", fmt.Sprintf("box%02d", i), "--accept-host-key", ssh.FingerprintSHA256(srv.HostKey()), "--", "true")
		cmd.Env = append(os.Environ(), "RENTOP_CONFIG_DIR="+dir, "RENTOP_STATE_DIR="+filepath.Join(dir, "state"))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	var seen bytes.Buffer
	cmd, tty, _ := show(b, bin, dir, &seen, func(s []byte) bool { return bytes.Contains(s, []byte("20 live")) })
	defer func() {
		cmd.Process.Kill()
		tty.Close()
		cmd.Wait()
	}()
	go func() { // a terminal that is not read would hold rentop up
		buf := make([]byte, 64<<10)
		for {
			if _, err := tty.Read(buf); err != nil {
				return
			}
		}
	}()
	time.Sleep(10 * time.Second) // the first look for files is over
	const span = 20 * time.Second
	b.ResetTimer()
	before := cpuSeconds(b, cmd.Process.Pid)
	for range b.N {
		time.Sleep(span)
	}
	used := cpuSeconds(b, cmd.Process.Pid) - before
	b.ReportMetric(100*used/(span.Seconds()*float64(b.N)), "%core")
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
		for line := range strings.Lines(string(status)) {
			if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(kb)[0], 64)
				b.ReportMetric(n/1024, "MiB-rss")
			}
		}
	}
}

// cpuSeconds is what a process has used, user and system. Fields 14 and 15 of
// /proc/PID/stat, in hundredths of a second (proc(5); USER_HZ is 100 on Linux).
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}
