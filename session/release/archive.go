// The portable snapshot as a stream: an archive that is sent while it is made there. Its
// SHA-256 is taken on both sides, and it is unpacked in passing, so that its
// manifest says what the archive really holds; a file is saved by it only while
// the manifest still fits.

package release

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"rentop/remote"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

// archiveScript streams a compressed tar of the NUL-ended paths on stdin. Its
// stderr ends with "rentop-sum HASH TAR-EXIT COMPRESSOR-EXIT".
const archiveScript = `LC_ALL=C; export LC_ALL
d=$(mktemp -d "${TMPDIR:-/tmp}/rentop-snap.XXXXXX" 2>/dev/null || mktemp -d /dev/shm/rentop-snap.XXXXXX) || exit 3
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cat >"$d/list" || exit 3
if command -v sha256sum >/dev/null 2>&1; then S='sha256sum'; elif command -v shasum >/dev/null 2>&1; then S='shasum -a 256'; else S='openssl dgst -sha256 -r'; fi
mkfifo "$d/fifo" || exit 3
$S <"$d/fifo" >"$d/sum" & sum=$!
cd / || exit 3
if tar --version 2>/dev/null | grep -q -e 'GNU tar' -e bsdtar; then pack() { tar -cf - --null -T "$d/list"; }
else
  [ "$(wc -c <"$d/list")" -le 20000 ] || { echo 'the tar there takes no list: choose folders instead of so many files' >&2; exit 8; }
  pack() { xargs -0 -n 10000 tar -cf - <"$d/list"; }
fi
{ pack 2>"$d/err"; echo $? >"$d/tar"; } | { COMPRESS; echo $? >"$d/z"; } | tee "$d/fifo"
wait "$sum"
tail -n 3 "$d/err" >&2
printf 'rentop-sum %s %s %s\n' "$(cut -c1-64 <"$d/sum")" "$(cat "$d/tar")" "$(cat "$d/z")" >&2
`

var archiveSum = regexp.MustCompile(`rentop-sum ([0-9a-f]{64}) (\d+) (\d+)\n?$`)

// portable makes a portable snapshot. Paths may begin with "~/"; none means all
// that is unsaved.
func (m *Machine) portable(ctx context.Context, paths []string) (takenSnapshot, error) {
	if m.runner == nil {
		return takenSnapshot{Kind: PortableSnapshot}, errors.New(m.offline.String())
	}
	list := m.chosen(paths)
	if len(paths) == 0 {
		list = m.unsavedPaths()
	}
	return m.archive(ctx, list, paths)
}

// chosen are paths as the archive names them: from the root, without its slash.
func (m *Machine) chosen(paths []string) []string {
	var list []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~"); ok && (rest == "" || rest[0] == '/') {
			p = m.home + rest
		}
		if !path.IsAbs(p) {
			p = path.Join(m.home, p)
		}
		list = append(list, strings.TrimPrefix(path.Clean(p), "/"))
	}
	return list
}

func (m *Machine) unsavedPaths() []string {
	var list []string
	for _, f := range m.round[CheckUnsaved].files {
		list = append(list, strings.TrimPrefix(f.path, "/"))
	}
	return list
}

// archive brings what is at the paths of list here; asked is what the person named.
func (m *Machine) archive(ctx context.Context, list, asked []string) (takenSnapshot, error) {
	taken := takenSnapshot{Kind: PortableSnapshot}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	if len(list) == 0 {
		return taken, errors.New("there is nothing to keep: nothing is unsaved and no path was named")
	}
	for i, p := range list {
		if p[0] == '-' {
			list[i] = "./" + p
		}
	}
	if err := os.MkdirAll(m.d.SnapshotDir, 0o700); err != nil {
		return taken, err
	}
	got, err := m.files(ctx, list)
	if err != nil {
		return taken, err
	}
	defer os.Remove(got.part.Name()) // gone by its final name where all went well
	if taken, err = m.keep(got, asked); err != nil {
		_ = got.part.Close()
		return taken, err
	}
	if err := commit(got.part, taken.File, nil); err != nil {
		return taken, err
	}
	here, err := localHash(ctx, taken.File)
	if err == nil && here != taken.SHA256 {
		err = errors.New("what was written differs from what was sent")
	}
	if err != nil {
		return taken, fmt.Errorf("read %s back: %w", taken.File, err)
	}
	return taken, os.RemoveAll(m.stagedDir())
}

// arrived is an archive that has no name yet.
type arrived struct {
	contents
	part   *os.File
	suffix string
	sum    string
	size   int64
}

