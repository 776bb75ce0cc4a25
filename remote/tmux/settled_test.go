package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

// yard is a home with jobs made by hand, and a shell that lists them.
type yard struct {
	t     testing.TB
	home  string
	shell []string
	box   string
}

func newYard(t testing.TB, shell string) *yard {
	t.Helper()
	argv := strings.Fields(shell)
	needtest.Program(t, argv[0])
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	needtest.Done(t, err, "Linux's /proc")
	y := &yard{t: t, home: t.TempDir(), shell: argv, box: strings.TrimSpace(string(boot)) + "/" + started(t, 1)}
	// od is what a job costs: it is counted.
	od := needtest.Program(t, "od")
	y.write("bin/od", "#!/bin/sh\necho x >>\"$HOME/asked\"\nexec "+od+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(y.home, "bin/od"), 0o700); err != nil {
		t.Fatal(err)
	}
	return y
}

// started is when a process began, in the kernel's ticks.
func started(t testing.TB, pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	return f[19]
}

func (y *yard) Run(ctx context.Context, c remote.Cmd) error {
	cmd := exec.CommandContext(ctx, y.shell[0], append(y.shell[1:], "-c", c.Script)...)
	cmd.Env = []string{"HOME=" + y.home, "PATH=" + y.home + "/bin:" + os.Getenv("PATH")}
	cmd.Stdout = c.Stdout
	return cmd.Run()
}

func (y *yard) path(parts ...string) string {
	return filepath.Join(append([]string{y.home, ".rentop/jobs"}, parts...)...)
}

func (y *yard) write(name, content string) {
	y.t.Helper()
	name = filepath.Join(y.home, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		y.t.Fatal(err)
	}
}

// job makes a job's folder. pid is that of its runner, exit its last word.
func (y *yard) job(id, pid, exit string, at time.Time) (sum string) {
	y.t.Helper()
	log := "line 1 of " + id + "\r\n\x1b[31mlast of " + id + "\n"
	spec := fmt.Sprintf(`{"ID":%q,"Name":"name of %s","Command":"python train.py --epochs 100 --data data/set","Dir":"~/project","Env":null}`, id, id)
	pid, exit = fmt.Sprintf("%-119s", pid), fmt.Sprintf("%-39s", exit)
	d := ".rentop/jobs/" + id + "/"
	for name, content := range map[string]string{"pid": pid + "\n", "exit": exit + "\n", "begun": "1", "kill": "0", "mark": id + ".\n", "log": log, "spec": spec + "\n"} {
		y.write(d+name, content)
	}
	y.touch(id, at)
	return fmt.Sprintf("sum %s\npid %s\nexit %s\nsize %d\nlast %x\nspec %s\nsum-end\n", id, pid, exit, len(log), log, spec)
}

func (y *yard) touch(id string, at time.Time) {
	if err := os.Chtimes(y.path(id), at, at); err != nil {
		y.t.Fatal(err)
	}
}

// ended makes a job that ended with code, settled.
func (y *yard) ended(id string, code int, at time.Time) (sum string) {
	sum = y.job(id, fmt.Sprintf("999999 77 %d 1 %s", at.Unix(), y.box), fmt.Sprintf("%d %d", code, at.Unix()+5), at)
	y.write(".rentop/jobs/"+id+"/sum", sum)
	y.touch(id, at)
	return sum
}

// running makes a job whose runner is a real process.
func (y *yard) running(id string, at time.Time) {
	y.t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	y.job(id, fmt.Sprintf("%d %s %d 1 %s", cmd.Process.Pid, started(y.t, cmd.Process.Pid), at.Unix(), y.box), "", at)
}

func (y *yard) list() map[string]Job {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	jobs, err := New(y, nil).List(ctx)
	if err != nil {
		y.t.Fatal(err)
	}
	m := map[string]Job{}
	for _, j := range jobs {
		m[j.ID] = j
	}
	if len(m) != len(jobs) {
		y.t.Errorf("a job is listed twice: %+v", jobs)
	}
	return m
}

