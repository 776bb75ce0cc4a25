// Package needtest says what a test needs of its machine. It is the one place that
// skips a test, and the reason always names what is missing. Where RENTOP_NO_SKIPS
// is set, as .ci/run does, what is missing is a failure.
package needtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program is the path of a program that the test starts.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	That(t, err == nil, "the program "+name)
	return path
}

// File makes sure of a file of this machine.
func File(t testing.TB, path string) {
	t.Helper()
	_, err := os.Stat(path)
	That(t, err == nil, path)
}

// That skips the test unless ok; what names what is missing otherwise.
func That(t testing.TB, ok bool, what string) {
	t.Helper()
	if !ok {
		skip(t, "missing: "+what)
	}
}

// Done skips the test where an attempt to get what it needs failed.
func Done(t testing.TB, err error, what string) {
	t.Helper()
	if err != nil {
		skip(t, "missing: "+what+": "+err.Error())
	}
}

// Time leaves the test out of a -short run; what says what it does with the time.
func Time(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		skip(t, "missing: the time, in a -short run: "+what)
	}
}

// Shared is the path of recorded material: in the folder that RENTOP_SHARED names,
// or the one named shared beside the module.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir := os.Getenv("RENTOP_SHARED")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared")
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	_, err := os.Stat(path)
	That(t, err == nil, "the recorded material "+path+" (set RENTOP_SHARED)")
	return path
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("RENTOP_NO_SKIPS") != "" {
		t.Fatal(why + "; RENTOP_NO_SKIPS is set, so this is a failure")
	}
	t.Skip(why)
}
