package sync

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file changes a tree by a generated sh program that goes to the instance
// on stdin: like actions in one command, and only where that fails one by one,
// so that each failure has its own reason.

// program is such a script; step numbers come back with their errors.
type program struct {
	b      strings.Builder
	steps  int
	failed map[int]string
}

const programStart = `t() { n=$1; shift; e=$("$@" 2>&1) || printf '%s %s\0' "$n" "$e"; }
l() { if [ -d "$2" ] && [ ! -L "$2" ]; then echo 'a folder is in its place'; return 1; fi; ln -sfn -- "$1" "$2"; }
m() { (cd "$1" && mv -f -- "$2" ..); }
r() { [ -e "$1" ] || [ -L "$1" ] || return 0; rmdir -- "$1"; }
d() { touch -m -d "$1" -- "$2"; }
v() {
[ -e "$1" ] || [ -L "$1" ] || return 0
if [ -e "$2" ] || [ -L "$2" ]; then echo 'something is in its place'; return 1; fi
case $2 in ./*/*) [ -d "${2%/*}" ] || mkdir -p -m 0700 -- "${2%/*}" || return 1;; esac
mv -- "$1" "$2"
}
g() { b=$1; shift; [ -d "$b" ] || mkdir -p -m 0700 -- "$b" && mv -- "$@" "$b"/; }
k() { v "$2" "$1/${2##*/}"; }
`

// group runs one command over several paths; on failure each path alone, by
// each, which must not mind what the first did already.
func (p *program) group(command, each string, words []string) {
	if len(words) > 1 {
		p.b.WriteString("if ! " + command)
		for _, w := range words {
			p.b.WriteString(" " + w)
		}
		p.b.WriteString(" 2>/dev/null; then\n")
	}
	for _, w := range words {
		fmt.Fprintf(&p.b, "t %d %s %s\n", p.steps, each, w)
		p.steps++
	}
	if len(words) > 1 {
		p.b.WriteString("fi\n")
	}
}

// text is the whole as one compound command: sh must read it to its end before
// it runs any of it, since a cut in the middle of a line would make "rm -rf
// ./data" of "rm -rf ./data/.tmp".
func (p *program) text() string {
	return programStart + "{\n" + p.b.String() + "printf 'E\\0'\n}\n"
}

// word is a path under the current folder, quoted.
func word(p string) string { return remote.Quote("./" + p) }

// runProgram runs p in root; p.failed is set when it returns nil.
func (s *shell) runProgram(ctx context.Context, root string, p *program, m Meter) error {
	p.failed = map[int]string{}
	ended := false
	_, err := s.run(ctx, call{
		script: enter(root) + s.unpack() + " | sh",
		meter:  m,
		in: func(w io.Writer) error {
			_, err := io.WriteString(w, p.text())
			return err
		},
		plain: true,
		out: func(r *bufio.Reader) error {
			for {
				rec, err := record(r, "\x00")
				if err != nil {
					return err
				}
				if rec == "E" {
					ended = true
					return nil
				}
				num, msg, _ := strings.Cut(rec, " ")
				n, err := strconv.Atoi(num)
				if err != nil || n < 0 || n >= p.steps {
					return errors.New("unexpected answer from the instance's shell")
				}
				p.failed[n] = shortReason(msg)
			}
		},
	})
	if ended && exitCode(err) >= 0 {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("changing %s on the instance: %w", remote.Clean(root), rootError(root, err))
	}
	return nil
}

// shortReason is the end of a tool's message: "No space left on device".
func shortReason(msg string) string {
	msg = remote.Clean(lastLine(msg))
	if i := strings.LastIndex(msg, ": "); i >= 0 {
		msg = msg[i+2:]
	}
	if msg == "" {
		return "failed without a reason"
	}
	return remote.Short(msg, 200)
}

// scriptReason is why a script on the instance failed, in its own last words: a
// bare exit code tells a person nothing.
func scriptReason(err error) error {
	var x *remote.ExitError
	var closed *closedRoot
	switch {
	case errors.As(err, &closed):
		return closed
	case !errors.As(err, &x):
		return toolError(shortReason(err.Error()))
	case x.Stderr != "":
		return toolError(shortReason(x.Stderr))
	case x.Signal != "":
		return fmt.Errorf("the command on the instance was ended by signal %s", x.Signal)
	}
	return errors.New("the command on the instance failed and did not say why")
}

