package sync

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/remote"
	"rentop/sync/tree"
)

// A listing from a hostile instance: what is honest passes, the rest is named.
func TestHostileListing(t *testing.T) {
	recs := []string{"f 5 644 1700000000.5 ./ok", "", "f 5 644 1 ./../up", "", "f 5 644 1 /etc/passwd", "", "f 5 644 1 ./a/../../b", "", "f -5 644 1 ./neg", "",
		"f 99999999999999999999 644 1 ./huge", "", "l 0 777 1 ./link", "target", "x", "", "f 1 644 1e99 ./t", "", "E 0", ""}
	var got []string
	l := lister{emit: func(e Entry) error { got = append(got, e.Path+e.Target); return nil }}
	if err := l.gnu(bufio.NewReader(strings.NewReader(strings.Join(recs, "\x00") + "\x00"))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"ok", "linktarget"}) || len(l.problems) != 7 {
		t.Errorf("%q, problems %v", got, l.problems)
	}
	endless := bufio.NewReader(strings.NewReader(strings.Repeat("x", 1<<20)))
	if err := (&lister{}).gnu(endless); err == nil || !strings.Contains(err.Error(), "without end") {
		t.Errorf("an endless name: %v", err)
	}
	if err := (&lister{emit: l.emit}).gnu(bufio.NewReader(strings.NewReader("f 1 644 1 ./cut"))); err == nil {
		t.Error("a cut listing passed for whole")
	}
}

// A listing without end stops before it fills memory.
func TestListingTooLong(t *testing.T) {
	n := 0
	l := lister{emit: func(Entry) error { n++; return nil }, seen: maxEntries - 2}
	err := l.gnu(bufio.NewReader(strings.NewReader(strings.Repeat("f 9223372036854775807 644 1 ./a\x00\x00", 5))))
	if !errors.Is(err, remote.ErrTooLong) || n != 2 {
		t.Errorf("%d entries, %v", n, err)
	}
	huge := []Entry{{Path: "a", Size: 1<<63 - 1}, {Path: "b", Size: 1<<63 - 1}}
	if p := Compare(huge, nil, Options{}); p.Bytes < 0 {
		t.Errorf("%d bytes to move", p.Bytes)
	}
}

func TestReadSums(t *testing.T) {
	h := strings.Repeat("ab", 32)
	names := []string{"plain", "new\nline", "back\\slash", "cr\rx", "last", "last more"}
	for _, c := range []struct {
		name, text string
		missing    int
	}{
		{"gnu", h + "  ./plain\n\\" + h + "  ./new\\nline\n\\" + h + "  ./back\\\\slash\n\\" + h + "  ./cr\\rx\n" + h + "  ./last\n" + h + "  ./last more\n", 0},
		{"old gnu", h + "  ./plain\n\\" + h + "  ./new\\nline\n\\" + h + "  ./back\\\\slash\n" + h + "  ./cr\rx\n" + h + "  ./last\n" + h + "  ./last more\n", 0},
		{"busybox", h + "  ./plain\n" + h + "  ./new\nline\n" + h + "  ./back\\slash\n" + h + "  ./cr\rx\n" + h + "  ./last\n" + h + "  ./last more\n", 0},
		{"some missing", h + "  ./plain\n" + h + "  ./last\n", 4},
		{"none", "", 6},
	} {
		got, missing := 0, 0
		n, err := readSums(bufio.NewReader(strings.NewReader(c.text)), names, "./", func(i int, s string) { got++ }, func(int) { missing++ })
		if err != nil || n != 6 || missing != c.missing || got != 6-c.missing {
			t.Errorf("%s: %v, %d, %d missing, %d got", c.name, err, n, missing, got)
		}
	}
	for _, bad := range []string{h + "  ./other\n", "short\n", strings.Repeat("g", 64) + "  ./plain\n", h + "  ./last\n" + h + "  ./plain\n"} {
		if _, err := readSums(bufio.NewReader(strings.NewReader(bad)), names, "./", func(int, string) {}, func(int) {}); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte("f 5 644 1.5 ./ok\x00\x00E 0\x00\x00"), []byte("s81a4 1 2 ./x@m\nE0@m\n"))
	f.Fuzz(func(t *testing.T, gnu, busy []byte) {
		emit := func(e Entry) error {
			if tree.CheckPath(e.Path) != nil || e.Size < 0 {
				t.Errorf("emitted %+v", e)
			}
			return nil
		}
		(&lister{emit: emit}).gnu(bufio.NewReader(bytes.NewReader(gnu)))
		(&lister{emit: emit}).busy(bufio.NewReader(bytes.NewReader(busy)), "@m")
	})
}

func FuzzSums(f *testing.F) {
	f.Add([]byte(strings.Repeat("a", 64)+"  ./x\ny\n"), "x\ny")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		readSums(bufio.NewReader(bytes.NewReader(text)), []string{name, "z"}, "./", func(i int, s string) {
			if len(s) != 64 {
				t.Error(s)
			}
		}, func(int) {})
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("moved\x00E\x00"))
	f.Add([]byte("differ\x00x\x00y\x00E\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a answer
		a.read(bufio.NewReader(bytes.NewReader(b)))
	})
}

