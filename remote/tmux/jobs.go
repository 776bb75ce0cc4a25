package tmux

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rentop/remote"
)

//go:embed *.sh tmux.conf
var files embed.FS

// text is one of the embedded files, whose names are constants.
func text(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Jobs starts and watches the jobs of one instance's login.
type Jobs struct {
	r     remote.Runner
	clock func() time.Time
	grace time.Duration // between TERM and KILL
}

// New works through r; a nil clock is time.Now.
func New(r remote.Runner, clock func() time.Time) *Jobs {
	if clock == nil {
		clock = time.Now
	}
	return &Jobs{r: r, clock: clock, grace: 3 * time.Second}
}

// ErrNoJob is returned where an instance knows no job of that ID.
var ErrNoJob = errors.New("no such job on the instance")

// ErrRunning is returned by Remove for a job that runs.
var ErrRunning = errors.New("the job still runs; kill it first")

const (
	maxCommand = 64 << 10 // bytes of a Spec's command, and of all its JSON
	maxNewest  = 500      // ended jobs that Newest tells
	maxListed  = 4000     // ended jobs that List tells
	maxJobs    = 5000     // records believed in one list
	maxAgain   = 200      // jobs asked for again at once
)

// Start starts a job and returns when it provably runs or has ended. Starting
// the same ID again, after a cut or at the same time, starts nothing twice and
// returns the job as it is.
func (j *Jobs) Start(ctx context.Context, s Spec) (Job, error) {
	script, err := startScript(s)
	if err != nil {
		return Job{}, err
	}
	job, err := j.about(ctx, s.ID, script)
	if err != nil {
		return Job{}, fmt.Errorf("start job %s: %w", remote.Short(s.Name, 60), err)
	}
	if job.State == Starting {
		return job, fmt.Errorf("start job %s: the login shell did not come to its command within 15 s; its start-up files may wait for input or start another program", remote.Short(s.Name, 60))
	}
	return job, nil
}

// List returns all jobs, oldest first, in one round trip: those that run, and the
// last 4000 others. Jobs that have ended cost the instance no process each.
func (j *Jobs) List(ctx context.Context) ([]Job, error) {
	jobs, _, err := j.list(ctx, maxListed)
	return jobs, err
}

// Newest is List for those who ask often: the jobs that run and the 500 others that
// ended or started last, and how many there are besides.
func (j *Jobs) Newest(ctx context.Context) (jobs []Job, older int, err error) {
	return j.list(ctx, maxNewest)
}

func (j *Jobs) list(ctx context.Context, most int) ([]Job, int, error) {
	a, err := j.ask(ctx, fmt.Sprintf("%sMOST=%d\n%s", lib(), most, text("list.sh")))
	if err != nil {
		return nil, 0, err
	}
	// Sums that are damaged or of another job are made anew from the jobs' own files.
	for ids := range slices.Chunk(a.unsettled, maxAgain) {
		b, err := j.ask(ctx, fmt.Sprintf("%scd \"$J\" && rm -f %s/sum 2>/dev/null\nheader\nfor id in %s; do one $id; done\necho rentop-jobs-end\n",
			lib(), strings.Join(ids, "/sum "), strings.Join(ids, " ")))
		if err != nil {
			return nil, 0, err
		}
		a.jobs = append(a.jobs, b.jobs...)
	}
	byStart(a.jobs)
	return a.jobs, a.older, nil
}

// Kill ends a job with all its children, TERM first, and returns it as it ended;
// one that is still starting does not start. It is an error where it goes on running.
// A job that has ended is returned as it is; what it left running is ended too.
func (j *Jobs) Kill(ctx context.Context, id string) (Job, error) {
	if err := checkID(id); err != nil {
		return Job{}, err
	}
	job, err := j.about(ctx, id, fmt.Sprintf("%sID=%s\nGRACE=%d\n%s", lib(), id, int(j.grace/time.Second), text("kill.sh")))
	if err != nil {
		return Job{}, fmt.Errorf("kill job %s: %w", id, err)
	}
	if job.State == Running || job.State == Starting {
		return job, fmt.Errorf("kill job %s: 10 s after KILL it still runs: a process of it hangs in the kernel, or is another user's; look at it in a shell there, and kill it again", id)
	}
	return job, nil
}

// Restart starts a job's command again as newID. The old job stays as it is.
func (j *Jobs) Restart(ctx context.Context, id, newID string) (Job, error) {
	s, err := j.Spec(ctx, id)
	if err != nil {
		return Job{}, fmt.Errorf("restart job %s: %w", id, err)
	}
	s.ID = newID
	return j.Start(ctx, s)
}

// Spec is what a job was started with, as the instance keeps it: hostile, like all from
// there. Its Env may hold secrets.
func (j *Jobs) Spec(ctx context.Context, id string) (Spec, error) {
	if err := checkID(id); err != nil {
		return Spec{}, err
	}
	b, err := remote.Output(ctx, j.r, "head -c 70000 \"$HOME/.rentop/jobs/"+id+"/spec\" 2>/dev/null || exit 44")
	if code, ok := remote.ExitCode(err); ok && code == 44 {
		return Spec{}, ErrNoJob
	}
	if err != nil {
		return Spec{}, err
	}
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return Spec{}, fmt.Errorf("its record on the instance is damaged: %w", err)
	}
	return s, nil
}

