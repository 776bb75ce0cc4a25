package tmux

// What a job must survive.

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// Cut anywhere during Start and retried, a job starts exactly once.
func TestStartCut(t *testing.T) {
	i := newInstance(t, sshtest.Options{})
	p := sshtest.NewProxy(t, i.Addr)
	i.addr = p.Addr
	j := New(i, nil)
	rng := rand.New(rand.NewSource(1))
	const runs = 60
	cuts := 0
	for n := range runs {
		id := fmt.Sprint("c", n)
		dir, most := sshtest.ToServer, int64(14000)
		if n%3 == 2 {
			dir, most = sshtest.ToClient, 1200
		}
		fired := p.Fired()
		p.CutAfter(dir, rng.Int63n(most), sshtest.Cut(n%2))
		ctx := soon(t)
		for {
			_, err := j.Start(ctx, Spec{ID: id, Command: "echo " + id + " >>starts"})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %v", id, err)
			}
		}
		cuts += p.Fired() - fired
	}
	p.Heal()
	for n := range 3 {
		i.ended(j, fmt.Sprint("c", runs-1-n))
	}
	jobs, err := j.List(soon(t))
	if err != nil || len(jobs) != runs {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
	for _, job := range jobs {
		if job.State != Done || code(job) != 0 {
			t.Errorf("%+v exit %d", job, code(job))
		}
	}
	if got := strings.Fields(i.sh("sort starts | uniq -c | awk '$1 != 1'; wc -l <starts")); len(got) != 1 || got[0] != fmt.Sprint(runs) {
		t.Errorf("starts: %q, want each of %d once", got, runs)
	}
	if cuts < runs/2 {
		t.Errorf("only %d of %d starts were cut", cuts, runs)
	}
}

