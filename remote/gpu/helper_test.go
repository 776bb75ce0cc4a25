//go:build unix

package gpu

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/remote/gpu/sample"
)

// tape is a Runner whose nvidia-smi is this text, again and again.
type tape struct{ text string }

func (p tape) Run(ctx context.Context, c remote.Cmd) error {
	for ctx.Err() == nil {
		io.WriteString(c.Stdout, p.text)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// lingering is one whose command does not end before it may.
type lingering struct {
	tape
	may chan struct{}
}

func (p lingering) Run(ctx context.Context, c remote.Cmd) error {
	err := p.tape.Run(ctx, c)
	<-p.may
	return err
}

const oneCard = "\x01f index,name,utilization.gpu\n0, L4, 3 %\n\x01q 0\n"

// wire is a link in memory: what is put into in is received.
type wire struct {
	in   chan link.Message
	shut chan struct{}
}

func newWire() *wire                       { return &wire{make(chan link.Message, 100), make(chan struct{})} }
func (w *wire) Send(byte, ...[]byte) error { return nil }
func (w *wire) Close() error {
	select {
	case <-w.shut:
	default:
		close(w.shut)
	}
	return nil
}
func (w *wire) Recv() (link.Message, error) {
	select {
	case m := <-w.in:
		return m, nil
	case <-w.shut:
		return link.Message{}, io.EOF
	}
}

func TestFollowPrefersTheHelper(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := newWire()
	opened := make(chan struct{})
	got := make(chan Sample, 1000)
	done := make(chan error, 1)
	mayEnd := make(chan struct{})
	go func() {
		done <- Follow(ctx, lingering{tape{oneCard}, mayEnd}, nil, Options{}, func(ctx context.Context) (link.Link, error) {
			select {
			case <-opened:
				return w, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}, func(s Sample) { got <- s })
	}()
	next := func(what string, ok func(Sample) bool) Sample {
		t.Helper()
		for deadline := time.After(10 * time.Second); ; {
			select {
			case s := <-got:
				if ok(s) {
					return s
				}
			case <-deadline:
				t.Fatalf("%s did not come", what)
			}
		}
	}
	s := next("nvidia-smi while the helper starts", func(s Sample) bool { return s.Source == "nvidia-smi" })
	if !strings.Contains(s.Lesser, "starting") {
		t.Errorf("nvidia-smi's sample says %q", s.Lesser)
	}
	close(opened)
	var e sample.Encoder
	theirs := time.Now().Add(-3 * time.Hour) // an instance whose clock is wrong
	send := func() {
		g := sample.NewGPU("")
		g.XIDs = []XID{{Code: 79, At: theirs}}
		w.in <- link.Message{Kind: sample.MessageSample, Payload: e.Append(nil, Sample{TakenAt: theirs, Source: "nvml", GPUs: []GPU{g},
			Processes: []Process{{PID: 7, StartedAt: theirs.Add(-time.Minute)}}})}
	}
	send()
	s = next("the helper's, while nvidia-smi's command ends", func(s Sample) bool { return s.Source == "nvml" })
	close(mayEnd)
	if s.Lesser != "" || time.Since(s.TakenAt) > time.Minute || time.Since(s.GPUs[0].XIDs[0].At) > time.Minute || time.Since(s.Processes[0].StartedAt) > 3*time.Minute {
		t.Errorf("the helper's = %+v", s)
	}
	send()
	s = next("the helper's second", func(Sample) bool { return true })
	if s.Source != "nvml" {
		t.Errorf("nvidia-smi is read beside the helper: %+v", s)
	}
	silent := time.Now() // it says nothing any more, and its link stays open
	s = next("nvidia-smi", func(s Sample) bool { return s.Source == "nvidia-smi" })
	if d := time.Since(silent); d > silence+2*time.Second || !strings.Contains(s.Lesser, "silent") {
		t.Errorf("after %v: %q", d, s.Lesser)
	}
	send()
	next("the helper's again", func(s Sample) bool { return s.Source == "nvml" })
	w.Close()
	died := time.Now()
	s = next("nvidia-smi again", func(s Sample) bool { return s.Source == "nvidia-smi" })
	if d := time.Since(died); d > 2*time.Second || !strings.Contains(s.Lesser, "ended") {
		t.Errorf("after %v: %q", d, s.Lesser)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow = %v", err)
	}
}

func TestFollowWithoutAHelper(t *testing.T) {
	refused := newWire()
	refused.in <- link.Message{Kind: sample.MessageRefused, Payload: sample.AppendProblem(nil, Problem{What: "no library \x1b[2J here", Cure: "x"})}
	broken := newWire()
	broken.in <- link.Message{Kind: sample.MessageSample, Payload: []byte{9, 9, 9}}
	for name, c := range map[string]struct {
		open Opener
		why  string
	}{
		"not installed": {func(context.Context) (link.Link, error) { return nil, errors.New("no helper for mips") }, "no helper for mips"},
		"refused":       {func(context.Context) (link.Link, error) { return refused, nil }, "no library ␛[2J here"},
		"broken":        {func(context.Context) (link.Link, error) { return broken, nil }, "version 9"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := Follow(ctx, tape{oneCard}, nil, Options{}, c.open, func(s Sample) {
			if s.Source == "nvidia-smi" && strings.Contains(s.Lesser, c.why) {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if err := Follow(context.Background(), dead{}, nil, Options{}, func(ctx context.Context) (link.Link, error) { <-ctx.Done(); return nil, ctx.Err() }, func(Sample) {}); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("a connection that breaks: %v", err)
	}
}

// dead is a connection that is gone.
type dead struct{}

func (dead) Run(context.Context, remote.Cmd) error { return errors.New("no such host") }
