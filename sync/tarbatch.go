package sync

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
)

// This file is one batch of tar.go: its script on the instance, its stream, and
// what is done where something in it went wrong.

// batch is one stream of files.
type batch struct {
	t     *tarTransport
	run   string // the call that it belongs to
	from  batchSource
	root  string
	files []Entry
	tmp   string // name of the temporary folders
	meter Meter
	done  func(Entry, error)

	sent []Entry         // in the stream, whole, with SHA256
	drop []Entry         // in the stream, but changed while being read; reported already
	told map[string]bool // files reported already
}

// batchSource puts a batch's files into its stream, by add or tell.
type batchSource func(ctx context.Context, b *batch, tw *tar.Writer) error

func (b *batch) tell(e Entry, err error) {
	b.told[e.Path] = true
	b.done(e, err)
}

func (b *batch) send(ctx context.Context) error {
	var ans answer
	_, err := b.t.shell.run(ctx, call{script: b.script(), in: func(w io.Writer) error { return b.stream(ctx, w) }, plain: true, out: ans.read, meter: b.meter})
	if err != nil && !ans.end {
		return b.ended(ctx, err)
	}
	if ans.moved {
		for _, e := range b.sent {
			b.tell(e, nil)
		}
		return nil
	}
	return b.settle(ctx, &ans)
}

// ended handles a script that gave no verdict: it removed what it made.
func (b *batch) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := exitCode(err)
	if code < 0 && !errors.Is(err, errEnded) {
		return fmt.Errorf("sending to %s: %w", remote.Clean(b.root), err)
	}
	reason := scriptReason(err)
	if code == exitNoRoot || code == exitBadRoot {
		reason = rootError(b.root, err)
	}
	var rest []Entry
	for _, e := range b.files {
		if !b.told[e.Path] {
			rest = append(rest, e)
		}
	}
	if code == exitNoEnd && !errors.Is(reason, ErrFull) && len(rest) > 1 && b.t.splits.Add(-1) >= 0 {
		for _, half := range [][]Entry{rest[:len(rest)/2], rest[len(rest)/2:]} {
			if err := b.t.batch(b.run, b.from, b.root, half, b.meter, b.done).send(ctx); err != nil {
				return err
			}
		}
		rest = nil
	}
	for _, e := range rest {
		b.tell(e, reason)
	}
	// on a full disk the script may not have had its list of folders
	p := &program{}
	b.cleanUp(p)
	if err := b.t.runProgram(ctx, b.root, p, b.meter); err != nil && exitCode(err) < 0 {
		return err
	}
	return nil
}

// cleanUp removes the batch's temporary folders.
func (b *batch) cleanUp(p *program) {
	var tmps []string
	for _, d := range b.dirs() {
		tmps = append(tmps, word(d))
	}
	tmps = append(tmps, word(b.tmp+".ctl"))
	for words := range slices.Chunk(tmps, groupPaths) {
		p.b.WriteString("rm -rf -- " + strings.Join(words, " ") + "\n")
	}
}

// exitNoEnd is the script's code where tar stopped before the end: BusyBox's
// does at the first file that it cannot write, so that batch is halved until
// that file is alone, at most maxSplits times in a call.
const (
	exitNoEnd = 12
	maxSplits = 100
)