func TestKilled9(t *testing.T) {
	const command = "n=0; while [ $n -lt 300 ]; do n=$((n+1)); echo line $n; sleep 0.005; done; exit 7"
	for _, tt := range []struct {
		victim string
		hide   []string
		state  State
		code   int
	}{
		{"tmux", nil, Done, 7},
		{"tmux", []string{"script"}, Done, 7},
		{"sshd", nil, Done, 7},
		{"script -qfec", nil, Done, 137},
		{"/runner", nil, Lost, -1},
	} {
		t.Run(fmt.Sprint(tt.victim, tt.hide), func(t *testing.T) {
			t.Parallel()
			i := newInstance(t, sshtest.Options{Hide: tt.hide})
			j := New(i, nil)
			if _, err := j.Start(soon(t), Spec{ID: "f", Command: command}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			if tt.victim == "sshd" {
				i.Kill9()
				i.Restart()
			} else if i.KillUser9(tt.victim) == 0 {
				t.Fatalf("no %s to kill in %q", tt.victim, i.Processes())
			}
			job := i.ended(j, "f")
			if job.State != tt.state || code(job) != tt.code {
				t.Errorf("%+v exit %d", job, code(job))
			}
			if tt.code == 7 {
				if got := logOf(t, j, "f"); strings.Count(got, "line ") != 300 {
					t.Errorf("the log has %d lines, want 300", strings.Count(got, "line "))
				}
			}
			if tt.state == Lost {
				if job.Why == "" {
					t.Error("lost, and no word why")
				}
				if _, err := j.Kill(soon(t), "f"); err != nil {
					t.Error(err)
				}
			}
			for _, p := range i.Processes() {
				if strings.Contains(p, "line") {
					t.Errorf("left: %s", p)
				}
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	i := newInstance(t, sshtest.Options{SmallHome: "1m"})
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "d", Command: "head -c 3000000 /dev/zero | tr '\\0' x; sleep 0.3; exit 7"}); err != nil {
		t.Fatal(err)
	}
	if job := i.ended(j, "d"); job.State != Done || code(job) != 7 || job.LogSize < 500000 {
		t.Errorf("%+v exit %d", job, code(job))
	}
	if _, err := j.Start(soon(t), Spec{ID: "e", Command: "echo never"}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a start on a full disk: %v", err)
	}
	if err := j.Remove(soon(t), "d"); err != nil {
		t.Error(err)
	}
	if _, err := j.Start(soon(t), Spec{ID: "e", Command: "exit 5"}); err != nil {
		t.Error(err)
	}
	if job := i.ended(j, "e"); code(job) != 5 {
		t.Errorf("%+v", job)
	}
}

func TestParse(t *testing.T) {
	now := time.Unix(1700000100, 0)
	rec := func(box, pid, exit, begun, kill string) []byte {
		return []byte("rentop-jobs 1\nnow 1700000000\nbox " + box + "\njob a\nalive 0\npid " + pid + "\nexit " + exit + "\nbegun " + begun + "\nkill " + kill +
			"\nsize 5\nlast 6f6c640d1b5b33316d6e6577\nspec {\"ID\":\"a\",\"Name\":\"\\u001b[31mn\"}\nend\nrentop-jobs-end\n")
	}
	for _, tt := range []struct {
		out   []byte
		state State
		code  int
	}{
		{rec("b/1", "7 8 1699999990 1 b/1", "0 1699999995", "1", "0"), Done, 0},
		{rec("b/1", "7 8 1699999990 1 b/1", "0 ", "1", "0"), Lost, -1},
		{rec("b/1", "7 8 1699999990 1 b/1", "256 1699999995", "1", "0"), Lost, -1},
		{rec("b/2", "7 8 1699999990 1 b/1", "", "1", "0"), Lost, -1},
		{rec("b/1", "7 8 1699999990 1 b/1", "143 1699999995", "1", "1"), Killed, 143},
		{rec("b/1", "", "", "0", "0"), Starting, -1},
	} {
		a, err := parse(tt.out, now)
		jobs := a.jobs
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		if j := jobs[0]; j.State != tt.state || code(j) != tt.code || j.LastLine != "new" || strings.Contains(j.Name, "\x1b") {
			t.Errorf("%+v exit %d, want %s %d", j, code(j), tt.state, tt.code)
		}
	}
	a, _ := parse(rec("b/1", "7 8 1699999990 1 b/1", "0 1699999995", "1", "0"), now)
	if d := now.Sub(a.jobs[0].StartedAt); d != 10*time.Second {
		t.Errorf("started %v ago, want 10s: the instance's clock is 100 s late", d)
	}
	for _, bad := range []string{"", "x\n", "rentop-jobs 1\nnow 5\n"} {
		if _, err := parse([]byte(bad), now); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := parse([]byte("fail no such job\n"), now); !errors.Is(err, ErrNoJob) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("rentop-jobs 1\nnow 1700000000\nbox b/1\njob a\nalive 1\npid 7 8 1699999990 1 b/1\nexit 0 1699999995\nbegun 1\nkill 0\nsize 5\nlast 6f\nspec {}\nend\nrentop-jobs-end\n"))
	f.Add([]byte("rentop-jobs 1\nnow 1700000000\nbox b/1\njob a\nalive 0\npid 7 8 1699999990 1 b/1\nexit 0 1699999995\nbegun 1\nkill 0\nsettled 1\nend\nolder 3\nlogs\n" +
		"-rw------- 1 0 0 5 Nov 30 10:00 a/log\nsums\nsum a\npid 7 8 1699999990 1 b/1\nexit 0 1699999995\nsize 5\nlast 6f\nspec {}\nsum-end\n\nrentop-jobs-end\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parse(b, time.Unix(1700000000, 0))
		if err != nil {
			return
		}
		for _, j := range a.jobs {
			if checkID(j.ID) != nil || (j.State == Done) != (j.ExitCode != nil && j.State != Killed) && j.State != Killed || strings.ContainsAny(j.Name+j.LastLine+j.Command, "\x1b\n\x00") {
				t.Fatalf("%+v", j)
			}
		}
	})
}
