package tui

import "testing"

// What is on an instance is kept by a key, and where it is is said.
func TestSnapshotKey(t *testing.T) {
	d := drive(t, sample(), "en", 120, 30)
	d.press("enter")
	d.press("P").heard("snapshot a100-tune").see("a100-tune: 3 files are kept here, 2.0 KiB, read back: a100-tune-1")
}
