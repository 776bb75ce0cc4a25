package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

const hostile = "a'b\"c $HOME `id` \\n !! %s ; & | <>(){}[]*?~# \u00e9\u4e2d\u6587"

func TestJob(t *testing.T) {
	hide := func(names ...string) sshtest.Options { return sshtest.Options{Hide: names} }
	for _, tt := range []struct {
		name string
		o    sshtest.Options
		tmux bool
	}{
		{"bash", sshtest.Options{}, true},
		{"dash", sshtest.Options{Shell: "dash"}, true},
		{"fish noisy", sshtest.Options{Shell: "fish", Noise: true}, true},
		{"tcsh noisy", sshtest.Options{Shell: "tcsh", Noise: true}, true},
		{"dropbear noisy", sshtest.Options{Dropbear: true, Noise: true}, true},
		{"no tmux", hide("tmux"), false},
		{"no script", hide("script"), true},
		{"no tmux, no script", hide("tmux", "script"), false},
		{"no tmux, no setsid", hide("tmux", "setsid"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			needtest.Program(t, "tmux")
			i := newInstance(t, tt.o)
			j := New(i, nil)
			s := Spec{ID: "j1", Name: "n" + hostile, Dir: "~/a b",
				Command: `sh -c 'pwd; printf "%s\\n" "$GREETING"; umask; sleep 0.7; exit 7'`, Env: map[string]string{"GREETING": hostile}}
			if _, err := j.Start(soon(t), s); err == nil || !strings.Contains(err.Error(), "no such folder") {
				t.Errorf("a missing folder: %v", err)
			}
			i.sh("mkdir -p 'a b'")
			job, err := j.Start(soon(t), s)
			if err != nil {
				t.Fatal(err)
			}
			if job.State != Running || job.Tmux != tt.tmux || job.Name != s.Name || job.ExitCode != nil || time.Since(job.StartedAt) > 10*time.Second || job.PID == 0 {
				t.Errorf("started: %+v", job)
			}
			again, err := j.Start(soon(t), s)
			if err != nil || again.PID != job.PID {
				t.Errorf("started again: %+v, %v", again, err)
			}
			job = i.ended(j, "j1")
			if job.State != Done || code(job) != 7 || job.EndedAt.Before(job.StartedAt) {
				t.Errorf("ended: %+v (exit %d)", job, code(job))
			}
			if got := strings.ReplaceAll(logOf(t, j, "j1"), "\r", ""); !strings.Contains(got, i.Home+"/a b\n"+hostile+"\n0022\n") {
				t.Errorf("log = %q", got)
			}
			if job.LastLine != "0022" {
				t.Errorf("last line = %q", job.LastLine)
			}
			if _, err := j.Restart(soon(t), "j1", "j2"); err != nil {
				t.Error(err)
			}
			if job := i.ended(j, "j2"); code(job) != 7 || job.Name != s.Name {
				t.Errorf("restarted: %+v", job)
			}
			if err := j.Remove(soon(t), "j1"); err != nil {
				t.Error(err)
			}
			jobs, err := j.List(soon(t))
			if err != nil || len(jobs) != 1 || jobs[0].ID != "j2" {
				t.Errorf("after Remove: %+v, %v", jobs, err)
			}
		})
	}
}

func TestJobHostileCommand(t *testing.T) {
	i := newInstance(t, sshtest.Options{})
	j := New(i, nil)
	command := "printf '%s\\n' 'EOF' '" + strings.ReplaceAll(hostile, "'", `'\''`) + "'\nprintf '\\033[31mred\\033[0m\\n'; exit 255"
	if _, err := j.Start(soon(t), Spec{ID: "h", Command: command}); err != nil {
		t.Fatal(err)
	}
	if job := i.ended(j, "h"); code(job) != 255 || job.LastLine != "red" {
		t.Errorf("%+v exit %d", job, code(job))
	}
	if got := logOf(t, j, "h"); got != "EOF\r\n"+hostile+"\r\n\x1b[31mred\x1b[0m\r\n" {
		t.Errorf("log = %q", got)
	}
	for _, s := range []Spec{{ID: "../x", Command: "a"}, {ID: "", Command: "a"}, {ID: "-x", Command: "a"}, {ID: "a.b", Command: "a"}, {ID: "x"},
		{ID: "x", Command: "a\x00"}, {ID: "x", Command: "a", Env: map[string]string{"A B": ""}}, {ID: "x", Command: "a", Dir: "b\nc"},
		{ID: "x", Command: strings.Repeat("a", 70000)}} {
		if _, err := j.Start(soon(t), s); err == nil {
			t.Errorf("%+.50v was started", s)
		}
	}
	if _, err := j.Kill(soon(t), "nobody"); !errors.Is(err, ErrNoJob) {
		t.Errorf("kill of nobody: %v", err)
	}
	if _, err := j.Restart(soon(t), "nobody", "x"); !errors.Is(err, ErrNoJob) {
		t.Errorf("restart of nobody: %v", err)
	}
	if err := j.Remove(soon(t), "nobody"); !errors.Is(err, ErrNoJob) {
		t.Errorf("remove of nobody: %v", err)
	}
	for _, follow := range []bool{false, true} {
		if _, err := j.Follow(soon(t), "nobody", 0, follow, &bytes.Buffer{}); !errors.Is(err, ErrNoJob) {
			t.Errorf("log of nobody: %v", err)
		}
	}
}

