package sync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/sftp"

	"rentop/remote"
)

// This file asks how much room a file system has.

var _ = []Spacer{Local{}, &shell{}, &sftpTransport{}, &autoTransport{}}

// Space is the room of the file system that holds root.
func (Local) Space(_ context.Context, root string) (free, total int64, err error) {
	dir := filepath.Clean(filepath.FromSlash(root))
	free, total, err = diskSpace(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		free, total, err = diskSpace(dir)
	}
	return free, total, err
}

// Space asks df, whose format POSIX fixes.
func (s *shell) Space(ctx context.Context, root string) (free, total int64, err error) {
	out, err := remote.Output(ctx, s.r, "p="+remote.Quote(root)+`
while [ ! -e "$p" ] && [ "$p" != / ]; do p=${p%/*}; p=${p:-/}; done
LC_ALL=C df -Pk -- "$p" 2>/dev/null || LC_ALL=C df -Pk "$p"`)
	if err != nil {
		return 0, 0, fmt.Errorf("asking for the room of %s on the instance: %w", remote.Clean(root), err)
	}
	return parseDF(out)
}

// parseDF reads "Filesystem 1024-blocks Used Available Capacity Mounted on". The
// first and the last may hold spaces; the capacity ends in a per cent sign.
func parseDF(out []byte) (free, total int64, err error) {
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	f := strings.Fields(lines[len(lines)-1])
	for i := 4; i < len(f); i++ {
		if !strings.HasSuffix(f[i], "%") {
			continue
		}
		total, err1 := strconv.ParseInt(f[i-3], 10, 53)
		free, err2 := strconv.ParseInt(f[i-1], 10, 53)
		if err1 == nil && err2 == nil && total >= 0 {
			return max(free, 0) << 10, total << 10, nil
		}
	}
	return 0, 0, errors.New("df says nothing that can be read")
}

// Space asks the server, where it has OpenSSH's extension.
func (t *sftpTransport) Space(ctx context.Context, root string) (free, total int64, err error) {
	if t.sh != nil {
		return t.sh.Space(ctx, root)
	}
	err = t.with(ctx, func(c *sftp.Client) error {
		st, err := c.StatVFS(root)
		if err != nil {
			return err
		}
		free, total = int64(st.Bavail*st.Frsize), int64(st.Blocks*st.Frsize)
		return nil
	})
	return free, total, err
}

// Space asks where commands run.
func (a *autoTransport) Space(ctx context.Context, root string) (free, total int64, err error) {
	return a.tar.Space(ctx, root)
}

// spaceHere is the room of a local folder's file system, 0 where nobody knows.
func spaceHere(dir string) (free, total int64) {
	f, t, err := Local{}.Space(context.Background(), filepath.ToSlash(dir))
	if err != nil {
		return 0, 0
	}
	return f, t
}
