package main_test

// A job starts exactly once or not at all, outlives all that stood around it when it
// started, and its log and exit code are never lost.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// listedJob is a job in jobs --json.
type listedJob struct {
	ID, Name, State string
	ExitCode        *int       `json:"exit_code"`
	StartedAt       *time.Time `json:"started_at"`
	EndedAt         *time.Time `json:"ended_at"`
}

// ended waits until every job has ended.
func (r *rig) ended() (jobs []listedJob) {
	r.t.Helper()
	until(r.t, 30*time.Second, "all jobs ended", func() bool {
		r.runJSON(&jobs, "jobs", "box", "--json")
		for _, j := range jobs {
			if j.State == "starting" || j.State == "running" {
				return false
			}
		}
		return true
	})
	return jobs
}

func TestFaultsRunKilled9(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    sshtest.Options
	}{
		{"tmux", sshtest.Options{}},
		{"no tmux", sshtest.Options{Hide: []string{"tmux"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.o)
			run := func(i int) []string {
				return []string{"run", "box", "--detach", "--name", fmt.Sprint("n", i), "--", fmt.Sprintf("echo n%d >>starts; exit 3", i)}
			}
			before := r.proxy.Passed(sshtest.ToServer)
			r.run(run(0)...)
			most := r.proxy.Passed(sshtest.ToServer) - before
			rng, kills := seeded(3), 0
			const runs = 10
			for i := 1; i <= runs; i++ {
				// Most of the bytes are the start itself; the login comes before it.
				if r.killed9(sshtest.ToServer, most/4+rng.Int64N(most), run(i)...) {
					kills++
				}
			}
			r.settled()
			listed := map[string]int{}
			for _, j := range r.ended() {
				listed[j.Name]++
				if j.State != "done" || j.ExitCode == nil || *j.ExitCode != 3 || j.StartedAt == nil || j.EndedAt == nil {
					t.Errorf("%+v", j)
				}
			}
			text, _ := os.ReadFile(filepath.Join(r.srv.Home, "starts"))
			for i := range runs + 1 {
				name := fmt.Sprint("n", i)
				started := strings.Count(string(text), name+"\n")
				if started > 1 || started != listed[name] {
					t.Errorf("%s started %d times and is listed %d times", name, started, listed[name])
				}
			}
			if len(listed) < 2 || len(listed) > runs || kills < runs/2 {
				t.Errorf("%d kills, %d of %d jobs began: that proves little", kills, len(listed), runs+1)
			}
		})
	}
}

// TestFaultsJobSurvives kills all that surrounds a job while its log is followed
// over a link that is cut again and again.
func TestFaultsJobSurvives(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	const lines = 400
	want := &strings.Builder{}
	for i := 1; i <= lines; i++ {
		fmt.Fprintf(want, "step %d %s\n", i, strings.Repeat("x", 200))
	}
	job := fmt.Sprintf(`pad=$(printf '%%0200d' 0 | tr 0 x); n=0; while [ $n -lt %d ]; do n=$((n+1)); echo "step $n $pad"; sleep 0.01; done; exit 7`, lines)
	log := filepath.Join(r.srv.Home, ".rentop")

	// rentop itself dies while it follows.
	if !r.killedWhen(func() bool { return len(r.srv.Processes()) > 0 && grew(log, "step 5 ") }, "run", "box", "--name", "long", "--", job) {
		t.Fatal("the job was over too soon")
	}
	follow := r.cmd("logs", "box", "long", "-f")
	var got, errs bytes.Buffer
	follow.Stdout, follow.Stderr = &got, &errs
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, 20*time.Second, "step 60 is logged", func() bool { return grew(log, "step 60 ") })
	if r.srv.KillUser9("tmux") == 0 {
		t.Error("no tmux to kill")
	}
	rng := seeded(4)
	for i, step := range []int{100, 140, 180, 220, 260} {
		until(t, 20*time.Second, "the log goes on", func() bool { return grew(log, fmt.Sprintf("step %d ", step)) })
		if i == 2 {
			r.srv.KillSessions9()
			continue
		}
		r.proxy.CutAfter(sshtest.ToClient, rng.Int64N(4000), []sshtest.Cut{sshtest.RST, sshtest.FIN}[i%2])
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f: %v: %s", err, &errs)
	}
	if got.String() != want.String() {
		t.Errorf("the log that was followed has %d bytes, written were %d: %s", got.Len(), want.Len(), &errs)
	}
	r.proxy.Heal()
	r.srv.Restart() // kill -9 of all sshd
	jobs := r.ended()
	if len(jobs) != 1 || jobs[0].State != "done" || jobs[0].ExitCode == nil || *jobs[0].ExitCode != 7 {
		t.Errorf("%+v", jobs)
	}
	if again := r.run("logs", "box", "long"); again != want.String() {
		t.Errorf("the log afterwards has %d bytes, written were %d", len(again), want.Len())
	}
}

// grew says whether a job's log below dir has come to text.
func grew(dir, text string) bool {
	logs, _ := filepath.Glob(filepath.Join(dir, "jobs", "*", "log"))
	for _, name := range logs {
		if b, _ := os.ReadFile(name); bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}