// conda sets itself up at the end of .bashrc, behind Debian's guard against
// shells that are not interactive.
const guarded = "case $- in *i*) ;; *) return;; esac\n# >>> conda initialize >>>\nconda() { echo \"conda $*\"; }\nexport CONDA=yes\n"

func TestJobEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    sshtest.Options
	}{
		{".bash_profile", sshtest.Options{Files: map[string]string{".bash_profile": "conda() { echo \"conda $*\"; }\nexport CONDA=yes\n"}}},
		{".bashrc", sshtest.Options{Files: map[string]string{".bash_profile": ". ~/.bashrc\n", ".bashrc": guarded}}},
		{"fish", sshtest.Options{Shell: "fish", Files: map[string]string{".config/fish/config.fish": "function conda; echo \"conda $argv\"; end\nset -gx CONDA yes\n"}}},
		{"tcsh", sshtest.Options{Shell: "tcsh", Files: map[string]string{".cshrc": "alias conda 'echo conda \\!*'\nsetenv CONDA yes\n"}}},
		{"vast", sshtest.Options{Files: map[string]string{".bash_profile": ". ~/.bashrc\n", ".bashrc": "if [ -n \"$SSH_CONNECTION\" ] && [ -t 0 ]; then tmux attach; exit; fi\n" + guarded}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := newInstance(t, tt.o)
			j := New(i, nil)
			if _, err := j.Start(soon(t), Spec{ID: "e", Command: "conda run $CONDA"}); err != nil {
				t.Fatal(err)
			}
			if job := i.ended(j, "e"); code(job) != 0 || job.LastLine != "conda run yes" {
				t.Errorf("exit %d, last line %q; log %q", code(job), job.LastLine, logOf(t, j, "e"))
			}
		})
	}
}

// Start-up files that leave an interactive shell do not lose the job.
func TestJobStartUpFilesExit(t *testing.T) {
	i := newInstance(t, sshtest.Options{Files: map[string]string{".bash_profile": "case $- in *i*) echo bye; exit 3;; esac\n"}})
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "x", Command: "echo came; exit 9"}); err != nil {
		t.Fatal(err)
	}
	if job := i.ended(j, "x"); code(job) != 9 || job.LastLine != "came" {
		t.Errorf("%+v exit %d", job, code(job))
	}
}

