package sync

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rentop/sync/tree"
)

// This file reads local files that are sent, and notices when they change.

// openSource opens a local file to send; it must still be a regular one.
func openSource(src string, e Entry) (*os.File, fs.FileInfo, error) {
	name := filepath.Join(src, filepath.FromSlash(e.Source()))
	if fi, err := os.Lstat(name); err != nil {
		return nil, nil, errors.New(reason(err))
	} else if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("is a %s by now: %w", tree.TypeName(fi.Mode()), ErrChanged)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, errors.New(reason(err))
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = ErrChanged
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// unchanged looks again at a file that was read as e.
func unchanged(f *os.File, e Entry) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.Size() != e.Size || !fi.ModTime().Equal(e.ModTime) {
		return ErrChanged
	}
	return nil
}

type contentWriter struct{ m Meter }

func (c contentWriter) Write(p []byte) (int, error) {
	c.m.Content(int64(len(p)))
	return len(p), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
