package tmux

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rentop/remote"
)

// Follow writes a job's log to w from byte offset from and returns the offset
// after the last byte written, also with an error: call again with it to go on
// where a cut left off. With follow it goes on until the job has ended. The log
// is as the job wrote it, escape sequences included.
func (j *Jobs) Follow(ctx context.Context, id string, from int64, follow bool, w io.Writer) (next int64, err error) {
	if err := checkID(id); err != nil {
		return from, err
	}
	if from < 0 {
		return from, fmt.Errorf("follow job %s: a log has no offset %d", id, from)
	}
	c := &counter{w: w, n: from}
	if follow {
		// The script ends with its stdin, so nothing stays behind when we go.
		stdin, stop := io.Pipe()
		err = j.run(ctx, "follow.sh", id, c, stdin)
		stop.Close()
	}
	if err == nil { // the rest of an ended job: tail -f was stopped, perhaps before it
		err = j.run(ctx, "", id, c, nil)
	}
	if code, ok := remote.ExitCode(err); ok && code == 44 {
		err = ErrNoJob
	}
	if err != nil {
		err = fmt.Errorf("log of job %s: %w", id, err)
	}
	return c.n, err
}

func (j *Jobs) run(ctx context.Context, file, id string, c *counter, stdin io.Reader) error {
	script := fmt.Sprintf("%sID=%s\nFROM=%d\n", lib(), id, c.n)
	if file != "" {
		script += text(file)
	} else {
		script += `[ -f "$J/$ID/log" ] || exit 44; exec tail -c +$((FROM + 1)) "$J/$ID/log"`
	}
	err := j.r.Run(ctx, remote.Cmd{Script: script, Stdin: stdin, Stdout: c})
	if c.err != nil && !errors.Is(err, c.err) {
		return c.err
	}
	return err
}

type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}
