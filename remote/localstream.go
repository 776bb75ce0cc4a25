// A program with open stdin and stdout on this machine.

package remote

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Stream is [Conn.Stream] with this machine's sh.
func (l Local) Stream(_ context.Context, script string) (*Stream, error) {
	marker, whole := marked(script)
	line, err := scriptLine(whole)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(life, "sh", "-c", strings.TrimSuffix(strings.TrimPrefix(bootLine, "exec sh -c '"), "'"))
	cmd.Env, cmd.Dir = l.Env, l.Dir
	cmd.WaitDelay = 2 * time.Second
	ownGroup(cmd)
	kept := &tail{b: tailBuffer{max: stderrKept}}
	cmd.Stderr = &demarker{marker: []byte(marker + "\n"), w: kept}
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	outR, outW := io.Pipe()
	cmd.Stdout = outW
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	s := newStream(marker, outR, kept)
	s.in, s.shut = in, in.Close
	s.end = func() {
		in.Close()
		outR.Close()
		t := time.AfterFunc(2*time.Second, cancel)
		context.AfterFunc(life, func() { t.Stop() })
	}
	go func() { // ends with the script
		err := cmd.Wait()
		cancel()
		var e *exec.ExitError
		if errors.As(err, &e) {
			err = exit{known: true, code: e.ExitCode()}.err([]byte(kept.String()))
		}
		s.err = err
		outW.Close()
		close(s.ended)
	}()
	if _, err := io.WriteString(in, line); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
