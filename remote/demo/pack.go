//go:build unix

package demo

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// pack writes dir as a tar.gz beside its final name, then renames it: a snapshot is
// whole or not there. Sockets and pipes have no content to keep.
func pack(ctx context.Context, dir, to string) (size int64, err error) {
	file, err := os.OpenFile(to+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			os.Remove(to + ".part")
			return
		}
		err = os.Rename(to+".part", to)
	}()
	zip := gzip.NewWriter(file)
	w := tar.NewWriter(zip)
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a job removed it meanwhile
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return add(w, dir, path)
	})
	if err = errors.Join(err, w.Close(), zip.Close()); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func add(w *tar.Writer, dir, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() && info.Mode()&os.ModeSymlink == 0 {
		return err
	}
	link := ""
	if info.Mode()&os.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = filepath.ToSlash(name)
	if !info.Mode().IsRegular() {
		return w.WriteHeader(h)
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	// A file may change while it is read: exactly the announced size goes in.
	n, err := io.Copy(w, io.LimitReader(f, h.Size))
	if err == nil && n < h.Size {
		_, err = io.CopyN(w, zeros{}, h.Size-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
