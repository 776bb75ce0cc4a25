package sync

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file lists, looks up, hashes and changes a tree by shell scripts: with
// GNU find where there is one, else with what BusyBox has. Every answer is
// hostile: lengths are bounded and paths checked.

// Exit codes of our scripts.
const (
	exitNoRoot  = 20 // the folder is not there
	exitBadRoot = 21 // it is there and cannot be entered
)

// enter goes to root, which is absolute.
func enter(root string) string {
	q := remote.Quote(root)
	return fmt.Sprintf(`cd -- %[1]s 2>/dev/null || {
[ -e %[1]s ] || ls -d -- %[1]s 2>&1 >/dev/null | grep -q 'ermission denied' || exit %[2]d
cd -- %[1]s; exit %[3]d
}
`, q, exitNoRoot, exitBadRoot)
}

// rootError gives our exit codes their meaning.
func rootError(root string, err error) error {
	switch exitCode(err) {
	case exitNoRoot:
		return &fs.PathError{Op: "open", Path: root, Err: fs.ErrNotExist}
	case exitBadRoot:
		return &closedRoot{root, err}
	}
	return err
}

// closedRoot is a root that is there and that this login cannot enter.
type closedRoot struct {
	root string
	err  error // the script's end
}

func (e *closedRoot) Unwrap() error { return e.err }

func (e *closedRoot) Error() string {
	why := "permission denied"
	if x := (*remote.ExitError)(nil); errors.As(e.err, &x) && strings.Contains(x.Stderr, "ot a directory") {
		why = "it is no folder"
	}
	return remote.Clean(e.root) + " on the instance cannot be opened: " + why
}

func (s *shell) Resolve(ctx context.Context, p string) (string, Entry, error) {
	if strings.IndexByte(p, 0) >= 0 {
		return "", Entry{}, errors.New("path with a zero byte")
	}
	script := "p=" + remote.Quote(p) + `
[ -n "$HOME" ] || HOME=$(pwd)
case $p in
'~'|'') p=$HOME;;
'~/'*) p=$HOME/${p#??};;
/*) ;;
*) p=$HOME/$p;;
esac
t=n
if [ -d "$p" ]; then t=d; elif [ -f "$p" ]; then t=f; elif [ -e "$p" ]; then t=o; fi
r=
if [ $t = f ] && [ -L "$p" ]; then r=$(readlink -f "$p"; echo .); r=${r%?.}; fi
printf '%s\0%s\0%s\0' "$p" "$t" "$r"`
	out, err := remote.Output(ctx, s.r, script)
	if err != nil {
		return "", Entry{}, fmt.Errorf("looking up %s on the instance: %w", remote.Clean(p), err)
	}
	f := bytes.Split(out, []byte{0})
	if len(f) != 4 || len(f[0]) > tree.MaxPath || !path.IsAbs(string(f[0])) {
		return "", Entry{}, fmt.Errorf("looking up %s on the instance: unexpected answer", remote.Clean(p))
	}
	abs := path.Clean(string(f[0]))
	e := Entry{Path: path.Base(abs)}
	switch string(f[1]) {
	case "d":
		e.Mode = fs.ModeDir
	case "f":
		if real := string(f[2]); path.IsAbs(real) && len(real) <= tree.MaxPath {
			e.Target = real
		}
	case "n":
		return abs, e, &fs.PathError{Op: "stat", Path: abs, Err: fs.ErrNotExist}
	default:
		e.Mode = fs.ModeIrregular
	}
	return abs, e, nil
}

func (s *shell) List(ctx context.Context, root string, emit func(Entry) error) error {
	m := marker()
	const trash = `\( ! -name ` + tree.TrashDir + ` -o -prune \)` // is named and not gone into
	find := "find . -mindepth 1 " + trash + " -printf '%y %s %m %T@ %p\\0%l\\0'; printf 'E %d\\0\\0' $?"
	if !s.gnuFind {
		find = "find . -mindepth 1 " + trash + " -exec " + busyStat(m) + " {} +; printf 'E%d" + m + "\\n' $?"
	}
	return s.listing(ctx, root, enter(root)+"{ "+find+"; } | "+s.pack(), m, nil, true, emit)
}

