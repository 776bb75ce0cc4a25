package sync

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file moves large files where there is no SFTP: one compressed stream a
// file, written to the part beside the destination from where the last run
// stood. What a part holds is believed only after its sum was compared. It is
// written by offset, not appended to: the last run's process may still live (the
// trouble of rsync#330) and then writes the same bytes to the same places.

// execTransport is a shell that moves files one by one.
type execTransport struct{ *shell }

func (t execTransport) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	for _, e := range files {
		m.Current(e.Path)
		sent, err := t.sendFile(ctx, src, root, e, m)
		if err != nil && (ctx.Err() != nil || !t.alone(err)) {
			return errOr(ctx.Err(), err)
		}
		done(sent, err)
	}
	return nil
}

// errAlone marks an error that concerns one file only.
type errAlone struct{ error }

func (e errAlone) Unwrap() error { return e.error }

func (t execTransport) alone(err error) bool {
	var a errAlone
	return errors.As(err, &a)
}

// fileError keeps a script's own failure to its file; others end the call.
func (t execTransport) fileError(err error) error {
	if exitCode(err) > 0 {
		return errAlone{scriptReason(err)}
	}
	return err
}

func (t execTransport) sendFile(ctx context.Context, src, root string, e Entry, m Meter) (Entry, error) {
	f, fi, err := openSource(src, e)
	if err != nil {
		return e, errAlone{err}
	}
	defer f.Close()
	e.Size, e.ModTime = fi.Size(), fi.ModTime()
	part := "./" + partName(e)
	at, err := t.partState(ctx, root, part, f, e)
	if err != nil {
		return e, err
	}
	sum := sha256.New()
	if err := copyMetered(ctx, sum, io.NewSectionReader(f, 0, at), nil); err != nil {
		return e, errAlone{plainError(err)}
	}
	m.Content(at)
	reuse(m, at)
	if at < e.Size || at == 0 {
		q := remote.Quote(part)
		_, err = t.run(ctx, call{
			script: enter(root) + fmt.Sprintf(`umask 077
e=$(%s | dd of=%s bs=%d seek=%d conv=notrunc 2>&1) || { printf '%%s\n' "$e" | grep '^dd' >&2; exit 1; }`, t.unpack(), q, ddBlock, at/ddBlock),
			meter: m,
			in: func(w io.Writer) error {
				return copyMetered(ctx, io.MultiWriter(w, sum), io.NewSectionReader(f, at, e.Size-at), m)
			},
		})
		if err != nil {
			err = t.fileError(rootError(root, err))
			if errors.Is(err, ErrFull) { // there a part stands in everybody's way
				err = errOr(t.forget(ctx, root, part), err)
			}
			return e, err
		}
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := unchanged(f, e); err != nil {
		return e, errOr(t.forget(ctx, root, part), errAlone{err})
	}
	return e, t.finish(ctx, root, part, e)
}

// forget removes a part that is of no use to a later run. Its error is the
// connection's.
func (t execTransport) forget(ctx context.Context, root, part string) error {
	err := t.r.Run(ctx, remote.Cmd{Script: enter(root) + "rm -f -- " + remote.Quote(part)})
	if exitCode(err) < 0 {
		return err
	}
	return nil
}

// partState is how much of a part is there and equal to the source.
func (t execTransport) partState(ctx context.Context, root, part string, f *os.File, e Entry) (int64, error) {
	q := remote.Quote(part)
	out, err := remote.Output(ctx, t.r, enter(root)+"[ -f "+q+" ] && [ ! -L "+q+" ] || { rm -f -- "+q+"; exit 0; }\n"+
		fmt.Sprintf("n=$(wc -c <%s); n=$((n / %d * %d)); echo $n; head -c $n %s | sha256sum", q, ddBlock, ddBlock, q))
	if err != nil {
		return 0, t.fileError(rootError(root, err))
	}
	f1 := strings.Fields(string(out))
	if len(f1) < 2 {
		return 0, nil
	}
	n, err := strconv.ParseInt(f1[0], 10, 64)
	if err != nil || n < 0 || n > e.Size {
		return 0, nil
	}
	h := sha256.New()
	if err := copyMetered(ctx, h, io.NewSectionReader(f, 0, n), nil); err != nil {
		return 0, err
	}
	if hex.EncodeToString(h.Sum(nil)) != f1[1] {
		return 0, nil
	}
	return n, nil
}

// ddBlock is the unit of resuming: what dd seeks by.
const ddBlock = 64 << 10

// exitDiffers is finish's code for another sum.
const exitDiffers = 30

// finish checks the part, gives it mode and time, and renames it.
func (t execTransport) finish(ctx context.Context, root, part string, e Entry) error {
	dir, name := path.Split(e.Path)
	script := enter(root) + "cd -- " + remote.Quote("./"+dir) + ` || exit 1
p=` + remote.Quote("./"+path.Base(part)) + `; n=` + remote.Quote("./"+name) + `
s=$(sha256sum <"$p") || exit 1
[ "${s%% *}" = ` + e.SHA256 + ` ] || { rm -f -- "$p"; exit ` + strconv.Itoa(exitDiffers) + `; }
chmod ` + fmt.Sprintf("%04o", e.Mode.Perm()) + ` "$p" && touch -m -d @` + t.stamp(e) + ` "$p" || exit 1
sync "$p" 2>/dev/null
[ ! -L "$n" ] || rm -f -- "$n"
[ ! -d "$n" ] || { rm -f -- "$p"; echo "mv: a folder is in its place" >&2; exit 1; }
mv -f -- "$p" "$n" || exit 1
for o in ` + remote.Quote("./."+name+tree.PartInfix) + `*; do [ -f "$o" ] && rm -f -- "$o"; done
exit 0`
	_, err := t.run(ctx, call{script: script})
	if exitCode(err) == exitDiffers {
		return errAlone{ErrDiffers}
	}
	if err != nil {
		return t.fileError(rootError(root, err))
	}
	return nil
}

func (t execTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	out, err := openSink(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, e := range files {
		m.Current(e.Path)
		got, err := t.fetchFile(ctx, out, root, e, m)
		if err != nil && (ctx.Err() != nil || !t.alone(err)) {
			return errOr(ctx.Err(), err)
		}
		done(got, err)
	}
	return nil
}

func (t execTransport) fetchFile(ctx context.Context, out *sink, root string, e Entry, m Meter) (Entry, error) {
	p, err := out.part(e)
	if err != nil {
		return e, errAlone{plainError(err)}
	}
	m.Content(p.start)
	reuse(m, p.start)
	var here error // of this machine
	if p.start < e.Size {
		_, err = t.run(ctx, call{
			script: enter(root) + "exec <" + remote.Quote("./"+e.Source()) + " || exit 1\n" + fmt.Sprintf("tail -c +%d | ", p.start+1) + t.pack(),
			meter:  m,
			out: func(r *bufio.Reader) error {
				buf := make([]byte, 256<<10)
				for at := p.start; at < e.Size; {
					n, err := io.ReadFull(r, buf[:min(int64(len(buf)), e.Size-at)])
					if n > 0 {
						if here = p.writeAt(buf[:n], at); here != nil {
							return here
						}
						m.Content(int64(n))
						at += int64(n)
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
		})
		switch {
		case here != nil:
			p.failed(here, m)
			return e, errAlone{plainError(here)}
		case err != nil && !(exitCode(err) >= 0 && p.done.at == e.Size):
			p.close()
			if errors.Is(err, errEnded) && ctx.Err() == nil {
				p.drop()
				return e, errAlone{ErrChanged}
			}
			keep(m, p.journaled)
			return e, t.fileError(rootError(root, err))
		}
	}
	e, err = p.finish(ctx, func(sum string) error {
		var far string
		err := t.Hash(ctx, root, []string{e.Source()}, func(_, s string, err error) { far = s })
		if err == nil && far != sum {
			err = ErrDiffers
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		err = errAlone{err}
	}
	return e, err
}
