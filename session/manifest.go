package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rentop/sync"
)

// manifestFile is the proof of a verified transfer on its way to its name: each try
// begins it anew, and it is there only once all was read again and equal.
type manifestFile struct {
	path string // "" for none
	f    *os.File
}

// begin gives spec something to write to.
func (m *manifestFile) begin(spec *sync.Spec) error {
	if m.path == "" {
		return nil
	}
	m.drop()
	f, err := os.CreateTemp(filepath.Dir(m.path), "."+filepath.Base(m.path)+".*")
	if err != nil {
		return fmt.Errorf("the manifest: %w", err)
	}
	m.f, spec.Manifest = f, f
	return nil
}

// keep gives the manifest its name.
func (m *manifestFile) keep() error {
	if m.f == nil {
		return nil
	}
	err := errors.Join(m.f.Chmod(0o644), m.f.Sync(), m.f.Close())
	if err == nil {
		err = os.Rename(m.f.Name(), m.path)
	}
	if err != nil {
		os.Remove(m.f.Name())
		err = fmt.Errorf("the manifest: %w", err)
	}
	m.f = nil
	return err
}

// drop removes what has not been kept.
func (m *manifestFile) drop() {
	if m.f != nil {
		m.f.Close()
		os.Remove(m.f.Name())
		m.f = nil
	}
}
