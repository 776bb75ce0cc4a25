package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/session/phrase"
	"rentop/session/release"
)

// TestSnapshotGoesOn: what came before a snapshot failed is not brought again, unless it
// is not what is there; nothing of it is left behind in the end.
func TestSnapshotGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, a, b := two(t, dir)
	s := session(t, f, "a")
	big := strings.Repeat("a large file ", 100_000)
	put(t, a.Home, "d/big", big)
	put(t, a.Home, "d/odd \n'name", "odd")
	put(t, a.Home, "d/sub/empty", "")
	if err := os.Symlink("big", filepath.Join(a.Home, "d/link")); err != nil {
		t.Fatal(err)
	}
	shut := put(t, a.Home, "d/shut", "cannot be read")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	spec := SnapshotSpec{Kind: release.PortableSnapshot, Paths: []string{"d"}}
	if _, err := s.TakeSnapshot(t.Context(), spec, func(phrase.Text) {}); err == nil || !strings.Contains(err.Error(), "d/shut") {
		t.Fatalf("a file that cannot be read: %v", err)
	}
	staged := func(rel string) string {
		return filepath.Join(dir, "state/snapshots/a/.staged-"+s.uid, a.Home, "d", rel)
	}
	came, err := os.Stat(staged("big"))
	if err != nil {
		t.Fatal(err)
	}
	odd, err := os.Stat(staged("odd \n'name"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(staged("odd \n'name"), []byte("ODD"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(staged("odd \n'name"), odd.ModTime(), odd.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shut, 0o644); err != nil {
		t.Fatal(err)
	}
	stayed := false
	snap, err := s.TakeSnapshot(t.Context(), spec, func(p phrase.Text) {
		now, err := os.Stat(staged("big"))
		stayed = stayed || strings.HasPrefix(p.String(), "packing") && err == nil && os.SameFile(came, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !stayed {
		t.Error("what came was brought again")
	}
	p, manifest, err := release.OpenPortable(t.Context(), snap.Portable.File)
	if err != nil || len(manifest) != 4 || p.Files != 4 || p.Bytes != int64(len(big)+len("odd")+len("cannot be read")) {
		t.Fatalf("%v %+v %d", err, p, len(manifest))
	}
	left, err := filepath.Glob(filepath.Join(dir, "state/snapshots/a/.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
	got, err := session(t, f, "b").Restore(t.Context(), RestoreSpec{Snapshot: snap.ID}, nil, nil)
	if err != nil || got.Proven != 4 {
		t.Fatalf("%v %+v", err, got)
	}
	for rel, want := range map[string]string{"d/big": big, "d/odd \n'name": "odd", "d/link": big, "d/sub/empty": ""} {
		if is := reads(t, b.Home, rel); is != want {
			t.Errorf("%s: %.40q", rel, is)
		}
	}
}