func (s *shell) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	if len(paths) == 0 {
		return nil
	}
	m := marker()
	find := `xargs -0 -r sh -c 'find "$@" -maxdepth 0 -printf "%y %s %m %T@ %p\\0%l\\0" 2>/dev/null' sh; printf 'E 0\0\0'`
	if !s.gnuFind {
		find = "xargs -0 -r " + busyStat(m) + "; printf 'E0" + m + "\\n'"
	}
	in := func(w io.Writer) error { return writePaths(w, paths) }
	return s.listing(ctx, root, enter(root)+s.unpack()+" | { "+find+"; } | "+s.pack(), m, in, false, emit)
}

// busyStat is a command that prints its arguments' states, for a find or stat
// without -printf. The marker ends each record, since names may hold anything
// else; only it is told from our own randomness.
func busyStat(m string) string {
	return `sh -c 'stat -c "s%f %s %Y %n` + m + `" "$@" 2>/dev/null; for f; do if [ -L "$f" ]; then printf "l%s` + m + `\nt" "$f"; readlink -n "$f"; echo ` + m + `; fi; done; true' sh`
}

func marker() string {
	var b [12]byte
	rand.Read(b[:])
	return "@" + hex.EncodeToString(b[:])
}

// writePaths writes paths NUL-terminated and so that none looks like an option.
func writePaths(w io.Writer, paths []string) error {
	for _, p := range paths {
		if _, err := io.WriteString(w, "./"+p+"\x00"); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) listing(ctx context.Context, root, script, marker string, in func(io.Writer) error, incomplete bool, emit func(Entry) error) error {
	l := lister{emit: emit}
	out := func(r *bufio.Reader) error { return l.gnu(r) }
	if !s.gnuFind {
		out = func(r *bufio.Reader) error { return l.busy(r, marker) }
	}
	stderr, err := s.run(ctx, call{script: script, in: in, out: out})
	if c := exitCode(err); c == exitNoRoot || c == exitBadRoot {
		return rootError(root, err)
	}
	if err != nil && l.end {
		// all was read; the pipe's own end does not matter
		err = l.emitErr
	}
	if err != nil {
		if errors.Is(err, errEnded) && ctx.Err() == nil {
			if _, _, rerr := s.Resolve(ctx, root); errors.Is(rerr, fs.ErrNotExist) {
				return rerr
			}
		}
		return fmt.Errorf("listing %s on the instance: %w", remote.Clean(root), err)
	}
	if incomplete && l.code != 0 {
		for line := range strings.Lines(stderr) {
			l.bad(strings.TrimSpace(line), errors.New("could not be read"))
		}
		if len(l.problems) == 0 {
			l.bad(root, errors.New("a part could not be read"))
		}
	}
	if len(l.problems) > 0 {
		return &ListError{Problems: l.problems}
	}
	return nil
}

// lister turns a listing's records into entries.
type lister struct {
	emit     func(Entry) error
	problems []Failure
	seen     int  // entries given
	names    int  // bytes of their names
	end      bool // the last record came
	code     int  // find's
	emitErr  error
}

// What an instance can make us remember.
const (
	maxProblems = 1000
	maxEntries  = 5_000_000
	maxNames    = 512 << 20 // bytes of all paths and targets
)

func (l *lister) bad(p string, err error) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, Failure{Path: remote.Short(p, 300), Err: err})
	}
}

func (l *lister) give(e Entry) error {
	e.Path = strings.TrimPrefix(e.Path, "./")
	if err := tree.CheckPath(e.Path); err != nil {
		l.bad(e.Path, err)
		return nil
	}
	if e.Size < 0 {
		l.bad(e.Path, errors.New("negative size"))
		return nil
	}
	l.seen++
	if l.names += len(e.Path) + len(e.Target); l.seen > maxEntries || l.names > maxNames {
		l.emitErr = fmt.Errorf("%w: more than %d files, or %d MiB of names; choose a smaller folder", remote.ErrTooLong, maxEntries, maxNames>>20)
		return l.emitErr
	}
	if !e.Mode.IsRegular() {
		e.Size = 0
	}
	l.emitErr = l.emit(e)
	return l.emitErr
}