// script is what runs on the instance. Sums are compared there, by one sum of
// each list, so that no cmp or diff is needed. The list of folders may end in the
// middle of a path where the stream was cut: only whole ones are removed.
func (b *batch) script() string {
	form := ""
	if b.t.gnuTar {
		form = "--warning=no-timestamp "
	}
	return enter(b.root) + "C=./" + b.tmp + ".ctl\numask 077\n" + `clean() { [ -f "$C/dirs" ] && xargs -0 -r sh -c 'for d; do case $d in */"$0") rm -rf -- "$d";; esac; done' ` + b.tmp + ` <"$C/dirs"; rm -rf -- "$C"; }
trap clean EXIT
trap 'exit 1' HUP INT TERM PIPE
mkdir "$C" || exit 11
echo $$ >"$C/pid"
e=$(` + b.t.unpack() + ` 2>/dev/null | tar ` + form + `-xpof - 2>&1 >/dev/null)
r=$?
if [ ! -s "$C/end" ]; then printf '%s\n' "$e" | tail -n 5 >&2; exit ` + strconv.Itoa(exitNoEnd) + `; fi
[ ! -s "$C/drop" ] || xargs -0 -r rm -f -- <"$C/drop"
xargs -0 -r sha256sum -- <"$C/names" >"$C/got" 2>/dev/null
if [ $r = 0 ] && [ "$(sha256sum <"$C/got")" = "$(sha256sum <"$C/sums")" ]; then
xargs -0 -r sh -c 'for d; do (cd "$d" && exec mv -f -- ./* ./.[!.]* ./..?* ..); done' sh <"$C/dirs" 2>/dev/null
if xargs -0 -r rmdir -- <"$C/dirs" 2>/dev/null; then printf 'moved\0E\0'; exit 0; fi
fi
trap - EXIT
printf 'differ\0'
xargs -0 -r sha256sum -- <"$C/names" 2>/dev/null
printf '\0'
printf '%s\n' "$e" | head -c 8000
printf '\0E\0'
`
}

// answer is the script's verdict.
type answer struct {
	moved bool
	sums  string
	err   string // tar's messages
	end   bool
}

func (a *answer) read(r *bufio.Reader) error {
	for _, want := range []*string{new(string), &a.sums, &a.err, new(string)} {
		v, err := longRecord(r, 8<<20)
		if err != nil {
			return err
		}
		switch *want = v; v {
		case "moved":
			a.moved = true
		case "E":
			a.end = true
			return nil
		}
		if a.moved {
			v, err = longRecord(r, 8)
			a.end = err == nil && v == "E"
			return err
		}
	}
	return errors.New("unexpected answer from the instance's shell")
}

// longRecord reads up to a zero byte, at most max bytes.
func longRecord(r *bufio.Reader, max int) (string, error) {
	var b []byte
	for {
		part, err := r.ReadSlice(0)
		b = append(b, part...)
		if len(b) > max {
			return "", errors.New("the instance sent more than expected")
		}
		if err == nil {
			return string(b[:len(b)-1]), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
}

// settle is for a batch in which something went wrong: each file that did
// arrive is moved by itself, the others are reported with their reason.
func (b *batch) settle(ctx context.Context, ans *answer) error {
	paths := make([]string, len(b.sent))
	for i, e := range b.sent {
		paths[i] = b.at(e.Path)
	}
	good := make([]bool, len(paths))
	r := bufio.NewReader(strings.NewReader(ans.sums))
	if _, err := readSums(r, paths, "./", func(i int, sum string) { good[i] = sum == b.sent[i].SHA256 }, func(int) {}); err != nil {
		return fmt.Errorf("comparing SHA-256 in %s: %w", remote.Clean(b.root), err)
	}
	p := &program{}
	step := make([]int, len(paths))
	for i, e := range b.sent {
		if step[i] = -1; good[i] {
			step[i] = p.steps
			dir, name := path.Split(b.at(e.Path))
			fmt.Fprintf(&p.b, "t %d m %s %s\n", p.steps, word(dir), word(name))
			p.steps++
		}
	}
	b.cleanUp(p)
	if err := b.t.runProgram(ctx, b.root, p, b.meter); err != nil {
		return err
	}
	for i, e := range b.sent {
		switch why := p.failed[step[i]]; {
		case step[i] < 0:
			b.tell(e, b.reason(ans.err, paths[i]))
		case why != "":
			b.tell(e, toolError(why))
		default:
			b.tell(e, nil)
		}
	}
	return nil
}

// reason finds what tar said about a path, or what it said last.
func (b *batch) reason(messages, p string) error {
	var last string
	for line := range strings.Lines(messages) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "tar: "+p+": ") || strings.HasPrefix(line, "tar: "+path.Dir(p)+": ") {
			return toolError(shortReason(line))
		}
		if strings.Contains(line, ": ") && !strings.Contains(line, "Exiting with failure") {
			last = line
		}
	}
	if last != "" {
		return toolError(shortReason(last))
	}
	return ErrDiffers
}