// files brings what is at the paths of list here: one by one where a cut is to be gone
// on from, else, or where this computer has no room or no names for them, as a stream.
func (m *Machine) files(ctx context.Context, list []string) (a arrived, err error) {
	if a.part, err = os.CreateTemp(m.d.SnapshotDir, ".rentop-*.part"); err != nil {
		return a, err
	}
	defer func() {
		if err != nil {
			_ = a.part.Close()
			_ = os.Remove(a.part.Name())
		}
	}()
	m.dropCut()
	if m.stages {
		a.suffix = ".tar.zst"
		a.contents, a.sum, a.size, err = m.packed(ctx, a.part, list)
		if !errors.Is(err, errUnstaged) {
			return a, err
		}
	}
	suffix, compress := ".tar.gz", "gzip -c -1"
	if out, err := remote.Output(ctx, m.runner, "command -v zstd >/dev/null 2>&1 && echo yes; exit 0"); err != nil {
		return a, err
	} else if strings.TrimSpace(string(out)) == "yes" {
		suffix, compress = ".tar.zst", "zstd -q -c -3 -T0"
	}
	a.suffix = suffix
	a.contents, a.sum, a.size, err = m.receive(ctx, a.part, strings.Replace(archiveScript, "COMPRESS", compress, 1), list, suffix)
	return a, err
}

// dropCut removes archives that a rentop which was killed had not finished. One that is
// being written is younger.
func (m *Machine) dropCut() {
	old, _ := filepath.Glob(filepath.Join(m.d.SnapshotDir, ".rentop-*.part"))
	for _, p := range old {
		if st, err := os.Lstat(p); err == nil && m.d.Clock.Now().Sub(st.ModTime()) > time.Hour {
			_ = os.Remove(p)
		}
	}
}

// keep writes what belongs beside an archive, before that has its name.
func (m *Machine) keep(got arrived, asked []string) (takenSnapshot, error) {
	final := filepath.Join(m.d.SnapshotDir, m.snapName()+got.suffix)
	taken := takenSnapshot{Kind: PortableSnapshot, File: final, SHA256: got.sum, Files: len(got.manifest), Size: got.size}
	if _, err := os.Lstat(final); err == nil {
		return taken, fmt.Errorf("%s exists already", final)
	}
	text := manifestText(got.manifest)
	if err := writeBeside(final+".sha256", text); err != nil {
		return taken, err
	}
	ms := sha256.Sum256(text)
	taken.Manifest = hex.EncodeToString(ms[:])
	if err := m.writeAbout(taken, got.bytes, asked); err != nil {
		return taken, err
	}
	return taken, m.copyEnv(strings.TrimSuffix(final, got.suffix) + ".env")
}

// receive streams the archive into f, hashes it and reads it in passing, and
// compares with what the instance says it sent.
func (m *Machine) receive(ctx context.Context, f *os.File, script string, list []string, suffix string) (c contents, sum string, size int64, err error) {
	pr, pw := io.Pipe()
	type unpacked struct {
		contents
		err error
	}
	read := make(chan unpacked, 1)
	run, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		c, err := unpack(run, pr, suffix, askedFor(list))
		if err != nil {
			stop() // an instance may send without an end
		}
		_, _ = io.Copy(io.Discard, pr) // nobody who writes may wait for us
		read <- unpacked{c, err}
	}()
	h := sha256.New()
	var stderr tailWriter
	out := &countWriter{w: io.MultiWriter(f, h, pw), failed: stop}
	next := m.d.Clock.Now()
	out.each = func(n int64) {
		if now := m.d.Clock.Now(); now.Sub(next) > 0 {
			next = now.Add(200 * time.Millisecond)
			m.active(CheckSnapshot, phrase.Say("snapshot.arrived", treesync.Size(n)))
		}
	}
	err = m.runner.Run(run, remote.Cmd{Script: script, Stdin: stdin(list), Stdout: out, Stderr: &stderr})
	pw.CloseWithError(errors.Join(err, out.err)) // nil is io.EOF
	got := <-read
	if out.err != nil {
		return c, "", 0, fmt.Errorf("take a portable snapshot: write it here: %w", out.err)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = got.err // it was stopped because of this
	}
	if err != nil {
		return c, "", 0, fmt.Errorf("take a portable snapshot: %w%s", err, stderr.say())
	}
	said := archiveSum.FindSubmatch(stderr.tail)
	switch {
	case said == nil:
		return c, "", 0, errors.New("take a portable snapshot: the instance did not finish it" + stderr.say())
	case string(said[2]) != "0":
		return c, "", 0, errors.New("take a portable snapshot: files changed or could not be read while they were archived: end the job, or name what to keep with --path" + stderr.say())
	case string(said[3]) != "0":
		return c, "", 0, errors.New("take a portable snapshot: compressing failed on the instance" + stderr.say())
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if sum != string(said[1]) {
		return c, "", 0, errors.New("take a portable snapshot: the archive here differs from the one sent")
	}
	if got.err != nil {
		return c, "", 0, fmt.Errorf("take a portable snapshot: the archive cannot be read: %w", got.err)
	}
	return got.contents, sum, out.n, nil
}

// contents is what an archive holds.
type contents struct {
	manifest map[string]string // SHA-256 by absolute path
	bytes    int64             // of its files
}

