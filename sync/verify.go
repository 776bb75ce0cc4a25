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
	"slices"
	"strings"
)

// This file proves: it reads every file of a plan again on both sides.

func (x *execution) verify(ctx context.Context) error {
	x.tr.stage("verify")
	files := slices.Concat(x.p.same, x.res.Sent)
	slices.SortFunc(files, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	var all int64
	for _, e := range files {
		all += e.Size
	}
	x.tr.reset()
	x.tr.total(int64(len(files)), all)
	far := make([]string, len(files))
	for i, e := range files {
		if far[i] = e.Path; x.p.spec.Direction == Pull {
			far[i] = e.Source()
		}
	}
	farSums, farErrs := make([]string, len(files)), make([]error, len(files))
	n := 0
	remoteDone := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		remoteDone <- x.t.Hash(ctx, x.p.remote, far, func(_, sum string, err error) {
			farSums[n], farErrs[n] = sum, err
			n++
		})
	}()
	nearSums, nearErrs := make([]string, len(files)), make([]error, len(files))
	for i, e := range files {
		near := e.Path
		if x.p.spec.Direction == Push {
			near = e.Source()
		}
		x.tr.Current(e.Path)
		nearSums[i], nearErrs[i] = hashFile(ctx, filepath.Join(x.p.local, filepath.FromSlash(near)), x.tr)
		x.tr.files.Add(1)
	}
	if err := <-remoteDone; err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	ok := len(x.res.Failed) == 0
	var manifest []Entry
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
			ok = false
			continue
		}
		e.SHA256 = nearSums[i]
		manifest = append(manifest, e)
	}
	x.res.Verified = ok
	if x.p.spec.Manifest != nil {
		return WriteManifest(x.p.spec.Manifest, manifest)
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
		name := escapeSumName(e.Path)
		if name != e.Path {
			b.WriteByte('\\')
		}
		fmt.Fprintf(b, "%s  %s\n", e.SHA256, name)
	}
	return b.Flush()
}

// hashFile is the SHA-256 of a local file; m may be nil.
func hashFile(ctx context.Context, name string, m Meter) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", plainError(err)
	}
	defer f.Close()
	h := sha256.New()
	if err := copyMetered(ctx, h, f, m); err != nil {
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
