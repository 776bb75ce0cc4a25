package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Update reads path, lets change make the new text, and replaces the file
// atomically. Where another program wrote it meanwhile, it starts again.
func Update(path string, change func(text []byte) ([]byte, error)) error {
	for range 5 {
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read the config: %w", err)
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		now, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read the config: %w", err)
		}
		if !bytes.Equal(now, before) {
			continue
		}
		if err := replace(path, after); err != nil {
			return fmt.Errorf("write the config %s: %w (the old one is untouched)", path, err)
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
