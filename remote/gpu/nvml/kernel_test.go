//go:build linux

package nvml

import (
	"os"
	"path/filepath"
	"testing"
)

// A file stays open and is read anew each time; one that is not there is "".
func TestKernelFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	var k kernelFiles
	defer k.close()
	for _, want := range []string{"a 1\nb 2\n", "a 3\nb 40\n"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := k.head(path); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	if k.one(path) != "a 3" || k.keyed(path, "b") != "40" || k.keyed(path, "c") != "" || k.one(path+".none") != "" {
		t.Errorf("one %q, keyed %q", k.one(path), k.keyed(path, "b"))
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if k.has(path) { // it was closed: the next reading opens it again
		t.Error("an empty file has something")
	}
	if len(k.fds) != 1 {
		t.Errorf("%d files are kept, want the absent one alone", len(k.fds))
	}
	before := openFiles(t)
	var h hostReader
	for range 30 {
		h.read()
	}
	if h.files.close(); openFiles(t) != before {
		t.Errorf("%d files are open after, %d before", openFiles(t), before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