// asked is how many jobs cost processes since it was last called.
func (y *yard) asked() int {
	b, _ := os.ReadFile(filepath.Join(y.home, "asked"))
	os.Remove(filepath.Join(y.home, "asked"))
	return strings.Count(string(b), "x")
}

func eachShell(t *testing.T, f func(t *testing.T, shell string)) {
	for _, shell := range []string{"dash", "bash", "bash --posix", "busybox ash"} {
		t.Run(shell, func(t *testing.T) { f(t, shell) })
	}
}

// What is told of a settled job is what its own files tell.
func TestSettled(t *testing.T) {
	eachShell(t, func(t *testing.T, shell string) {
		y := newYard(t, shell)
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		want := map[string]string{}
		for n := range 6 {
			id := fmt.Sprint("job-", n)
			want[id] = y.ended(id, n*50, at.Add(time.Duration(n)*time.Minute))
		}
		y.running("runs", at)
		fast := y.list()
		if n := y.asked(); n > 1 {
			t.Errorf("%d jobs were asked with processes, want the running one", n)
		}
		if j := fast["job-3"]; len(fast) != 7 || j.State != Done || code(j) != 150 || j.LastLine != "last of job-3" || j.Name != "name of job-3" || j.LogSize != 36 || fast["runs"].State != Running {
			t.Errorf("%+v", fast)
		}
		for id := range want {
			os.Remove(y.path(id, "sum"))
		}
		if slow := y.list(); !reflect.DeepEqual(fast, slow) {
			t.Errorf("from the sums\n%+v\nfrom the files\n%+v", fast, slow)
		}
		for id, sum := range want {
			if got, err := os.ReadFile(y.path(id, "sum")); err != nil || string(got) != sum {
				t.Errorf("settled by a list: %q, %v\nwant %q", got, err, sum)
			}
		}
		if _, err := os.Stat(y.path("runs", "sum")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a running job was settled: %v", err)
		}
	})
}

// No content of a sum changes what is told, of its job or of another.
func TestSettledDamaged(t *testing.T) {
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(edit func(sum string) string) func(*yard, string) {
		return func(y *yard, sum string) { y.write(".rentop/jobs/m/sum", edit(sum)) }
	}
	// swap also gives the sum another name to tell, where it is believed.
	swap := func(old, new string) func(*yard, string) {
		return put(func(sum string) string {
			if !strings.Contains(sum, old) {
				panic(old)
			}
			return strings.Replace(strings.Replace(sum, old, new, 1), "name of m", "forged", 1)
		})
	}
	cases := map[string]func(*yard, string){
		"other code":      swap("exit 7 ", "exit 0 "),
		"other runner":    swap("pid 999999 77 ", "pid 999999 78 "),
		"other job":       swap("sum m\n", "sum a\n"),
		"no last line":    swap("last ", "lost "),
		"other size":      swap("size 28", "size 27"),
		"a list's end":    put(func(s string) string { return "rentop-jobs-end\n" + s[:40] + "\nrentop-jobs-end" }),
		"records":         put(func(string) string { return "job evil\nspec {}\nend\nsum evil\nspec {}\nsum-end\nfail no such job\n" }),
		"garbage":         put(func(string) string { return strings.Repeat("\x00\xffx", 1<<18) }),
		"endless line":    put(func(s string) string { return s[:len(s)-9] + strings.Repeat("y", 1<<20) }),
		"the log grew":    func(y *yard, _ string) { y.write(".rentop/jobs/m/log", "more than there was\nlast of m\n") },
		"the code is new": func(y *yard, _ string) { y.write(".rentop/jobs/m/exit", fmt.Sprintf("%-39s\n", "9 1700000000")) },
		"a folder": func(y *yard, _ string) {
			os.Remove(y.path("m", "sum"))
			y.write(".rentop/jobs/m/sum/x", "")
		},
		"a pipe": func(y *yard, _ string) {
			os.Remove(y.path("m", "sum"))
			if err := exec.Command("mkfifo", y.path("m", "sum")).Run(); err != nil {
				y.t.Fatal(err)
			}
		},
		"a link to nothing": func(y *yard, _ string) {
			os.Remove(y.path("m", "sum"))
			os.Symlink("/nonexistent", y.path("m", "sum"))
		},
		"a name with a line break": func(y *yard, sum string) {
			y.write(".rentop/jobs/m\na/spec", "{}")
			y.write(".rentop/jobs/m a/spec", "{}")
			y.write(".rentop/jobs/m\na/sum", sum)
		},
	}
	for n := range 8 {
		cases[fmt.Sprint("torn ", n)] = put(func(s string) string { return s[:len(s)*n/8] })
	}
	cases["torn at its end"] = put(func(s string) string { return s[:len(s)-2] })
	unhealed := map[string]bool{"a folder": true, "a pipe": true}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, "dash")
			y.ended("a", 3, at)
			sum := y.ended("m", 7, at.Add(time.Minute))
			y.ended("z", 5, at.Add(2*time.Minute))
			damage(y, sum)
			got := y.list()
			y.asked()
			again := y.list()
			if n := y.asked(); !unhealed[name] && n != 0 {
				t.Errorf("%d jobs were asked with processes the second time", n)
			}
			for _, id := range []string{"a", "m", "z"} {
				os.RemoveAll(y.path(id, "sum"))
			}
			want := y.list()
			if len(want) != 3 || want["m"].State != Done || code(want["a"]) != 3 || code(want["z"]) != 5 {
				t.Errorf("the files tell %+v", want)
			}
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(again, want) {
				t.Errorf("got\n%+v\nthen\n%+v\nwant\n%+v", got, again, want)
			}
		})
	}
}

