package sync

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"rentop/remote"
)

// This file reads SHA-256 sums that the instance computes.

// errNoSum is for a file that sha256sum did not report.
var errNoSum = errors.New("could not be read on the instance")

func (s *shell) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	if len(paths) == 0 {
		return nil
	}
	next := 0
	stderr, err := s.run(ctx, call{
		script: enter(root) + s.unpack() + " | xargs -0 -r sha256sum -- | " + s.pack(),
		in:     func(w io.Writer) error { return writePaths(w, paths) },
		out: func(r *bufio.Reader) error {
			var err error
			next, err = readSums(r, paths, "./", func(i int, sum string) { done(paths[i], sum, nil) }, func(i int) { done(paths[i], "", errNoSum) })
			return err
		},
	})
	if err != nil && !(next == len(paths) && exitCode(err) > 0) {
		if err = rootError(root, err); errors.Is(err, errEnded) && stderr != "" {
			err = errors.New(lastLine(stderr))
		}
		return fmt.Errorf("computing SHA-256 in %s on the instance: %w", remote.Clean(root), err)
	}
	for ; next < len(paths); next++ {
		done(paths[next], "", errNoSum)
	}
	return nil
}

// readSums reads sha256sum's output for prefix+paths, in that order. The names
// are known, so that they can be told from their ends whatever they hold: GNU
// puts a backslash before a line whose name is escaped, BusyBox escapes nothing.
// It returns how many paths were reported, missing ones included.
func readSums(r *bufio.Reader, paths []string, prefix string, got func(i int, sum string), missing func(i int)) (int, error) {
	next := 0
	for {
		sum, rest, err := sumLine(r)
		if err == io.EOF {
			for ; next < len(paths); next++ {
				missing(next)
			}
			return next, nil
		}
		if err != nil {
			return next, err
		}
		for {
			at := next
			for at < len(paths) && !rest.startsAs(prefix+paths[at]) {
				at++
			}
			if at == len(paths) {
				return next, fmt.Errorf("unexpected line from sha256sum: %s", remote.Short(rest.line, 120))
			}
			ok, err := rest.completes(r, prefix+paths[at])
			if err != nil {
				return next, err
			}
			if !ok {
				return next, fmt.Errorf("unexpected line from sha256sum: %s", remote.Short(rest.line, 120))
			}
			for ; next < at; next++ {
				missing(next)
			}
			got(at, sum)
			next = at + 1
			break
		}
	}
}

// sumName is the name part of a line, as far as it was read.
type sumName struct {
	line    string
	escaped bool
}

func sumLine(r *bufio.Reader) (string, sumName, error) {
	line, err := record(r, "\n")
	if err != nil {
		return "", sumName{}, err
	}
	var n sumName
	if strings.HasPrefix(line, `\`) {
		n.escaped = true
		line = line[1:]
	}
	if len(line) < 66 {
		return "", n, fmt.Errorf("unexpected line from sha256sum: %s", remote.Short(line, 120))
	}
	sum := line[:64]
	if _, err := hex.DecodeString(sum); err != nil || strings.ToLower(sum) != sum {
		return "", n, fmt.Errorf("unexpected line from sha256sum: %s", remote.Short(line, 120))
	}
	n.line = line[66:]
	return sum, n, nil
}

func (n sumName) startsAs(name string) bool {
	if n.escaped {
		return n.line == escapeSumName(name) || n.line == oldEscape.Replace(name)
	}
	first, _, more := strings.Cut(name, "\n")
	return n.line == first || !more && n.line == name
}

// completes reads the further lines of a name with raw newlines.
func (n sumName) completes(r *bufio.Reader, name string) (bool, error) {
	if n.escaped {
		return true, nil
	}
	_, rest, more := strings.Cut(name, "\n")
	for more {
		line, err := record(r, "\n")
		if err != nil {
			return false, err
		}
		var want string
		want, rest, more = strings.Cut(rest, "\n")
		if line != want {
			return false, nil
		}
	}
	return true, nil
}

// escapeSumName is how coreutils writes a name in a manifest.
func escapeSumName(s string) string {
	return newEscape.Replace(s)
}

var (
	newEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	oldEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`) // coreutils before 9
)
