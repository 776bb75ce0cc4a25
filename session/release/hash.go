// SHA-256 on both sides, streamed: file names travel NUL-ended on stdin, so that
// no name can be an option, a script or two names.

package release

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rentop/remote"
)

// fileStat is a file as a listing on the instance saw it. Times are the
// instance's own text: they are compared, not computed with.
type fileStat struct {
	path         string // absolute there
	size         int64
	mtime, ctime string
}

func (f fileStat) version() string {
	return strconv.FormatInt(f.size, 10) + " " + f.mtime + " " + f.ctime
}

// modTime is zero where the text is not understood.
func (f fileStat) modTime() time.Time {
	sec, frac, _ := strings.Cut(f.mtime, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		return time.Time{}
	}
	ns, err := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	if err != nil {
		ns = 0
	}
	return time.Unix(s, ns)
}

// maxRecord bounds one NUL-ended record from the instance.
const maxRecord = 64 << 10

// hashScript prints "HASH PATH\0" for every file that it can read, then
// "end\0". Plain names go in batches to one process; names that a line-based
// tool would escape are hashed one by one.
const hashScript = `LC_ALL=C; export LC_ALL
if command -v sha256sum >/dev/null 2>&1; then S='sha256sum'
elif command -v shasum >/dev/null 2>&1; then S='shasum -a 256'
elif command -v openssl >/dev/null 2>&1; then S='openssl dgst -sha256 -r'
else echo 'no sha256sum, shasum or openssl on the instance' >&2; exit 7; fi
export S
xargs -0 -n 500 sh -c '
nl="
"
cr=$(printf "\r")
plain() { for f; do case $f in *"$nl"*|*"$cr"*|*\\*) return 1;; esac; done; }
if [ "$S" = sha256sum ] && plain "$@"; then
  sha256sum -- "$@" 2>/dev/null | while IFS= read -r l; do p=${l#* }; printf "%s %s\0" "${l%% *}" "${p#?}"; done
else
  for f; do h=$($S <"$f" 2>/dev/null) && printf "%s %s\0" "${h%% *}" "$f"; done
fi
exit 0' sh
printf 'end\0'
`

// remoteHash hashes absolute paths on the instance. A path that is missing from
// the answer could not be read.
func remoteHash(ctx context.Context, r remote.Runner, paths []string, progress func(done int)) (map[string]string, error) {
	out := make(map[string]string, len(paths))
	if len(paths) == 0 {
		return out, nil
	}
	wanted := make(map[string]bool, len(paths))
	for _, p := range paths {
		wanted[p] = true
	}
	whole := false
	err := records(ctx, r, hashScript, stdin(paths), func(rec []byte) error {
		if string(rec) == "end" {
			whole = true
			return nil
		}
		sum, path, ok := bytes.Cut(rec, []byte(" "))
		if !ok || len(sum) != 64 || !wanted[string(path)] {
			return fmt.Errorf("a hash that was not asked for: %s", remote.Short(string(rec), 100))
		}
		out[string(path)] = string(sum)
		if progress != nil {
			progress(len(out))
		}
		return nil
	})
	if err == nil && !whole {
		err = errors.New("the list of hashes ended early")
	}
	if err != nil {
		return nil, fmt.Errorf("hash files on the instance: %w", err)
	}
	return out, nil
}

// records runs a script and hands out its NUL-ended records as they come.
func records(ctx context.Context, r remote.Runner, script string, in io.Reader, each func([]byte) error) error {
	w := &recordWriter{each: each}
	if err := r.Run(ctx, remote.Cmd{Script: script, Stdin: in, Stdout: w}); err != nil {
		return err
	}
	if w.err == nil && len(w.rest) > 0 {
		w.err = errors.New("the answer was cut short")
	}
	return w.err
}

// recordWriter splits what is written to it at NULs. It takes everything, also
// after an error, so that the channel never blocks.
type recordWriter struct {
	each func([]byte) error
	rest []byte
	err  error
}

func (w *recordWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		i := bytes.IndexByte(p, 0)
		if i < 0 {
			w.rest = append(w.rest, p...)
			if len(w.rest) > maxRecord {
				w.err, w.rest = fmt.Errorf("a record of more than %d bytes: %w", maxRecord, remote.ErrTooLong), nil
			}
			break
		}
		rec := p[:i]
		if len(w.rest) > 0 {
			w.rest = append(w.rest, rec...)
			rec = w.rest
		}
		w.err = w.each(rec)
		w.rest = w.rest[:0]
		p = p[i+1:]
	}
	return n, nil
}

// localHash reads a file of this machine. A folder is an error. What it says is on
// the disk by then: a proof must outlast a power cut right after the teardown.
func localHash(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return "", err
	} else if !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	// Some systems sync no file that is open for reading only (Windows) or none at
	// all; a disk that fails or is full says so here at the latest.
	if err := f.Sync(); errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, ctxReader{ctx, bufio.NewReaderSize(f, 1<<20)}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ctxReader ends a long read with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
