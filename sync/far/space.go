package far

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
)

// space answers how much room there is for root.
func (s *server) space(k *call, root string) error {
	dir := filepath.Clean(root)
	free, total, err := diskSpace(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		free, total, err = diskSpace(dir)
	}
	if err != nil {
		return err
	}
	return k.send(whatFound, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(max(0, free))), uint64(max(0, total))))
}