func TestKill(t *testing.T) {
	// A tree with everything that tries to live on: ignored signals, sessions of their own, a background child.
	tree := `trap '' TERM HUP; setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & (setsid sleep 1000 &) ; sleep 1000 & while :; do sleep 1; done`
	for _, tt := range []struct {
		name    string
		o       sshtest.Options
		command string
	}{
		{"tree", sshtest.Options{}, tree},
		{"list", sshtest.Options{}, "sleep 1000; touch went-on; sleep 1000"},
		{"no tmux", sshtest.Options{Hide: []string{"tmux"}}, tree},
		{"no script", sshtest.Options{Hide: []string{"script"}}, tree},
		{"fish", sshtest.Options{Shell: "fish"}, "sleep 1000; touch went-on; sleep 1000"},
		{"dropbear", sshtest.Options{Dropbear: true, Shell: "dash"}, tree},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := newInstance(t, tt.o)
			j := New(i, nil)
			j.grace = time.Second
			if _, err := j.Start(soon(t), Spec{ID: "k", Command: tt.command}); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Start(soon(t), Spec{ID: "kk", Command: "sleep 1000"}); err != nil {
				t.Fatal(err)
			}
			if err := j.Remove(soon(t), "k"); !errors.Is(err, ErrRunning) {
				t.Errorf("remove of a running job: %v", err)
			}
			time.Sleep(200 * time.Millisecond)
			job, err := j.Kill(soon(t), "k")
			if err != nil || job.State != Killed || job.EndedAt.IsZero() {
				t.Errorf("killed: %+v exit %d, %v", job, code(job), err)
			}
			if job := find(t, j, "kk"); job.State != Running {
				t.Errorf("the other job: %+v", job)
			}
			if _, err := j.Kill(soon(t), "kk"); err != nil {
				t.Error(err)
			}
			i.conn(soon(t))
			i.mu.Lock()
			i.c.Close()
			i.mu.Unlock()
			for end := time.Now().Add(3 * time.Second); len(i.Processes()) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("left: %q", i.Processes())
				}
			}
			if got := i.sh("ls"); strings.Contains(got, "went-on") {
				t.Error("the shell went on with the next command after TERM")
			}
		})
	}
}

// TestKillStarting: a kill at any moment of the start ends the job for good.
func TestKillStarting(t *testing.T) {
	t.Parallel()
	i := newInstance(t, sshtest.Options{})
	i.sh(`printf 'trap "" TERM\nsleep 0.3\n' >.bash_profile`)
	j := New(i, nil)
	j.grace = 0
	for n := range 14 {
		id := fmt.Sprint("s", n)
		started := make(chan Job, 1)
		go func() {
			job, _ := j.Start(soon(t), Spec{ID: id, Command: "touch " + id + "-ran; sleep 1000"})
			started <- job
		}()
		time.Sleep(time.Duration(n) * 40 * time.Millisecond)
		var job Job
		var err error
		for {
			if job, err = j.Kill(soon(t), id); !errors.Is(err, ErrNoJob) {
				break
			}
		}
		if err != nil || job.State != Killed || job.EndedAt.IsZero() || job.StartedAt.IsZero() {
			t.Errorf("%s: %+v exit %d, %v", id, job, code(job), err)
		}
		if job := <-started; job.State != Killed && job.State != Running {
			t.Errorf("%s: start says %+v", id, job)
		}
	}
	for _, job := range mustList(t, j) {
		if job.State != Killed {
			t.Errorf("%+v", job)
		}
	}
	for _, p := range i.Processes() {
		if strings.Contains(p, "sleep 1000") {
			t.Errorf("left: %s", p)
		}
	}
}

func mustList(t *testing.T, j *Jobs) []Job {
	t.Helper()
	jobs, err := j.List(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func TestFollow(t *testing.T) {
	i := newInstance(t, sshtest.Options{})
	p := sshtest.NewProxy(t, i.Addr)
	i.addr = p.Addr
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "f", Command: "n=0; while [ $n -lt 300 ]; do n=$((n+1)); seq $n $((n+99)); sleep 0.01; done"}); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	var next int64
	cuts := 0
	for ctx := soon(t); ; cuts++ {
		if cuts < 8 {
			p.CutAfter(sshtest.ToClient, int64(3000+cuts*4937), sshtest.Cut(cuts%2))
		} else {
			p.Heal()
		}
		var err error
		if next, err = j.Follow(ctx, "f", next, true, &got); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		if next != int64(got.Len()) {
			t.Fatalf("next = %d, have %d bytes", next, got.Len())
		}
	}
	if cuts < 5 {
		t.Errorf("only %d cuts", cuts)
	}
	i.addr = i.Addr
	if want := logOf(t, j, "f"); got.String() != want || len(want) < 100000 {
		t.Errorf("followed %d bytes over %d cuts, the log has %d", got.Len(), cuts, len(want))
	}
	// A follower that goes away leaves nothing behind.
	if _, err := j.Start(soon(t), Spec{ID: "g", Command: "sleep 1000"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := j.Follow(ctx, "g", 0, true, &got); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v", err)
	}
	if _, err := j.Kill(soon(t), "g"); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(3 * time.Second); strings.Contains(strings.Join(i.Processes(), "\n"), "tail"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left: %q", i.Processes())
		}
	}
}
