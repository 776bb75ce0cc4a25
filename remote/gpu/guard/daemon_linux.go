package guard

// The guard's process: it takes samples, keeps the history, and has the keeper look
// at the rules each second.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rentop/remote/clean"
	"rentop/remote/gpu/nvml"
	"rentop/remote/gpu/ring"
	"rentop/remote/gpu/sample"
)

const (
	fresh     = 15 * time.Second // a sample that is older tells nothing
	lookEvery = 5 * time.Second  // at the jobs
	beatEvery = 5 * time.Second  // the state is written
	armWithin = 40 * time.Second // a driver may take long to its first answer
	usedEvery = time.Hour        // our own file is marked as used: helpers that nobody uses are removed
	checkFor  = 20 * time.Second
)

// Main is the helper's command "guard": run DIR. self is how the helper was started,
// before that word.
func Main(ctx context.Context, self, args []string) int {
	if len(args) != 2 || args[0] != "run" {
		fmt.Fprintln(os.Stderr, "usage: rentop-agent guard run DIR\nIt is rentop's guard on an instance; rentop starts it.")
		return 2
	}
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(48 << 20)
	debug.SetGCPercent(50)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	if err := run(ctx, args[1], self); err != nil {
		fmt.Fprintf(os.Stderr, "rentop's guard: %v\n", err)
		return 1
	}
	return 0
}

// daemon is owned by one goroutine.
type daemon struct {
	dir     string
	self    []string
	clock   ring.Clock
	k       *keeper
	jobs    jobList
	seen    Jobs
	latest  *sample.Sample
	at      time.Duration // of latest
	none    string
	ring    *ring.Ring
	stopSrc context.CancelFunc
	samples chan sample.Sample
	armBy   time.Duration
	wrote   time.Duration
	said    string // what was written then, without what counts
	looked  time.Duration
	asked   os.FileInfo // the spec that was read: another is another file
	marked  time.Duration
	notice  asker
}

// run watches until it is told to end. nil means that it shall not be started again.
func run(ctx context.Context, dir string, self []string) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // one runs already
	}
	d := &daemon{dir: dir, self: self, samples: make(chan sample.Sample), none: "the first reading has not come yet", notice: asker{answers: make(chan noticed)}}
	if d.clock, err = ring.SystemClock(); err != nil {
		return err
	}
	here, err := box()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	d.jobs = jobList{dir: filepath.Join(home, ".rentop", "jobs"), box: here, ended: map[string]string{}}
	_, start, _ := statOf(os.Getpid())
	_, loop, _ := statOf(os.Getppid())
	if err := writeFile(dir, "pid", fmt.Appendf(nil, "%d %d %d %d %s\n", os.Getpid(), start, os.Getppid(), loop, here), false); err != nil {
		return err
	}
	d.k = &keeper{
		run:     func(ctx context.Context, s script) (string, error) { return runScript(ctx, dir, s) },
		persist: func(s *State, sync bool) error { return write(dir, "state", s, sync) },
		note:    func(e Entry) error { return tell(filepath.Join(dir, "journal"), e) },
		now:     func() (time.Duration, time.Time) { return d.clock.Mono(), d.clock.Now() },
		kick:    make(chan result, 1),
	}
	d.k.st.PID, d.k.st.Start, d.k.st.Box = os.Getpid(), start, here
	d.openRing()
	defer func() {
		if d.ring != nil {
			d.ring.Close()
		}
		d.stopSrc()
	}()
	d.stopSrc = func() {}
	if over, err := d.begin(ctx); over || err != nil {
		return err
	}
	return d.loop(ctx)
}

func (d *daemon) openRing() {
	var err error
	d.ring, err = ring.Open(filepath.Join(d.dir, "ring"), ring.Options{Clock: d.clock})
	d.k.fault(noHistory, err)
}

const noHistory = "no history is kept"

// begin takes over from a guard that was killed, or arms anew.
func (d *daemon) begin(ctx context.Context) (over bool, err error) {
	spec, err := d.spec()
	if err != nil {
		return false, err
	}
	old, err := readBounded(filepath.Join(d.dir, "state"), maxState)
	if err == nil {
		was, err := ParseState(old)
		if err == nil && was.Spec.ID == spec.ID {
			switch {
			case was.Phase == Off || was.Phase == Refused || was.Box != d.k.st.Box:
				return true, nil // it was over
			case was.Phase != Arming:
				was.PID, was.Start, was.Fault = d.k.st.PID, d.k.st.Start, d.k.st.Fault
				d.k.st = *was
				d.follow(ctx, was.Spec.Reader)
				d.k.resume()
				return false, nil
			}
		}
	}
	return d.arm(ctx, spec), nil
}

func (d *daemon) spec() (*Spec, error) {
	var err error
	if d.asked, err = os.Lstat(filepath.Join(d.dir, "spec")); err != nil {
		return nil, err
	}
	b, err := readBounded(filepath.Join(d.dir, "spec"), maxSpec)
	if err != nil {
		return nil, err
	}
	return parseSpec(b)
}