// record reads up to delim's last byte that completes it.
func record(r *bufio.Reader, delim string) (string, error) {
	var b []byte
	for {
		part, err := r.ReadSlice(delim[len(delim)-1])
		b = append(b, part...)
		if len(b) > 3*tree.MaxPath {
			return "", errors.New("the instance sent a name without end")
		}
		if err == nil && bytes.HasSuffix(b, []byte(delim)) {
			return string(b[:len(b)-len(delim)]), nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

// gnu reads find's "%y %s %m %T@ %p\0%l\0" up to "E code\0\0".
func (l *lister) gnu(r *bufio.Reader) error {
	for {
		head, err := record(r, "\x00")
		if err != nil {
			return err
		}
		target, err := record(r, "\x00")
		if err != nil {
			return err
		}
		if code, ok := strings.CutPrefix(head, "E "); ok {
			l.code, err = strconv.Atoi(code)
			l.end = err == nil
			return err
		}
		e, ok := parseGNU(head)
		if !ok {
			l.bad(head, errors.New("the listing holds an unexpected line"))
			continue
		}
		e.Target = target
		if err := l.give(e); err != nil {
			return err
		}
	}
}

func parseGNU(head string) (Entry, bool) {
	f := strings.SplitN(head, " ", 5)
	if len(f) != 5 || len(f[0]) != 1 {
		return Entry{}, false
	}
	var e Entry
	size, err1 := strconv.ParseInt(f[1], 10, 64)
	mode, err2 := strconv.ParseUint(f[2], 8, 32)
	mtime, ok := parseTime(f[3])
	if err1 != nil || err2 != nil || !ok {
		return Entry{}, false
	}
	e.Size, e.ModTime, e.Path = size, mtime, f[4]
	e.Mode = fs.FileMode(mode) & fs.ModePerm
	switch f[0] {
	case "f":
	case "d":
		e.Mode |= fs.ModeDir
	case "l":
		e.Mode |= fs.ModeSymlink
	case "p":
		e.Mode |= fs.ModeNamedPipe
	case "s":
		e.Mode |= fs.ModeSocket
	case "b", "c":
		e.Mode |= fs.ModeDevice
	default:
		e.Mode |= fs.ModeIrregular
	}
	return e, true
}

// parseTime reads seconds with an optional fraction ("1700000000.1234567890").
func parseTime(s string) (time.Time, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || sec > 1<<40 || sec < -(1<<40) {
		return time.Time{}, false
	}
	var ns int64
	if frac != "" {
		ns, err = strconv.ParseInt((frac + "000000000")[:9], 10, 64)
		if err != nil || ns < 0 {
			return time.Time{}, false
		}
		if strings.HasPrefix(whole, "-") {
			ns = -ns
		}
	}
	return time.Unix(sec, ns), true
}

// busy reads busyStat's records up to "E code".
func (l *lister) busy(r *bufio.Reader, marker string) error {
	links := map[string]Entry{}
	var link string
	for {
		rec, err := record(r, marker+"\n")
		if err != nil {
			return err
		}
		if rec == "" {
			return errors.New("the listing holds an empty record")
		}
		body := rec[1:]
		switch rec[0] {
		case 's':
			e, ok := parseBusy(body)
			if !ok {
				l.bad(body, errors.New("the listing holds an unexpected line"))
				continue
			}
			if e.Mode&fs.ModeSymlink != 0 && len(links) < 1<<16 {
				links[e.Path] = e
				continue
			}
			if err := l.give(e); err != nil {
				return err
			}
		case 'l':
			link = body
		case 't':
			if e, ok := links[link]; ok {
				delete(links, link)
				e.Target = body
				if err := l.give(e); err != nil {
					return err
				}
			}
		case 'E':
			l.code, err = strconv.Atoi(body)
			l.end = err == nil
			return err
		default:
			l.bad(rec, errors.New("the listing holds an unexpected line"))
		}
	}
}

func parseBusy(body string) (Entry, bool) {
	f := strings.SplitN(body, " ", 4)
	if len(f) != 4 {
		return Entry{}, false
	}
	raw, err1 := strconv.ParseUint(f[0], 16, 32)
	size, err2 := strconv.ParseInt(f[1], 10, 64)
	mtime, ok := parseTime(f[2])
	if err1 != nil || err2 != nil || !ok {
		return Entry{}, false
	}
	e := Entry{Path: f[3], Size: size, ModTime: mtime, Mode: fs.FileMode(raw) & fs.ModePerm}
	switch raw & 0o170000 { // stat(2)'s S_IFMT
	case 0o100000:
	case 0o040000:
		e.Mode |= fs.ModeDir
	case 0o120000:
		e.Mode |= fs.ModeSymlink
	case 0o010000:
		e.Mode |= fs.ModeNamedPipe
	case 0o140000:
		e.Mode |= fs.ModeSocket
	case 0o020000, 0o060000:
		e.Mode |= fs.ModeDevice
	default:
		e.Mode |= fs.ModeIrregular
	}
	return e, true
}
