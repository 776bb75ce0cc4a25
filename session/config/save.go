package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rentop/session/lock"
)

// patience is how long one rentop waits for another that is writing.
const patience = 10 * time.Second

// Update reads path, lets change make the new text, and replaces the file
// atomically. Other rentops wait meanwhile; where another program, such as an
// editor, wrote the file, Update starts again.
func Update(path string, change func(text []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := lock.Wait(ctx, filepath.Join(filepath.Dir(path), ".config.lock"))
	if err != nil {
		return fmt.Errorf("write the config %s: %w (the old one is untouched)%s", path, err, cure(err))
	}
	defer held.Unlock()
	for range 5 {
		before, err := readFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		now, err := readFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !bytes.Equal(now, before) {
			continue
		}
		if err := replace(path, after); err != nil {
			return fmt.Errorf("write the config %s: %w (the old one is untouched)%s", path, err, cure(err))
		}
		return nil
	}
	return fmt.Errorf("the config %s keeps changing while it is edited; try again", path)
}

// replace writes beside path, syncs, and renames: a full disk or a crash leaves
// the old file. A config that is a link (dotfiles) stays one.
func replace(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".config-*.toml")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
