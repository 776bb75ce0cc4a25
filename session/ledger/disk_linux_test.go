package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rentop/remote/needtest"
)

// smallDisk mounts a file system of a megabyte, which takes root.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	needtest.Done(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"), "a small file system (root may mount one)")
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	path := filepath.Join(dir, "ledger.db")
	l := open(t, path)
	acknowledged := int64(0)
	for {
		seq, err := l.Append(t.Context(), NewEvent(NoteRecorded, "", "", strings.Repeat("x", 20_000)), NewEvent(NoteRecorded, "", "", "pair"))
		if err == nil {
			acknowledged = seq
			continue
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nothing was recorded") {
			t.Errorf("the error is no help: %v", err)
		}
		break
	}
	if acknowledged == 0 {
		t.Fatal("the disk was full at once")
	}
	l.Close()
	if _, err := os.Create(filepath.Join(dir, "filler")); err != nil {
		t.Log(err) // full to the last inode or byte: all the better
	}
	l = open(t, path)
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if events, err := l.Events(t.Context(), Filter{}); err != nil || int64(len(events)) != acknowledged {
		t.Errorf("%d events, %v; %d were acknowledged", len(events), err, acknowledged)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := smallDisk(t)
	path := filepath.Join(dir, "ledger.db")
	open(t, path).Close()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, filepath.Join(dir, "new.db"), filepath.Join(dir, "sub", "new.db")} {
		if _, err := Open(p, nil); err == nil || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), "RENTOP_STATE_DIR") {
			t.Errorf("%s: %v", p, err)
		}
	}
}