// ErrDiffers is where the two sides' SHA-256 of a file that was moved differ.
var ErrDiffers = errors.New("arrived with another SHA-256 than it was sent with")

// ErrChanged is where a file kept changing while it was being read.
var ErrChanged = errors.New("changed while it was being read")

// at is where a file waits before it is renamed.
func (b *batch) at(p string) string {
	return path.Join(path.Dir(p), b.tmp, path.Base(p))
}

// dirs are the temporary folders of the batch.
func (b *batch) dirs() []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range b.files {
		if d := path.Dir(b.at(e.Path)); !seen[d] {
			seen[d] = true
			out = append(out, d)
		}
	}
	return out
}

// stream writes the batch as a tar.
func (b *batch) stream(ctx context.Context, w io.Writer) error {
	tw := tar.NewWriter(w)
	var list strings.Builder
	if err := writePaths(&list, b.dirs()); err != nil {
		return err
	}
	if err := b.control(tw, "dirs", list.String()); err != nil {
		return err
	}
	if err := b.from(ctx, b, tw); err != nil {
		return err
	}
	var names, sums, drop strings.Builder
	for _, e := range b.sent {
		p := "./" + b.at(e.Path)
		names.WriteString(p + "\x00")
		sums.WriteString(e.SHA256 + "  " + p + "\n")
	}
	for _, e := range b.drop {
		drop.WriteString("./" + b.at(e.Path) + "\x00")
	}
	for _, c := range []struct{ name, text string }{{"names", names.String()}, {"sums", sums.String()}, {"drop", drop.String()}, {"end", "end\n"}} {
		if err := b.control(tw, c.name, c.text); err != nil {
			return err
		}
	}
	return tw.Close()
}

func (b *batch) control(tw *tar.Writer, name, text string) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: b.tmp + ".ctl/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now(), Format: tar.FormatGNU}
	h.ModTime = h.ModTime.Truncate(time.Second)
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(tw, text)
	return err
}

// local puts in the files of the folder src on this machine.
func (b *batch) local(tw *tar.Writer, src string) error {
	for _, e := range b.files {
		b.meter.Current(e.Path)
		if err := b.file(tw, src, e); err != nil {
			return err
		}
	}
	return nil
}

// file adds one file, as it is now; an error is the stream's, not the file's.
func (b *batch) file(tw *tar.Writer, src string, e Entry) error {
	f, fi, err := openSource(src, e)
	if err != nil {
		b.tell(e, err)
		return nil
	}
	defer f.Close()
	e.Size, e.ModTime = fi.Size(), fi.ModTime()
	return b.add(tw, e, f, func() error { return unchanged(f, e) })
}

// add puts in one file; check says in the end whether what was read is one state of
// it. An error is the stream's, not the file's.
func (b *batch) add(tw *tar.Writer, e Entry, r io.Reader, check func() error) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: b.at(e.Path), Mode: int64(e.Mode.Perm()), Size: e.Size, ModTime: e.ModTime, Format: tar.FormatPAX}
	if !b.t.gnuTar {
		// BusyBox knows GNU's long names, not PAX ones
		h.Format, h.ModTime = tar.FormatGNU, h.ModTime.Truncate(time.Second)
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(tw, sum, contentWriter{b.meter}), io.LimitReader(r, e.Size))
	if n < e.Size {
		if _, werr := io.CopyN(tw, zeros{}, e.Size-n); werr != nil {
			return werr
		}
		err = errOr(err, ErrChanged)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		b.drop = append(b.drop, e)
		b.tell(e, err)
		return nil
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	b.sent = append(b.sent, e)
	return nil
}
