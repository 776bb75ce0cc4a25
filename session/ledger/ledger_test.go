package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var t0 = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// open opens a ledger in a folder of the test's own.
func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(path, func() time.Time { return t0 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestAppendAndRead(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a folder, 100%?#", "ledger.db")
	if runtime.GOOS == "windows" {
		path = filepath.Join(t.TempDir(), "a folder, 100%#", "ledger.db")
	}
	l := open(t, path)
	at := t0.Add(-time.Hour + 123*time.Nanosecond)
	last, err := l.Append(ctx,
		Event{At: at, Instance: "a", Kind: Observed, Source: "ssh", Data: json.RawMessage(`{"state":"running"}`)},
		Event{Instance: "b", Kind: NoteRecorded})
	if err != nil || last != 2 {
		t.Fatalf("Append = %d, %v", last, err)
	}
	other := open(t, path)
	all, err := other.Events(ctx, Filter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("Events = %v, %v", all, err)
	}
	if e := all[0]; e.Seq != 1 || !e.At.Equal(at) || !e.Recorded.Equal(t0) || e.Instance != "a" || e.Kind != Observed || e.Source != "ssh" || string(e.Data) != `{"state":"running"}` {
		t.Errorf("read back %+v", e)
	}
	if e := all[1]; !e.At.Equal(t0) || e.Data != nil {
		t.Errorf("read back %+v", e)
	}
	for _, tt := range []struct {
		f    Filter
		want string
	}{
		{Filter{Instance: "a"}, "1"}, {Filter{AfterSeq: 1}, "2"}, {Filter{Since: t0}, "2"},
		{Filter{Kinds: []Kind{NoteRecorded, Observed}}, "1 2"}, {Filter{Kinds: []Kind{Added}}, ""},
	} {
		list, err := l.Events(ctx, tt.f)
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprint(e.Seq))
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%+v gives %v, %v; want %s", tt.f, got, err, tt.want)
		}
	}
	if _, err := other.Append(ctx, Event{Kind: "of-a-newer-rentop"}); err != nil {
		t.Fatal(err)
	}
	if seq, err := l.Seq(ctx); err != nil || seq != 3 {
		t.Errorf("Seq = %d, %v: what another wrote is not seen", seq, err)
	}
	if err := l.Check(ctx); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(path + suffix); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v", suffix, info.Mode(), err)
			}
		}
	}
}

func TestAppendIsAllOrNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	good := Event{Kind: NoteRecorded}
	for name, bad := range map[string]Event{
		"no kind":     {},
		"bad JSON":    {Kind: NoteRecorded, Data: json.RawMessage(`{`)},
		"too long":    {Kind: NoteRecorded, Data: json.RawMessage(`"` + strings.Repeat("x", maxData) + `"`)},
		"far future":  {Kind: NoteRecorded, At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
		"unwritable":  NewEvent(NoteRecorded, "", "", func() {}),
		"before 1970": {Kind: NoteRecorded, At: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if _, err := l.Append(t.Context(), good, bad, good); err == nil || !strings.Contains(err.Error(), "ledger.db") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seq, err := l.Seq(t.Context()); err != nil || seq != 0 {
		t.Errorf("%d events were written, %v", seq, err)
	}
}

func TestAppendOnly(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	if _, err := l.Append(t.Context(), Event{Kind: NoteRecorded}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{`UPDATE events SET at = 0`, `DELETE FROM events`, `INSERT OR REPLACE INTO events (seq, at, recorded, instance, kind, source) VALUES (1, 0, 0, '', 'x', '')`} {
		if _, err := l.db.Exec(q); err == nil {
			t.Errorf("%s was not refused", q)
		}
	}
}

func TestIdentity(t *testing.T) {
	ctx := t.Context()
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	ensure := func(name string) string {
		t.Helper()
		uids, err := l.Ensure(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return uids[name]
	}
	a := ensure("a")
	if again := ensure("a"); again != a || a == "" {
		t.Fatalf("Ensure gave %q, then %q", a, again)
	}
	if b := ensure("b"); b == a {
		t.Fatal("two names share a uid")
	}
	if err := l.Rename(ctx, "a", "b"); err == nil {
		t.Error("a name that is taken was given away")
	}
	if err := l.Rename(ctx, "a", "c"); err != nil {
		t.Fatal(err)
	}
	if c := ensure("c"); c != a {
		t.Error("a renamed instance lost its record")
	}
	if err := l.Remove(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(ctx, "c"); err == nil {
		t.Error("an instance was removed twice")
	}
	if c := ensure("c"); c == a {
		t.Error("a new instance took over the record of a removed one")
	}
	list, err := l.Instances(ctx)
	if err != nil || len(list) != 3 || list[0].UID != a || list[0].Name != "c" || list[0].Removed.IsZero() || !list[2].Removed.IsZero() {
		t.Errorf("Instances = %+v, %v", list, err)
	}
}

func TestEnsureAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	const n = 8
	uids := make([]string, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { // each opens the file itself, as another rentop would
			l, err := Open(path, nil)
			if err != nil {
				errs[i] = err
				return
			}
			defer l.Close()
			got, err := l.Ensure(context.Background(), "b", "a")
			uids[i], errs[i] = got["a"]+got["b"], err
		})
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil || uids[i] != uids[0] {
			t.Errorf("%d: uid %q (the first got %q), %v", i, uids[i], uids[0], errs[i])
		}
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	if _, err := l.db.Exec(`INSERT INTO schema_version VALUES (99)`); err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err := Open(path, nil)
	if err == nil || !strings.Contains(err.Error(), "newer rentop (schema 99") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}
