// Command gpucheck compares what rentop's helper reads from the driver's library on
// an instance with what nvidia-smi says there in the same seconds, and prints what
// differs: go run ./.ci/gpucheck [-rentop dist/rentop-linux-amd64] NAME. Docs:
// docs/gpu-check.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

func main() {
	rentop := flag.String("rentop", "rentop", "the rentop to check")
	watch := flag.Duration("for", 40*time.Second, "how long both are watched")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "gpucheck: name the instance: go run ./.ci/gpucheck [-rentop FILE] NAME")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	same, err := check(ctx, *rentop, flag.Arg(0), *watch, os.Stdout)
	var not notRun
	switch {
	case errors.As(err, &not):
		fmt.Println("not run:", not)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	case !same:
		os.Exit(1)
	}
}

// notRun is why nothing could be compared.
type notRun string

func (n notRun) Error() string { return string(n) }

// check watches both for a time and prints the comparison.
func check(ctx context.Context, rentop, name string, watch time.Duration, out io.Writer) (same bool, err error) {
	// The first seconds are the helper's upload: it is there before nvidia-smi is asked.
	ctx, cancel := context.WithTimeout(ctx, 3*watch+time.Minute)
	defer cancel()
	watching, enough := context.WithCancel(ctx)
	defer enough()
	samples := make(chan result[[]sample], 1)
	began := make(chan struct{})
	var lesser atomic.Value // why a sample was not the helper's
	lesser.Store("it sent nothing")
	go func() {
		var lines []sample
		err := eachLine(watching, func(line []byte) {
			var s sample
			if json.Unmarshal(line, &s) != nil {
				return
			}
			if s.Source == "nvml" {
				if len(lines) == 0 {
					close(began)
				}
				lines = append(lines, s)
			} else if len(lines) == 0 {
				lesser.Store(s.Reason)
			}
		}, rentop, "gpu", name, "--watch", "--json")
		samples <- result[[]sample]{lines, err}
	}()
	select {
	case <-began:
	case r := <-samples:
		return false, fmt.Errorf("rentop gpu %s: %w", name, r.err)
	case <-time.After(45 * time.Second):
		return false, notRun(fmt.Sprintf("the helper does not answer there: %v", lesser.Load()))
	}
	asked, rows, err := askSMI(ctx, rentop, name, max(int(watch.Seconds()), 1))
	if len(rows) == 0 {
		return false, notRun(fmt.Sprintf("nvidia-smi says nothing there: %v", err))
	}
	enough()
	got := <-samples
	return report(out, got.value, asked, rows), nil
}

// unknownField is how an nvidia-smi complains about a column that is newer than it.
var unknownField = regexp.MustCompile(`Field "([^"]+)" is not a valid field`)

// askSMI has nvidia-smi run there once a second, without the columns that it does not know.
func askSMI(ctx context.Context, rentop, name string, seconds int) (asked []figure, rows []string, err error) {
	asked = slices.Clone(compared)
	for {
		fields := make([]string, len(asked))
		for i, c := range asked {
			fields[i] = c.smi
		}
		query := "nvidia-smi --query-gpu=" + strings.Join(fields, ",") + " --format=csv,noheader,nounits"
		rows = nil
		err = eachLine(ctx, func(line []byte) { rows = append(rows, string(line)) },
			rentop, "exec", name, "--", fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s || exit; i=$((i+1)); sleep 1; done", seconds, query))
		m := unknownField.FindStringSubmatch(strings.Join(rows, "\n"))
		if m == nil {
			return asked, rows, err
		}
		n := len(asked)
		if asked = slices.DeleteFunc(asked, func(c figure) bool { return c.smi == m[1] }); len(asked) == n {
			return asked, nil, fmt.Errorf("%s", rows)
		}
	}
}

type result[T any] struct {
	value T
	err   error
}

// eachLine runs a program and hands on its lines until it ends, or ctx.
func eachLine(ctx context.Context, line func([]byte), name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewScanner(stdout)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		line(in.Bytes())
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return nil
}

// report prints one line a figure and card; it is false where one differs.
func report(out io.Writer, samples []sample, asked []figure, rows []string) bool {
	helper, smi := fromHelper(samples), fromSMI(asked, rows)
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "GPU\tFIGURE\tHELPER\tNVIDIA-SMI\t")
	differ := 0
	line := func(gpu, figure, a, b, verdict string) {
		if verdict == "differs" {
			differ++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", gpu, figure, a, b, verdict)
	}
	for _, uuid := range keys(helper, smi) {
		for _, c := range compared {
			if c.smi == "uuid" {
				continue
			}
			a, b := helper[uuid][c.smi], smi[uuid][c.smi]
			line(short(uuid), c.smi, a.String(), b.String(), c.judge(a, b))
		}
	}
	t.Flush()
	fmt.Fprintf(out, "%d samples of the helper, %d rows of nvidia-smi, %d figures differ\n", len(samples), len(rows), differ)
	return differ == 0
}

func short(uuid string) string {
	if len(uuid) > 12 {
		return uuid[:12]
	}
	return uuid
}