// Remove forgets a job that has ended, with its log.
func (j *Jobs) Remove(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	jobs, err := j.jobs(ctx, lib()+"header; one "+id+"; echo rentop-jobs-end\n")
	if err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	if len(jobs) == 0 {
		return ErrNoJob
	}
	if jobs[0].State == Running || jobs[0].State == Starting {
		return ErrRunning
	}
	// Twice: a runner or a list may be writing the sum just now.
	script := `d=$HOME/.rentop/jobs/` + id + `; rm -rf "$d" 2>/dev/null || { sleep 1; rm -rf "$d"; }`
	if err := j.r.Run(ctx, remote.Cmd{Script: script}); err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}

// about runs a script that prints one job's record.
func (j *Jobs) about(ctx context.Context, id, script string) (Job, error) {
	jobs, err := j.jobs(ctx, script)
	if err != nil {
		return Job{}, err
	}
	if len(jobs) != 1 || jobs[0].ID != id {
		return Job{}, ErrNoJob
	}
	return jobs[0], nil
}

func (j *Jobs) jobs(ctx context.Context, script string) ([]Job, error) {
	a, err := j.ask(ctx, script)
	return a.jobs, err
}

func (j *Jobs) ask(ctx context.Context, script string) (answer, error) {
	out, err := remote.Output(ctx, j.r, script)
	if err != nil {
		return answer{}, err
	}
	return parse(out, j.clock())
}

func byStart(jobs []Job) {
	sort.SliceStable(jobs, func(a, b int) bool { return jobs[a].StartedAt.Before(jobs[b].StartedAt) })
}

// lib is what the scripts expect.
func lib() string { return text("facts.sh") + text("lib.sh") }

// checkID holds IDs to what is one harmless word everywhere: a folder, a tmux
// session, an environment value.
func checkID(id string) error {
	ok := id != "" && len(id) <= 64
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok || id[0] == '-' {
		return fmt.Errorf("%q is no job ID: 1 to 64 letters, digits, _ and -", id)
	}
	return nil
}

func startScript(s Spec) (string, error) {
	if err := checkID(s.ID); err != nil {
		return "", err
	}
	switch {
	case strings.TrimSpace(s.Command) == "":
		return "", errors.New("a job needs a command")
	case strings.Contains(s.Command, "\x00") || !utf8.ValidString(s.Command):
		return "", errors.New("a job's command must be UTF-8 text without NUL")
	case strings.ContainsAny(s.Dir, "\x00\n") || !utf8.ValidString(s.Dir):
		return "", errors.New("a job's folder must be UTF-8 text on one line")
	}
	spec, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	if len(spec) > maxCommand {
		return "", fmt.Errorf("a job's command and environment may have %d bytes, these have %d: put it into a file and push that", maxCommand, len(spec))
	}
	env := ""
	keys := make([]string, 0, len(s.Env))
	for k := range s.Env {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !envName(k) || strings.Contains(s.Env[k], "\x00") {
			return "", fmt.Errorf("%q is no environment variable that a shell can set", k)
		}
		env += "export " + k + "=" + remote.Quote(s.Env[k]) + "\n"
	}
	var b strings.Builder
	b.WriteString(lib())
	fmt.Fprintf(&b, "ID=%s\nMARK=%s\n", s.ID, mark(s.ID))
	for _, f := range [][2]string{{"cmd", s.Command + "\n"}, {"env", env}, {"dir", dirWord(s.Dir) + "\n"}, {"spec", string(spec) + "\n"},
		{"runner", text("facts.sh") + text("runner.sh")}, {"inner", text("inner.sh")}, {"conf", text("tmux.conf")}} {
		fmt.Fprintf(&b, "f_%s() { printf %%s %s; }\n", f[0], remote.Quote(f[1]))
	}
	b.WriteString(text("start.sh"))
	return b.String(), nil
}

// mark is the value of RENTOP_JOB in every process of a job. Its end is no ID's
// character, so that no mark is another's beginning.
func mark(id string) string { return id + "." }

func envName(k string) bool {
	for i, c := range []byte(k) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return k != ""
}

// dirWord is a folder as a word for sh: relative ones start at the home.
func dirWord(dir string) string {
	switch {
	case dir == "" || dir == "~":
		return `"$HOME"`
	case strings.HasPrefix(dir, "/"):
		return remote.Quote(dir)
	}
	return `"$HOME"/` + remote.Quote(strings.TrimPrefix(dir, "~/"))
}

// seconds reads a Unix time of the instance as a time of our clock. One that no
// ledger and no JSON can hold is none.
func seconds(s string, skew time.Duration) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return time.Time{}
	}
	t := time.Unix(n, 0).Add(skew).UTC()
	if t.Year() < 1970 || t.Year() > 2199 {
		return time.Time{}
	}
	return t
}
