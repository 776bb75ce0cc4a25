package guard

// Where samples come from: the program that reads the driver's library, else
// nvidia-smi or another maker's tool, else the host alone. Each is a process of its own, which may hang or die
// without the guard.

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"rentop/remote/agent/hello"
	"rentop/remote/agent/link"
	"rentop/remote/clean"
	"rentop/remote/gpu/nvml"
	"rentop/remote/gpu/sample"
)

const (
	mute     = 60 * time.Second // without a sample, a reader has hung: many GPUs take long to the first
	tryAgain = 5 * time.Minute  // the better source, after it failed
)

// source gives samples until its context ends.
type source struct {
	reader []string // argv; nil: none
	host   *nvml.Host
	out    chan sample.Sample
}

func (s *source) run(ctx context.Context) {
	emit := func(x sample.Sample) {
		select {
		case s.out <- x:
		case <-ctx.Done():
		}
	}
	never := len(s.reader) == 0
	for ctx.Err() == nil {
		why := errors.New("neither nvidia-smi, amd-smi, rocm-smi nor npu-smi is there")
		if !never {
			var no *refusedError
			if err := fromReader(ctx, s.reader, emit); errors.As(err, &no) {
				never = true
			}
		}
		lesser, cancel := ctx, context.CancelFunc(func() {})
		if !never {
			lesser, cancel = context.WithTimeout(ctx, tryAgain)
		}
		if smi, err := exec.LookPath("nvidia-smi"); err == nil {
			why = s.fromSMI(lesser, smi, emit)
		} else if tool, ok := otherTool(); ok {
			why = s.fromTool(lesser, tool, emit)
		}
		cancel()
		if ctx.Err() == nil && (lesser.Err() == nil || never) {
			s.onlyHost(ctx, time.Minute, why, emit)
		}
	}
}

// refusedError is a reader without anything to read.
type refusedError struct{ sample.Problem }

func (e *refusedError) Error() string { return e.What }

// pipes are a process's stdin and stdout as one end of a link.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// fromReader speaks to the helper's "gpu" service as rentop does.
func fromReader(ctx context.Context, argv []string, emit func(sample.Sample)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], "serve", "gpu")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, end, err := child(cmd, cancel)
	if err != nil {
		return err
	}
	defer end()
	silent := time.AfterFunc(mute, cancel)
	defer silent.Stop()
	if err := hello.New().Write(in); err != nil {
		return err
	}
	theirs, err := hello.Read(out)
	if err != nil {
		return err
	}
	if _, err := theirs.Agree(); err != nil {
		return err
	}
	l := link.New(pipes{out, in}, link.Options{Hasty: true, MaxStripes: 1})
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { in.Close(); out.Close() })
	defer stop()
	var d sample.Decoder
	for {
		m, err := l.Recv()
		if err != nil {
			return err
		}
		silent.Reset(mute)
		switch m.Kind {
		case sample.MessageSample:
			x, err := d.Decode(m.Payload)
			if err != nil {
				return err
			}
			emit(x)
		case sample.MessageRefused:
			p, err := sample.ReadProblem(m.Payload)
			if err != nil {
				return err
			}
			return &refusedError{p}
		}
		m.Free()
	}
}

// columns are what is asked of nvidia-smi: no text that could hold a comma, and no
// field that an old driver does not know.
const columns = "index,utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu"

// child starts cmd, which ends with cancel. One that hangs in the driver cannot be
// killed: nobody waits for it.
func child(cmd *exec.Cmd, cancel func()) (out io.ReadCloser, end func(), err error) {
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return out, func() {
		cancel()
		go cmd.Wait()
	}, nil
}

// fromSMI follows one long-lived nvidia-smi: each start may cost a second of driver
// set-up (system76-power#492).
func (s *source) fromSMI(ctx context.Context, smi string, emit func(sample.Sample)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, smi, "--query-gpu="+columns, "--format=csv,noheader,nounits", "-l", "1")
	out, end, err := child(cmd, cancel)
	if err != nil {
		return err
	}
	defer end()
	silent := time.AfterFunc(mute, cancel)
	defer silent.Stop()
	stop := context.AfterFunc(ctx, func() { out.Close() })
	defer stop()
	var said string
	var gpus []sample.GPU
	lines := bufio.NewScanner(io.LimitReader(out, 1<<40))
	lines.Buffer(nil, 4096)
	for lines.Scan() {
		g, ok := parseRow(lines.Text())
		if !ok {
			if said == "" {
				said = clean.Short(lines.Text(), 200)
			}
			continue
		}
		silent.Reset(mute)
		if n := len(gpus); n > 0 && g.Index <= gpus[n-1].Index { // the next round begins
			emit(sample.Sample{TakenAt: time.Now(), Source: "nvidia-smi", GPUs: gpus, Host: s.host.Read()})
			gpus = nil
		}
		if len(gpus) < sample.MaxGPUs {
			gpus = append(gpus, g)
		}
	}
	if said == "" {
		said = "nvidia-smi ended"
	}
	return errors.New(said)
}

// parseRow reads one line; what is no row is a complaint, or a log line of a hook's.
func parseRow(line string) (sample.GPU, bool) {
	f := strings.Split(line, ",")
	g := sample.NewGPU("not asked of nvidia-smi")
	if len(f) != 7 {
		return g, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(f[0]), 10, 16)
	if err != nil {
		return g, false
	}
	g.Index, g.Util = int(n), sample.Percent(f[1])
	g.MemUsed, g.MemTotal = sample.Mebibytes(f[2]), sample.Mebibytes(f[3])
	g.Power, g.PowerLimit, g.Temp = sample.Watts(f[4]), sample.Watts(f[5]), sample.Celsius(f[6])
	return g, true
}

// onlyHost tells of the host for a while, and why there is no more.
func (s *source) onlyHost(ctx context.Context, d time.Duration, why error, emit func(sample.Sample)) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		emit(sample.Sample{TakenAt: time.Now(), Source: hostOnly, Host: s.host.Read(), Problem: &sample.Problem{What: why.Error()}})
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// readerOf is the command that reads GPUs: the program of that name, or this one.
func readerOf(program string, self []string) []string {
	if program == "" {
		return nil
	}
	if len(self) > 0 {
		a, err1 := os.Stat(program)
		b, err2 := os.Stat(self[0])
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return self
		}
	}
	if fi, err := os.Stat(program); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	return []string{program}
}
