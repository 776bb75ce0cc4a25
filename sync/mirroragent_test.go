//go:build unix

package sync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
)

// TestSaveTakesOneRoundTrip: a change of a small file is there after one round trip,
// and what was changed there meanwhile is treated as any push does.
func TestSaveTakesOneRoundTrip(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, s.Addr)
	src := t.TempDir()
	dst, err := os.MkdirTemp(s.Home, "watched-")
	if err != nil {
		t.Fatal(err)
	}
	own(t, s.Home)(dst)
	save := func(name, text string) sync.Changes {
		t.Helper()
		os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o755)
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return sync.Changes{Paths: []string{name}}
	}
	for i := range 5 {
		save(fmt.Sprint("f", i), "first")
	}
	m, err := sync.NewMirror(sync.Spec{Local: src, Remote: dst, Direction: sync.Push, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	tr := openHelper(t, dialtest.Conn(t, s, proxy.Addr))
	if _, err := m.All(t.Context(), tr, nil, nil); err != nil {
		t.Fatal(err)
	}
	const way = 100 * time.Millisecond
	proxy.Delay(way)
	some := func(c sync.Changes) (sync.Change, time.Duration) {
		t.Helper()
		began := time.Now()
		ch, err := m.Some(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ch, time.Since(began)
	}
	some(save("f0", "to open the link"))
	for i := range 3 {
		text := fmt.Sprint("second", i)
		ch, took := some(save("f1", text))
		t.Logf("%v, that is %.2f round trips", took, took.Seconds()/(2*way).Seconds())
		if took > 3*way {
			t.Errorf("a save took %.2f round trips", took.Seconds()/(2*way).Seconds())
		}
		if got, err := os.ReadFile(filepath.Join(dst, "f1")); err != nil || string(got) != text || len(ch.Failed) > 0 {
			t.Errorf("it is %q there: %v %+v", got, err, ch.Failed)
		}
	}
	if _, took := some(save("new/folder/f", "third")); took > 3*way {
		t.Errorf("a file in a new folder took %.2f round trips", took.Seconds()/(2*way).Seconds())
	}
	// A folder with something in it in the file's place is nobody's to remove.
	os.Remove(filepath.Join(dst, "f2"))
	if err := os.MkdirAll(filepath.Join(dst, "f2", "theirs"), 0o777); err != nil {
		t.Fatal(err)
	}
	if ch, _ := some(save("f2", "fourth")); len(ch.Failed) != 1 {
		t.Errorf("over a folder: %+v", ch.Failed)
	}
	if _, err := os.Stat(filepath.Join(dst, "f2", "theirs")); err != nil {
		t.Error(err)
	}
}
