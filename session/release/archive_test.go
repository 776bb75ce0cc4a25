package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rentop/remote"
)

// hostile answers a request for an archive with what write makes, and all else as the
// instance that it wraps.
type hostile struct {
	remote.Runner
	write func(io.Writer) error
}

func (h hostile) Run(ctx context.Context, c remote.Cmd) error {
	if !strings.Contains(c.Script, "rentop-snap") {
		return h.Runner.Run(ctx, c)
	}
	for ctx.Err() == nil {
		if err := h.write(c.Stdout); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tarOf is a compressed archive of the entries; each file's content is its size in zeros.
func tarOf(t *testing.T, zip bool, list ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.Writer = &b
	z := gzip.NewWriter(&b)
	if zip {
		w = z
	}
	tw := tar.NewWriter(w)
	for _, h := range list {
		h.Mode = 0o600
		must(t, tw.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := tw.Write(make([]byte, h.Size))
			must(t, err)
		}
	}
	must(t, tw.Close())
	must(t, z.Close())
	return b.Bytes()
}

// TestArchiveWithoutEnd: an instance that sends without an end what is no archive, or
// what was not asked for, is stopped, and nothing is kept of it.
func TestArchiveWithoutEnd(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3} }
	for name, c := range map[string]struct {
		sends []byte
		says  string
	}{
		"what is no archive": {bytes.Repeat([]byte("no"), 1<<15), "cannot be read|invalid|magic"},
		"another path":       {tarOf(t, true, file("home/p/x"), file("home/.ssh/authorized_keys")), "/home/.ssh/authorized_keys, which was not asked for"},
		"a neighbour's name": {tarOf(t, true, file("home/pp")), "/home/pp, which was not asked for"},
		"a way out":          {tarOf(t, true, file("home/p/../../etc/cron.d/x")), "/etc/cron.d/x, which was not asked for"},
		"a rooted name":      {tarOf(t, true, file("//etc/passwd")), "/etc/passwd, which was not asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(Deps{Instance: "a"}.filled(), CheckOnly, newRunID())
			m.runner = hostile{nil, func(w io.Writer) error { _, err := w.Write(c.sends); return err }}
			f, err := os.Create(filepath.Join(t.TempDir(), "x"))
			must(t, err)
			defer f.Close()
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			_, _, _, err = m.receive(ctx, f, "rentop-snap", []string{"home/p"}, ".tar.gz")
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("it was not stopped: %v", err)
			}
			for _, says := range strings.Split(c.says, "|") {
				if strings.Contains(err.Error(), says) {
					return
				}
			}
			t.Error(err)
		})
	}
}

// TestArchiveDiskFull: where nothing can be written any more, no more is asked for.
func TestArchiveDiskFull(t *testing.T) {
	t.Parallel()
	m := newMachine(Deps{Instance: "a"}.filled(), CheckOnly, newRunID())
	m.runner = hostile{nil, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<16))
		return err
	}}
	f, err := os.Open(os.DevNull) // not for writing
	must(t, err)
	defer f.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, _, _, err = m.receive(ctx, f, "rentop-snap", []string{"p"}, ".tar.gz"); err == nil || !strings.Contains(err.Error(), "write it here") {
		t.Fatal(err)
	}
}

// TestUnpackEnds: a hole of many exabytes, which no byte of the archive backs, does not
// keep a person who leaves.
func TestUnpackEnds(t *testing.T) {
	t.Parallel()
	var hole bytes.Buffer
	z := gzip.NewWriter(&hole)
	_, err := z.Write(sparse("home/p/hole", 1<<60))
	must(t, err)
	must(t, z.Close())
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := unpack(ctx, &hole, ".tar.gz", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// sparse is an archive of one file that is a hole of so many bytes, as GNU tar writes it
// in the pax format, version 0.1. The writer of the library makes none.
func sparse(name string, size int64) []byte {
	block := func(name string, kind byte, size int) []byte {
		b := make([]byte, 512)
		copy(b, name)
		copy(b[100:], "0000600\x00")
		copy(b[124:], fmt.Sprintf("%011o\x00", size))
		copy(b[148:], "        ") // the sum counts itself as spaces
		b[156] = kind
		copy(b[257:], "ustar\x0000")
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
		return b
	}
	var records string
	for _, r := range []string{"GNU.sparse.size=" + strconv.FormatInt(size, 10), "GNU.sparse.numblocks=1", fmt.Sprintf("GNU.sparse.map=%d,0", size)} {
		n := len(r) + 4
		records += fmt.Sprintf("%d %s\n", n, r)
	}
	out := append(block("pax", tar.TypeXHeader, len(records)), make([]byte, 512)...)
	copy(out[512:], records)
	return append(append(out, block(name, tar.TypeReg, 0)...), make([]byte, 1024)...)
}

// TestReadPortable: an archive and its manifest name the same files.
func TestReadPortable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	must(t, os.WriteFile(file, tarOf(t, true, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1}, tar.Header{Name: "b", Typeflag: tar.TypeReg, Size: 1}), 0o600))
	p := Portable{File: file}
	zero := sum("\x00")
	for name, c := range map[string]struct {
		manifest map[string]string
		says     string
	}{
		"both":            {map[string]string{"/a": zero, "/b": zero}, ""},
		"nothing known":   {nil, ""},
		"one more there":  {map[string]string{"/a": zero}, "does not name /b"},
		"one more here":   {map[string]string{"/a": zero, "/b": zero, "/c": zero}, "/c in it is not"},
		"another content": {map[string]string{"/a": zero, "/b": sum("")}, "/b in it is not"},
	} {
		err := p.Read(t.Context(), c.manifest, nil)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
