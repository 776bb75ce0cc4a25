package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/ring"
	"rentop/remote/gpu/sample"
)

// TestJobs: what a job's folder tells, in the form of remote/tmux.
func TestJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, err := box()
	if err != nil {
		t.Fatal(err)
	}
	_, start, _ := statOf(os.Getpid())
	running := fmt.Sprintf("%-119s\n", fmt.Sprintf("%d %d 1764500000 1 %s", os.Getpid(), start, here))
	job := func(id string, age time.Duration, files map[string]string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, id, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(-age)
		os.Chtimes(filepath.Join(dir, id, "spec"), at, at)
	}
	blank := strings.Repeat(" ", 39) + "\n"
	job("runs", time.Hour, map[string]string{"spec": "{}", "pid": running, "exit": blank})
	job("over", time.Hour, map[string]string{"spec": "{}", "pid": running, "exit": "3 1764500000\n"})
	job("rebooted", time.Hour, map[string]string{"spec": "{}", "pid": strings.Replace(running, here, "another/1", 1), "exit": blank})
	job("killed", time.Hour, map[string]string{"spec": "{}", "pid": strings.Replace(running, fmt.Sprint(start), "1", 1), "exit": blank})
	job("starting", time.Second, map[string]string{"spec": "{}", "exit": blank})
	job("never", time.Hour, map[string]string{"spec": "{}", "exit": blank})
	job("nospec", time.Hour, map[string]string{"pid": running})
	job("-bad", time.Hour, map[string]string{"spec": "{}", "pid": running})

	l := jobList{dir: dir, box: here, ended: map[string]string{}}
	for range 2 { // the second time from memory
		j := l.read(time.Now())
		if got := strings.Join(j.Running, " "); j.Err != "" || got != "runs starting" {
			t.Errorf("running %q, %s", got, j.Err)
		}
		if fmt.Sprint(j.Ended) != "map[killed:lost: its runner was killed over:exit code 3 rebooted:lost: the instance was started again]" {
			t.Errorf("ended %v", j.Ended)
		}
	}
	l = jobList{dir: filepath.Join(dir, "none"), box: here, ended: map[string]string{}}
	if j := l.read(time.Now()); j.Err != "" || len(j.Running) != 0 {
		t.Errorf("no jobs yet: %+v", j)
	}
	l.dir = filepath.Join(dir, "runs", "spec")
	if j := l.read(time.Now()); j.Err == "" {
		t.Error("a folder that cannot be read tells of no jobs")
	}
}

// TestRunScript: output is bounded, time is too, and children end with it.
func TestRunScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(text string, limit time.Duration) (string, error) {
		return runScript(t.Context(), dir, script{name: "act", text: text, limit: limit, env: []string{"RENTOP_GUARD=idle"}})
	}
	if out, err := run(`echo "by $RENTOP_GUARD"`, time.Minute); err != nil || out != "by idle" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run("i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done; exit 4", time.Minute); err == nil || len(out) > maxOut {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	began := time.Now()
	_, err := run("sleep 61234 & sleep 61234; wait", 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end") || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if _, err := run("sleep 3 & exit 0", time.Minute); err != nil { // what it leaves behind is its affair
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runScript(ctx, dir, script{name: "act", text: "true", limit: time.Minute}); err == nil {
		t.Error("ran although it was over")
	}
}

// TestThin: a step is one point with the means of what it stands for; a time that is
// doubtful is no history.
func TestThin(t *testing.T) {
	t.Parallel()
	at := func(sec int, util float64, over time.Duration, sure bool) ring.Point {
		g := sample.NewGPU("")
		g.Util = sample.Of(util)
		return ring.Point{Sample: sample.Sample{TakenAt: noon.Add(time.Duration(sec) * time.Second), GPUs: []sample.GPU{g}}, Over: over, Sure: sure}
	}
	got := thin([]ring.Point{
		at(-600, 9, 10*time.Second, true), at(0, 100, 10*time.Second, true), at(10, 0, 10*time.Second, true), at(20, 50, time.Second, false),
		at(60, 20, time.Second, true), at(61, 40, time.Second, true),
	}, noon.Add(-time.Minute), time.Minute)
	var vals []float64
	for _, p := range got {
		vals = append(vals, p.GPUs[0].Util.V)
	}
	if fmt.Sprint(vals) != "[50 30]" {
		t.Errorf("%v", vals)
	}
}
