package sync

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rentop/sync/tree"
)

// This file proves: it reads every file of a transfer again on both sides.

// Files are read in batches of at most so many, one side beside the other.
const (
	verifyFiles = 4096
	verifyBytes = 1 << 30
)

func (x *execution) verify(ctx context.Context, files *pathList) error {
	x.tr.stage("verify")
	x.tr.reset()
	x.tr.total(int64(files.n), files.size)
	x.res.Verified = x.res.FailedAll == 0
	var manifest *bufio.Writer
	if x.s.Manifest != nil {
		manifest = bufio.NewWriter(x.s.Manifest)
	}
	var batch []Entry
	size := int64(0)
	flush := func() error {
		err := x.verifyBatch(ctx, batch, manifest)
		batch, size = batch[:0], 0
		return err
	}
	for e := range files.all {
		if x.failed[e.Path] {
			continue // named already
		}
		batch = append(batch, e)
		if size += e.Size; len(batch) == verifyFiles || size >= verifyBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil || manifest == nil {
		return err
	}
	return manifest.Flush()
}

func (x *execution) verifyBatch(ctx context.Context, files []Entry, manifest *bufio.Writer) error {
	if len(files) == 0 {
		return nil
	}
	far := make([]string, len(files))
	for i, e := range files {
		if far[i] = e.Path; x.s.Direction == Pull {
			far[i] = e.Source()
		}
	}
	farSums, farErrs := make([]string, len(files)), make([]error, len(files))
	n := 0
	remoteDone := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		remoteDone <- x.t.Hash(ctx, x.at.remote, far, func(_, sum string, err error) {
			farSums[n], farErrs[n] = sum, err
			n++
		})
	}()
	nearSums, nearErrs := make([]string, len(files)), make([]error, len(files))
	for i, e := range files {
		near := e.Path
		if x.s.Direction == Push {
			near = e.Source()
		}
		x.tr.Current(e.Path)
		nearSums[i], nearErrs[i] = x.s.sumHere(ctx, filepath.Join(x.at.local, filepath.FromSlash(near)), false, x.tr)
		x.tr.files.Add(1)
	}
	if err := <-remoteDone; err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	for i, e := range files {
		var err error
		switch {
		case nearErrs[i] != nil:
			err = nearErrs[i]
		case farErrs[i] != nil:
			err = farErrs[i]
		case nearSums[i] != farSums[i]:
			err = fmt.Errorf("the two sides differ: SHA-256 is %s here and %s on the instance", nearSums[i], farSums[i])
		}
		if err != nil {
			x.fail(e.Path, fmt.Errorf("verify: %w", err))
			x.res.Verified = false
			continue
		}
		if e.SHA256 = nearSums[i]; manifest != nil {
			writeSum(manifest, e)
		}
	}
	return nil
}

// WriteManifest writes entries that have a SHA256 as `sha256sum -c` reads them.
func WriteManifest(w io.Writer, entries []Entry) error {
	b := bufio.NewWriter(w)
	for _, e := range entries {
		if e.SHA256 == "" || !e.Mode.IsRegular() {
			continue
		}
		writeSum(b, e)
	}
	return b.Flush()
}

// writeSum writes one line; the writer remembers its error.
func writeSum(b *bufio.Writer, e Entry) {
	name := escapeSumName(e.Path)
	if name != e.Path {
		b.WriteByte('\\')
	}
	fmt.Fprintf(b, "%s  %s\n", e.SHA256, name)
}

// sumHere is hashFile, but for what Hashes knows where that is trusted; it learns.
func (s *Spec) sumHere(ctx context.Context, name string, trust bool, m Meter) (string, error) {
	before, err := os.Lstat(name)
	if err != nil || s.Hashes == nil {
		return hashFile(ctx, name, m)
	}
	if trust {
		if sum, known := s.Hashes.Lookup(name, before); known {
			return sum, nil
		}
	}
	sum, err := hashFile(ctx, name, m)
	if after, serr := os.Lstat(name); err == nil && serr == nil && os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) {
		s.Hashes.Put(name, after, sum)
	}
	return sum, err
}

// hashFile is the SHA-256 of a local file; m may be nil.
func hashFile(ctx context.Context, name string, m Meter) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", plainError(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", plainError(err)
	}
	h := sha256.New()
	if err := copyMetered(ctx, h, tree.Contents(f, fi), m); err != nil {
		return "", plainError(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyMetered copies until the end, in pieces between which ctx may end it.
func copyMetered(ctx context.Context, w io.Writer, r io.Reader, m Meter) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(w, r, 1<<20)
		if m != nil {
			m.Content(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