// A sum is nothing where the job has not ended, and a lost job that ends after all
// (its box was another's, over a shared home) is believed.
func TestSettledNotEnded(t *testing.T) {
	eachShell(t, func(t *testing.T, shell string) {
		y := newYard(t, shell)
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		y.running("r", at)
		pid, _ := os.ReadFile(y.path("r", "pid"))
		y.write(".rentop/jobs/r/sum", fmt.Sprintf("sum r\npid %sexit 0 %d\nsize 1\nlast 6f\nspec {}\nsum-end\n", pid, at.Unix()))
		y.job("l", fmt.Sprintf("7 77 %d 1 other/1", at.Unix()), "", at)
		y.write(".rentop/jobs/garbage", "no folder")
		y.write(".rentop/jobs/empty/x", "")
		y.write(".rentop/jobs/-n/spec", "{}")
		for range 2 { // the lost one is settled by the first
			jobs := y.list()
			if len(jobs) != 2 || jobs["r"].State != Running || jobs["l"].State != Lost || jobs["l"].LastLine != "last of l" {
				t.Errorf("%+v", jobs)
			}
		}
		if _, err := os.Stat(y.path("l", "sum")); err != nil {
			t.Error(err)
		}
		y.write(".rentop/jobs/l/exit", fmt.Sprintf("%-39s\n", fmt.Sprint("4 ", at.Unix())))
		if j := y.list()["l"]; j.State != Done || code(j) != 4 {
			t.Errorf("%+v exit %d", j, code(j))
		}
	})
}

// Newest tells the last 500 and all that run, and counts the rest.
func TestNewest(t *testing.T) {
	y := newYard(t, "dash")
	at := time.Now().Add(-1000 * time.Hour).Truncate(time.Second)
	const ended = maxNewest + 30
	for n := range ended {
		y.ended(fmt.Sprint("e", n), 1, at.Add(time.Duration(n+10)*time.Minute))
	}
	y.running("old-1", at)
	y.running("old-2", at)
	jobs, older, err := New(y, nil).Newest(soon(t))
	if err != nil || older != 30 || len(jobs) != maxNewest+2 {
		t.Fatalf("%d jobs, %d older, %v", len(jobs), older, err)
	}
	if jobs[0].ID[:4] != "old-" || jobs[1].State != Running || jobs[2].ID != "e30" {
		t.Errorf("first are %+v", jobs[:3])
	}
	if n := y.asked(); n != 2 {
		t.Errorf("%d jobs were asked with processes, want the 2 running ones", n)
	}
	if all := y.list(); len(all) != ended+2 {
		t.Errorf("List tells %d jobs", len(all))
	}
}

