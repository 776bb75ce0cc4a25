package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"rentop/remote"
)

// maxPrinted bounds what is kept of a line's output; the rest is drained.
const maxPrinted = 256 << 10

// exitError is the end of a line with a code other than 0.
type exitError struct {
	code   int
	stderr string // cleaned and without secrets
}

func (e *exitError) Error() string {
	s := fmt.Sprintf("the line ended with exit code %d", e.code)
	if e.stderr != "" {
		s += ": " + e.stderr
	}
	return s
}

// runLine runs a shell line on this computer and gives its stdout. When ctx ends,
// the line is killed with all that it started.
func runLine(ctx context.Context, line string, env []string) ([]byte, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err // nothing was started
	}
	cmd := shell(ctx, line)
	cmd.Env = append(os.Environ(), env...)
	stdout, stderr := &bounded{max: maxPrinted}, &bounded{max: maxPrinted}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = time.Second // for pipes that a child left behind holds open
	err := cmd.Run()
	if cmd.Process != nil {
		sweep(cmd.Process.Pid)
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return nil, cause
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return stdout.kept.Bytes(), &exitError{exit.ExitCode(), remote.Short(redact(lastLine(stderr.kept.Bytes()), os.Environ()), 300)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("running the line: %w", err)
	case stdout.over:
		return nil, fmt.Errorf("the line printed more than %d KiB", maxPrinted>>10)
	}
	return stdout.kept.Bytes(), nil
}

// bounded keeps the first bytes written to it. The buffer is a field, not embedded:
// its ReadFrom would take in everything.
type bounded struct {
	kept bytes.Buffer
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := max(b.max-b.kept.Len(), 0)
	if len(p) > room {
		b.over = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

var (
	secretName = regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`)
	secretText = regexp.MustCompile(`(?i)(bearer|basic|token|api[-_]?key|secret|password|passwd|authorization)(["']?\s*[:=]\s*|\s+)["']?(?:(?:bearer|basic|token)\s+)?[^\s"']{4,}`)
)

// redact takes out what looks like a secret: the values of variables with
// telling names, and what follows such names in the text.
func redact(text string, environ []string) string {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if len(value) >= 6 && secretName.MatchString(name) {
			text = strings.ReplaceAll(text, value, "[secret]")
		}
	}
	return secretText.ReplaceAllString(text, "${1}${2}[secret]")
}