// toolError is a reason as an error that callers can tell apart.
func toolError(reason string) error {
	switch {
	case strings.Contains(reason, "No space left") || strings.Contains(reason, "quota exceeded"):
		return fmt.Errorf("%w: %s", ErrFull, reason)
	case strings.Contains(reason, "Permission denied"):
		return fmt.Errorf("%w on the instance", fs.ErrPermission)
	}
	return errors.New(reason)
}

// ErrFull is where a file system is full or a quota used up.
var ErrFull = errors.New("disk full")

// Groups are bounded by what one command line may hold (MAX_ARG is 128 KiB for
// one word and 2 MiB in all on Linux).
const (
	groupPaths = 500
	groupBytes = 64 << 10
)

func (s *shell) Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	for len(actions) > 0 {
		n := min(len(actions), 20000)
		if err := s.apply(ctx, root, actions[:n], done); err != nil {
			return err
		}
		actions = actions[n:]
	}
	return nil
}

func (s *shell) apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	p := &program{}
	owner := make([]int, 0, len(actions)) // step to action
	for i := 0; i < len(actions); {
		first, cmd := i, applyCommand(actions[i])
		if cmd == "" {
			p.single(actions[i])
			owner = append(owner, i)
			i++
			continue
		}
		var words []string
		bytes := 0
		for ; i < len(actions) && len(words) < groupPaths && bytes < groupBytes && applyCommand(actions[i]) == cmd; i++ {
			words = append(words, word(actions[i].Entry.Path))
			bytes += len(actions[i].Entry.Path)
			owner = append(owner, i)
		}
		each := cmd
		if cmd == "rmdir --" {
			each = "r"
		} else if rest, ok := strings.CutPrefix(cmd, "g "); ok {
			each = "k " + rest
		}
		p.group(cmd, each, words)
		for ; first < i; first++ {
			if a := actions[first]; a.Op == Attr && a.Entry.Mode.IsRegular() {
				fmt.Fprintf(&p.b, "t %d d @%s %s\n", p.steps, s.stamp(a.Entry), word(a.Entry.Path))
				owner = append(owner, first)
				p.steps++
			}
		}
	}
	if err := s.runProgram(ctx, root, p, nil); err != nil {
		return err
	}
	reasons := make([]string, len(actions))
	for step, why := range p.failed {
		reasons[owner[step]] = why
	}
	for i, a := range actions {
		if reasons[i] != "" {
			done(a, toolError(reasons[i]))
		} else {
			done(a, nil)
		}
	}
	return nil
}

// applyCommand is the command for a group of like actions, "" for those that
// are done one at a time.
func applyCommand(a Action) string {
	perm := fmt.Sprintf("%04o", a.Entry.Mode.Perm())
	switch a.Op {
	case Delete:
		if a.Entry.Mode.IsDir() {
			return "rmdir --"
		}
		return "rm -f --"
	case Mkdir:
		return fmt.Sprintf("mkdir -p -m %04o --", a.Entry.Mode.Perm()|0o700)
	case Attr:
		return "chmod " + perm + " --"
	case Move:
		// Into the trash many go at once: its folders are new, so that none is in their place.
		if dir := path.Dir(a.To); path.Base(a.To) == path.Base(a.Entry.Path) && strings.HasPrefix(dir, tree.TrashDir+"/") {
			return "g " + word(dir)
		}
	}
	return ""
}

func (p *program) single(a Action) {
	switch a.Op {
	case Link:
		fmt.Fprintf(&p.b, "t %d l %s %s\n", p.steps, remote.Quote(a.Entry.Target), word(a.Entry.Path))
	case Move:
		fmt.Fprintf(&p.b, "t %d v %s %s\n", p.steps, word(a.Entry.Path), word(a.To))
	default:
		fmt.Fprintf(&p.b, "t %d false\n", p.steps)
	}
	p.steps++
}

// stamp is a time as touch -d @… takes it; BusyBox takes whole seconds only.
func (s *shell) stamp(e Entry) string {
	t := strconv.FormatInt(e.ModTime.Unix(), 10)
	if ns := e.ModTime.Nanosecond(); ns != 0 && s.gnuFind {
		t += fmt.Sprintf(".%09d", ns)
	}
	return t
}