func TestWalkHere(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a.py", "out/model.pt", "out/keep.txt", "sub/x.log", ".git/HEAD", ".rentop-tmp-12/f", ".big.rentop-part-00"} {
		p := filepath.Join(dir, n)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, []byte(n), 0o644)
	}
	os.WriteFile(filepath.Join(dir, tree.GitIgnoreFile), []byte("out/\n*.log\n"), 0o644)
	os.WriteFile(filepath.Join(dir, tree.OwnIgnoreFile), []byte("!*.log\n.git\n"), 0o644)
	os.Symlink("nowhere", filepath.Join(dir, "link"))
	paths := func(s Spec) (out []string) {
		_, err := s.walkHere(t.Context(), dir, "", nil, &blind{}, func(e Entry) error {
			if e.Mode&fs.ModeSymlink != 0 && e.Target != "nowhere" {
				t.Error(e)
			}
			out = append(out, e.Path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	litter := 0
	if err := (Local{}).List(t.Context(), dir, func(e Entry) error {
		if tree.Ours(path.Base(e.Path)) {
			litter++
		}
		return nil
	}); litter != 2 || err != nil {
		t.Errorf("litter: %d, %v", litter, err)
	}
	if got := paths(Spec{}); !slices.Equal(got, []string{".gitignore", ".rentopignore", "a.py", "link", "sub", "sub/x.log"}) {
		t.Errorf("with rules: %q", got)
	}
	if got := paths(Spec{NoIgnore: true}); len(got) != 11 || !slices.Contains(got, ".git/HEAD") {
		t.Errorf("without rules: %q", got)
	}
}

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "a.jsonl")
	var wg stdsync.WaitGroup
	for w := range 4 { // as if four processes
		wg.Go(func() {
			r, err := OpenRecord(file)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 20 {
				if err := r.Add([]Recorded{{Remote: "/r/" + string(rune('a'+w)), Size: int64(i), At: t0}, {Remote: "/bad\xff"}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f, _ := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	f.WriteString(`{"remote":"/torn`) // a writer was killed
	f.Close()
	r, err := OpenRecord(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add([]Recorded{{Remote: "/r/z", SHA256: "x", ModTime: t0}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := r.tidy(0); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(file); bytes.Count(b, []byte("\n")) != 6 { // five rows and when it was tidied
		t.Errorf("tidied: %s", b)
	}
	all, err := r.All()
	if err != nil || len(all) != 5 || all[0].Size != 19 || all[3].Size != 19 {
		t.Fatal(err, all)
	}
	row, ok, err := r.Lookup("/r/z")
	if err != nil || !ok || row.SHA256 != "x" || !row.ModTime.Equal(t0) {
		t.Error(row, ok, err)
	}
	if _, ok, _ := r.Lookup("/no"); ok {
		t.Error("found what is not there")
	}
	os.WriteFile(file+".lock", nil, 0o600) // of a process that died
	os.Chtimes(file+".lock", t0, time.Now().Add(-time.Hour))
	if err := r.Add([]Recorded{{Remote: "/r/y"}}); err != nil {
		t.Error(err)
	}
}

func TestManifestNames(t *testing.T) {
	var b bytes.Buffer
	h := strings.Repeat("0", 64)
	WriteManifest(&b, []Entry{{Path: "a b", SHA256: h}, {Path: "n\nl\\", SHA256: h}, {Path: "none"}})
	if want := h + "  a b\n\\" + h + "  n\\nl\\\\\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// A record is read whole only once it has doubled, and by then in little memory:
// it is as long as all that was ever pushed.
func TestRecordTidiesSeldom(t *testing.T) {
	r, err := OpenRecord(filepath.Join(t.TempDir(), "a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	push := func(times int) {
		for range times {
			var rows []Recorded
			for i := range 100 {
				rows = append(rows, Recorded{Remote: fmt.Sprintf("/r/\"%d", i), Local: "/l", At: t0})
			}
			if err := r.Add(rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	tidy := func() (lines int) {
		if err := r.tidy(1 << 10); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	push(1)
	if n := tidy(); n != 101 {
		t.Errorf("%d lines after the first push", n)
	}
	before, _ := os.Stat(r.file)
	if tidy(); r.due(1 << 10) {
		t.Error("is due again at once")
	}
	if after, _ := os.Stat(r.file); !os.SameFile(before, after) {
		t.Error("rewritten although nothing came")
	}
	push(3)
	if n := tidy(); n != 101 {
		t.Errorf("%d lines after four pushes", n)
	}
	if row, ok, err := r.Lookup(`/r/"42`); !ok || err != nil || row.Local != "/l" {
		t.Error(row, ok, err)
	}
}