// The runner settles its job; a new job of the same ID is not told by the old sum.
func TestSettledRestart(t *testing.T) {
	i := newInstance(t, sshtest.Options{})
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "s", Name: "first", Command: "echo one; exit 3"}); err != nil {
		t.Fatal(err)
	}
	const wait = `n=0; while [ ! -f .rentop/jobs/s/sum ] && [ $n -lt 100 ]; do n=$((n+1)); sleep 0.05; done; `
	if got := i.sh(wait + `cat .rentop/jobs/s/sum; stat -c %a .rentop/jobs/s/sum`); !strings.Contains(got, "\nexit 3 ") || !strings.HasSuffix(got, "sum-end\n600") {
		t.Fatalf("the runner left %q", got)
	}
	i.sh(`cd .rentop/jobs; cp s/sum kept; rm -r s/claim s/pid s/exit s/rc s/begun s/log`)
	if _, err := j.Start(soon(t), Spec{ID: "s", Name: "second", Command: "echo two; exit 4"}); err != nil {
		t.Fatal(err)
	}
	if job := i.ended(j, "s"); code(job) != 4 || job.Name != "second" || job.LastLine != "two" {
		t.Errorf("%+v exit %d", job, code(job))
	}
	i.sh(wait + "cp .rentop/jobs/kept .rentop/jobs/s/sum") // as if the old one came back
	if job := i.ended(j, "s"); code(job) != 4 || job.Name != "second" || job.LastLine != "two" {
		t.Errorf("beside the old sum: %+v exit %d", job, code(job))
	}
	if err := j.Remove(soon(t), "s"); err != nil {
		t.Error(err)
	}
	if got := i.sh("ls -A .rentop/jobs"); got != "kept" {
		t.Errorf("after Remove there is %q", got)
	}
}

// A disk without room for a sum loses nothing, and gets it when there is room.
func TestSettledFullDisk(t *testing.T) {
	i := newInstance(t, sshtest.Options{SmallHome: "1m"})
	j := New(i, nil)
	if _, err := j.Start(soon(t), Spec{ID: "d", Command: "head -c 3000000 /dev/zero >fill; exit 7"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if job := i.ended(j, "d"); job.State != Done || code(job) != 7 {
			t.Errorf("%+v exit %d", job, code(job))
		}
	}
	i.sh("sleep 0.5")
	if got := i.sh("ls -A .rentop/jobs/d | grep sum || true"); got != "" {
		t.Errorf("a full disk has %q", got)
	}
	i.sh("rm fill")
	i.ended(j, "d")
	if got := i.sh("ls -A .rentop/jobs/d | grep sum"); got != "sum" {
		t.Errorf("with room again there is %q", got)
	}
	if job := i.ended(j, "d"); job.State != Done || code(job) != 7 {
		t.Errorf("%+v exit %d", job, code(job))
	}
}

func BenchmarkList(b *testing.B) {
	for _, shell := range []string{"dash", "bash", "busybox ash"} {
		for _, ended := range []int{200, 2000} {
			b.Run(fmt.Sprintf("%s/%d ended, 2 running", shell, ended), func(b *testing.B) {
				y := newYard(b, shell)
				at := time.Now().Add(-10000 * time.Hour).Truncate(time.Second)
				for n := range ended {
					y.ended(fmt.Sprintf("train-resnet-%d", n), 0, at.Add(time.Duration(n)*time.Minute))
				}
				y.running("r1", at)
				y.running("r2", at)
				j := New(y, nil)
				for _, ask := range []struct {
					name string
					f    func() (int, error)
				}{
					{"List", func() (int, error) { jobs, err := j.List(soon(b)); return len(jobs), err }},
					{"Newest", func() (int, error) { jobs, older, err := j.Newest(soon(b)); return len(jobs) + older, err }},
				} {
					b.Run(ask.name, func(b *testing.B) {
						for b.Loop() {
							if n, err := ask.f(); err != nil || n != ended+2 {
								b.Fatal(n, err)
							}
						}
					})
				}
			})
		}
	}
}