// askedFor refuses what lies neither at nor below a path of list: a restore would bring
// it to another instance, where nobody asked for it.
func askedFor(list []string) func(*tar.Header, io.Reader) error {
	asked := make(map[string]bool, len(list))
	for _, p := range list {
		asked[path.Join("/", p)] = true
	}
	return func(h *tar.Header, _ io.Reader) error {
		name := path.Join("/", h.Name)
		for p := name; p != "/"; p = path.Dir(p) {
			if asked[p] {
				return nil
			}
		}
		return fmt.Errorf("the instance sent %s, which was not asked for", remote.Short(name, 120))
	}
}

// maxArchiveNames is how long all names of an archive may be together: they are kept in memory.
const maxArchiveNames = 512 << 20

// unpack reads an archive and hashes each regular file in it. each, where it is not
// nil, is given everything in it, and may read a file's content.
func unpack(ctx context.Context, r io.Reader, suffix string, each func(*tar.Header, io.Reader) error) (contents, error) {
	c := contents{manifest: map[string]string{}}
	var plain io.Reader
	if suffix == ".tar.zst" {
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return c, err
		}
		defer d.Close()
		plain = d
	} else {
		d, err := gzip.NewReader(bufio.NewReader(r))
		if err != nil {
			return c, err
		}
		plain = d
	}
	names := 0
	for tr := tar.NewReader(ctxReader{ctx, plain}); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, plain) // the compressor's own checksum is at the end
			return c, err
		}
		if err != nil {
			return c, err
		}
		if hdr.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if names += len(hdr.Name) + len(hdr.Linkname); names > maxArchiveNames {
			return c, fmt.Errorf("its names are longer than %s together: take several, each with its --path", treesync.Size(maxArchiveNames))
		}
		name := path.Join("/", hdr.Name)
		h := sha256.New()
		body := io.TeeReader(ctxReader{ctx, tr}, h) // a hole is read without reading the archive
		if each != nil {
			if err := each(hdr, body); err != nil {
				return c, err
			}
		}
		switch hdr.Typeflag {
		case tar.TypeReg:
			if _, err := io.Copy(io.Discard, body); err != nil {
				return c, err
			}
			c.manifest[name] = hex.EncodeToString(h.Sum(nil))
			c.bytes += hdr.Size
		case tar.TypeLink:
			if sum, ok := c.manifest[path.Join("/", hdr.Linkname)]; ok {
				c.manifest[name] = sum
			}
		}
	}
}

// manifestText is the manifest as `sha256sum -c` reads it, from the archive's
// root.
func manifestText(manifest map[string]string) []byte {
	var b bytes.Buffer
	var list []treesync.Entry
	for _, p := range sortedKeys(manifest) {
		list = append(list, treesync.Entry{Path: strings.TrimPrefix(p, "/"), SHA256: manifest[p]})
	}
	_ = treesync.WriteManifest(&b, list) // a buffer takes everything
	return b.Bytes()
}

var nameUnescaper = strings.NewReplacer("\\\\", "\\", "\\n", "\n", "\\r", "\r")

func parseManifest(text []byte) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		esc := strings.HasPrefix(line, `\`)
		sum, name, ok := strings.Cut(strings.TrimPrefix(line, `\`), "  ")
		if !ok || len(sum) != 64 || name == "" {
			return nil, fmt.Errorf("a manifest line that is not understood: %s", remote.Short(line, 100))
		}
		if esc {
			name = nameUnescaper.Replace(name)
		}
		out["/"+name] = sum
	}
	return out, nil
}

// provenArchive reads an archive and its manifest from disk now; the manifest
// counts only where both are as they were made.
func provenArchive(ctx context.Context, s takenSnapshot) (map[string]string, error) {
	sum, err := localHash(ctx, s.File)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	if sum != s.SHA256 {
		return nil, fmt.Errorf("%s is not as it was made: its SHA-256 differs", s.File)
	}
	text, err := os.ReadFile(s.File + ".sha256")
	if err != nil {
		return nil, fmt.Errorf("read the snapshot's manifest: %w", err)
	}
	if ms := sha256.Sum256(text); hex.EncodeToString(ms[:]) != s.Manifest {
		return nil, fmt.Errorf("%s is not as it was made: its SHA-256 differs", s.File+".sha256")
	}
	return parseManifest(text)
}

type countWriter struct {
	w      io.Writer
	n      int64
	each   func(int64)
	failed func() // at the first error
	err    error
}

// Write takes everything, also after an error: the instance must not block.
func (c *countWriter) Write(p []byte) (int, error) {
	if c.err == nil {
		if _, c.err = c.w.Write(p); c.err != nil {
			c.failed()
		}
	}
	c.n += int64(len(p))
	c.each(c.n)
	return len(p), nil
}

// tailWriter keeps the last 4 KiB.
type tailWriter struct{ tail []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	t.tail = append(t.tail, p...)
	if n := len(t.tail) - 4096; n > 0 {
		t.tail = append(t.tail[:0], t.tail[n:]...)
	}
	return len(p), nil
}

func (t *tailWriter) say() string {
	if s := strings.TrimSpace(archiveSum.ReplaceAllString(string(t.tail), "")); s != "" {
		return ": " + remote.Short(s, 200)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
