// The SHA-256 of files and of their parts, as the instance reads them.

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
)

// File is a file on the instance and its place in the bucket.
type File struct {
	Path    string // absolute there
	Rel     string // below the place's prefix, with slashes
	Size    int64
	ModTime time.Time
}

// sums of one file.
type sums struct {
	whole []byte   // nil: see err
	parts [][]byte // nil where the file is one part
	err   error
}

// ErrChanged is of a file that is not as it was listed: it is being written.
var ErrChanged = errors.New("it changed meanwhile: it is being written")

// one is the part's own sum of a file in parts, else the file's.
func (s sums) one(number int) []byte {
	if s.parts == nil {
		return s.whole
	}
	return s.parts[number-1]
}

// composite is how S3 writes the SHA-256 of an object in parts.
func (s sums) composite() string {
	h := sha256.New()
	for _, p := range s.parts {
		h.Write(p)
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(s.parts))
}

// decode is the head of each script: names come with all but plain characters in
// octal, so that a line is a line.
const decode = `LC_ALL=C; export LC_ALL
name() { f=$(printf '%b.' "$1"); f=${f%.}; }
if command -v sha256sum >/dev/null 2>&1; then S=sha256sum
elif command -v shasum >/dev/null 2>&1; then S='shasum -a 256'
elif command -v openssl >/dev/null 2>&1; then S='openssl dgst -sha256 -r'
else echo 'no sha256sum, shasum or openssl on the instance' >&2; exit 7; fi
`

// sumScript reads a file twice at once, which the disk sees as once.
const sumScript = decode + `see() { stat -L -c '%s %Y %Z' -- "$f" 2>/dev/null; }
while read -r n size part mib enc; do
  name "$enc"
  v=$(see)
  [ "${v%% *}" = "$size" ] || { printf '%s changed\n' "$n"; continue; }
  ( h=$($S <"$f" 2>/dev/null) && printf '%s whole %s\n' "$n" "${h%% *}" || printf '%s unread\n' "$n" ) &
  k=0
  while [ "$part" -gt 0 ] && [ $((k*part)) -lt "$mib" ]; do
    h=$(dd if="$f" bs=1048576 skip=$((k*part)) count="$part" 2>/dev/null | $S)
    k=$((k+1))
    printf '%s part %s %s\n' "$n" "$k" "${h%% *}"
  done
  wait
  [ "$v" = "$(see)" ] || printf '%s changed\n' "$n"
done
echo end
`

// readSums hashes files there. Each has its own error; the other is for all.
func (c *Client) readSums(ctx context.Context, r remote.Runner, files []File, progress func(done int)) ([]sums, error) {
	out := make([]sums, len(files))
	var in bytes.Buffer
	for i, f := range files {
		if out[i].err = checkSize(f.Size); out[i].err != nil {
			continue
		}
		each := c.part(f.Size)
		part := int64(0)
		if f.Size > each {
			part = each / mebibyte
			out[i].parts = make([][]byte, len(parts(f.Size, each)))
		}
		fmt.Fprintln(&in, i, f.Size, part, (f.Size+mebibyte-1)/mebibyte, octal(f.Path))
	}
	done, whole := 0, false
	lines := &lineWriter{each: func(line string) error {
		if line == "end" {
			whole = true
			return nil
		}
		w := strings.Split(line, " ")
		i, err := strconv.Atoi(w[0])
		if err != nil || i < 0 || i >= len(out) || len(w) < 2 {
			return misread(line)
		}
		s := &out[i]
		switch {
		case w[1] == "changed":
			s.err = ErrChanged
		case w[1] == "unread":
			s.err = errors.New("it cannot be read on the instance")
		case w[1] == "whole" && len(w) == 3:
			if s.whole, err = unhex(w[2]); err != nil {
				return misread(line)
			}
			if done++; progress != nil {
				progress(done)
			}
		case w[1] == "part" && len(w) == 4:
			k, kerr := strconv.Atoi(w[2])
			sum, err := unhex(w[3])
			if kerr != nil || err != nil || k < 1 || k > len(s.parts) {
				return misread(line)
			}
			s.parts[k-1] = sum
		default:
			return misread(line)
		}
		return nil
	}}
	err := r.Run(ctx, remote.Cmd{Script: sumScript, Stdin: &in, Stdout: lines})
	if err == nil {
		err = lines.err
	}
	if err == nil && !whole {
		err = errors.New("the list of hashes ended early")
	}
	if err != nil {
		return nil, fmt.Errorf("hash files on the instance: %w", err)
	}
	for i := range out {
		if out[i].err == nil && !out[i].complete() {
			out[i].err = errors.New("the instance told no hash of it")
		}
	}
	return out, nil
}

func (s sums) complete() bool {
	for _, p := range s.parts {
		if p == nil {
			return false
		}
	}
	return s.whole != nil
}

func unhex(s string) ([]byte, error) {
	b, err := hex.DecodeString(s)
	if err == nil && len(b) != sha256.Size {
		err = errors.New("no SHA-256")
	}
	return b, err
}

func misread(line string) error {
	return fmt.Errorf("an answer that is not understood: %s", remote.Short(line, 100))
}

// octal writes s so that printf %b of a shell makes it again.
func octal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		ch := s[i]
		if ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || strings.IndexByte("/._-+=@:,", ch) >= 0 {
			b.WriteByte(ch)
			continue
		}
		fmt.Fprintf(&b, `\0%03o`, ch)
	}
	return b.String()
}

// maxLine bounds what one line of an answer may hold.
const maxLine = 8 << 10

// lineWriter splits what is written to it into lines. It takes everything, also
// after an error, so that the channel never blocks.
type lineWriter struct {
	each func(string) error
	rest []byte
	err  error
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if w.rest = append(w.rest, p...); len(w.rest) > maxLine {
				w.err, w.rest = remote.ErrTooLong, nil
			}
			break
		}
		w.rest = append(w.rest, p[:i]...)
		if len(w.rest) > maxLine {
			w.err = remote.ErrTooLong
			break
		}
		w.err = w.each(string(w.rest))
		w.rest, p = w.rest[:0], p[i+1:]
	}
	return n, nil
}