// follow begins to read samples, in place of a source before.
func (d *daemon) follow(ctx context.Context, reader string) {
	if d.stopSrc != nil {
		d.stopSrc()
	}
	ctx, d.stopSrc = context.WithCancel(ctx)
	src := &source{reader: readerOf(reader, d.self), host: nvml.NewHost(ctx), out: d.samples}
	go src.run(ctx)
}

// arm begins with a new spec. over is true where it cannot act: then it has said so.
func (d *daemon) arm(ctx context.Context, spec *Spec) (over bool) {
	k := d.k
	k.drop()
	mono, wall := k.now()
	k.st = State{Version: Version, Spec: *spec, Phase: Arming, PID: k.st.PID, Start: k.st.Start, Box: k.st.Box,
		ArmedAt: wall.UTC(), ArmedMono: mono, Fault: k.st.Fault}
	refuse := func(why Say) bool {
		k.st.Phase, k.st.Why = Refused, why
		k.tell(Entry{What: toldRefused, Error: why.Key})
		return true
	}
	var err error
	if k.watch, err = NewWatch(spec.Rules, mono, wall); err != nil {
		return refuse(say("broken", err))
	}
	if spec.Check != "" {
		if out, err := runScript(ctx, d.dir, script{name: "check", text: spec.Check, limit: checkFor}); err != nil {
			if out == "" {
				out = err.Error()
			}
			return refuse(say("cannotact", out))
		}
	}
	d.follow(ctx, spec.Reader)
	d.armBy, d.looked = mono+armWithin, 0
	return false
}

func (d *daemon) loop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case s := <-d.samples:
			d.latest, d.at = &s, d.clock.Mono()
			if d.k.st.Source = s.Source; s.Problem != nil && len(s.GPUs) == 0 {
				d.none = clean.Short(s.Problem.What, 200)
			}
			if d.ring != nil {
				d.k.fault(noHistory, d.ring.Add(s))
			}
			continue
		case r := <-d.k.kick:
			d.k.ended(ctx, r)
		case n := <-d.notice.answers:
			d.notice.took(n)
		case <-tick.C:
		case <-ctx.Done():
			_ = d.k.save(true)
			return errors.New("ended by a signal")
		}
		if over, err := d.told(ctx); over || err != nil {
			return err
		}
		if over := d.step(ctx); over {
			return nil
		}
	}
}

// told looks for what rentop asked for since: to end, or other rules.
func (d *daemon) told(ctx context.Context) (over bool, err error) {
	if _, err := os.Lstat(filepath.Join(d.dir, "off")); err == nil {
		d.k.drop()
		d.k.st.Phase = Off
		d.k.tell(Entry{What: toldOff})
		return true, nil
	}
	fi, err := os.Lstat(filepath.Join(d.dir, "spec"))
	if err != nil || os.SameFile(fi, d.asked) {
		return false, nil // the armed rules stand
	}
	spec, err := d.spec()
	if err != nil || spec.ID == d.k.st.Spec.ID {
		return false, nil
	}
	return d.arm(ctx, spec), nil
}

// step is what is done each second.
func (d *daemon) step(ctx context.Context) (over bool) {
	m := d.moment()
	d.notice.ask(ctx, &d.k.st.Spec, m.Mono, d.k.run)
	before := d.k.st.Phase
	if before == Arming {
		d.k.arm(m, m.Mono >= d.armBy)
		if d.k.st.Phase == Refused {
			return true
		}
	} else {
		d.k.step(ctx, m)
	}
	if told := d.k.told(); m.Mono-d.wrote >= beatEvery || told != d.said {
		d.wrote, d.said = m.Mono, told
		d.k.fault("the guard cannot write on its disk", d.k.save(false))
	}
	if m.Mono-d.marked >= usedEvery && len(d.self) > 0 {
		d.marked = m.Mono
		now := d.clock.Now()
		os.Chtimes(d.self[0], now, now)
		if r := d.k.st.Spec.Reader; r != "" {
			os.Chtimes(r, now, now)
		}
	}
	return false
}

func (d *daemon) moment() *Moment {
	m := &Moment{Mono: d.clock.Mono(), Wall: d.clock.Now(), None: d.none}
	if d.latest != nil && m.Mono-d.at <= fresh {
		m.Sample = d.latest
	} else if d.latest != nil {
		m.None = fmt.Sprintf("no reading for %v", (m.Mono - d.at).Round(time.Second))
	}
	if d.looked == 0 || m.Mono-d.looked >= lookEvery {
		d.looked = m.Mono
		d.seen = d.jobs.read(m.Wall)
		d.seen.Moves = moving()
	}
	m.Jobs = d.seen
	if d.notice.of == d.k.st.Spec.ID {
		m.Notice = d.notice.heard
	}
	return m
}
