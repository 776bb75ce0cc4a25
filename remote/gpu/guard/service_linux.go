package guard

// The helper's "guard" service: it starts the guard, waits until its rules are armed,
// and reads its history.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/gpu/ring"
)

// armPatience is for a guard that waits for the driver's first answer, and some more.
const armPatience = armWithin + checkFor + 10*time.Second

// Service is the service of a helper that was started as self.
func Service(self []string) func(context.Context, link.Link) error {
	return func(ctx context.Context, l link.Link) error {
		for {
			m, err := l.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			switch m.Kind {
			case messageArm:
				err = answer(l, func() error { return start(ctx, self, m.Payload) })
			case messageHistory:
				err = sendHistory(l, m.Payload)
			default:
				err = answer(l, func() error {
					return errors.New("the guard on the instance does not know this request: bring rentop there up to date")
				})
			}
			if err != nil {
				return err
			}
		}
	}
}

func answer(l link.Link, do func() error) error {
	said := ""
	if err := do(); err != nil {
		said = err.Error()
	}
	return l.Send(messageDone, []byte(said))
}

// folder is where the guard of this login keeps what it has.
func folder() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, ".rentop", "guard")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o700)
}

// start has the guard take a spec, starts it where none runs, and returns when every
// rule is armed. A rule that cannot be is no error here: the state tells it.
func start(ctx context.Context, self []string, payload []byte) error {
	spec, err := parseSpec(payload)
	if err != nil {
		return err
	}
	dir, err := folder()
	if err != nil {
		return fmt.Errorf("the guard has no folder: %w", err)
	}
	os.Remove(filepath.Join(dir, "log")) // of the guard before
	if err := write(dir, "spec", spec, true); err != nil {
		return fmt.Errorf("the guard cannot write in %s: %w", dir, err)
	}
	if err := os.Remove(filepath.Join(dir, "off")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := spawn(dir, self); err != nil {
		return fmt.Errorf("the guard does not start: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, armPatience)
	defer cancel()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for n := 1; ; n++ {
		if n%20 == 0 { // the one before may have been ending while this one was started
			if err := spawn(dir, self); err != nil {
				return err
			}
		}
		if b, err := readBounded(filepath.Join(dir, "state"), maxState); err == nil {
			var st State
			if json.Unmarshal(b, &st) == nil && st.Spec.ID == spec.ID && st.Phase != Arming {
				return nil
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			log, _ := readBounded(filepath.Join(dir, "log"), 4<<10)
			return fmt.Errorf("the guard was started and armed nothing within %v: %s", armPatience, log)
		}
	}
}

// spawn starts what keeps a guard running, in a session of its own: no hang-up of the
// connection reaches it. One that runs already makes the new one end at once.
func spawn(dir string, self []string) error {
	const loop = `until "$@"; do [ -x "$1" ] || exit; sleep 2; done`
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", loop, "rentop-guard"}, append(self, "guard", "run", dir)...)...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "SSH_AUTH_SOCK", "TMUX", "TMUX_PANE": // of this connection
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// sendHistory sends the points since the wanted time, thinned to a step.
func sendHistory(l link.Link, payload []byte) error {
	var want historyWanted
	if err := json.Unmarshal(payload, &want); err != nil || want.Step <= 0 {
		return answer(l, func() error { return errors.New("no such request for history") })
	}
	clock, err := ring.SystemClock()
	if err != nil {
		return answer(l, func() error { return err })
	}
	dir, err := folder()
	if err != nil {
		return answer(l, func() error { return err })
	}
	points, err := ring.Read(filepath.Join(dir, "ring"), clock)
	if err != nil {
		return answer(l, func() error { return err })
	}
	send := newSender(l, clock.Now())
	for _, p := range thin(points, clock.Now().Add(-time.Duration(want.Back)*time.Second), time.Duration(want.Step)*time.Second) {
		if err := send.point(p); err != nil {
			return err
		}
	}
	return answer(l, func() error { return nil })
}
