package sync

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/sync/tree"
)

var t0 = time.Unix(1700000000, 5000)

func f(p string, size int64) Entry {
	return Entry{Path: p, Size: size, Mode: 0o644, ModTime: t0}
}
func d(p string) Entry { return Entry{Path: p, Mode: fs.ModeDir | 0o755} }
func l(p, to string) Entry {
	return Entry{Path: p, Mode: fs.ModeSymlink | 0o777, Target: to}
}
func at(e Entry, t time.Time) Entry { e.ModTime = t; return e }
func sum(e Entry, s string) Entry   { e.SHA256 = s; return e }
func mode(e Entry, m fs.FileMode) Entry {
	e.Mode = e.Mode.Type() | m
	return e
}

func TestCompare(t *testing.T) {
	out := func(p string, _ bool) bool { return p == "out" || strings.HasPrefix(p, "out/") }
	for _, c := range []struct {
		name     string
		src, dst []Entry
		o        Options
		want     string // "op path, …"; after "|" the deletes
		refused  string
	}{
		{name: "new", src: []Entry{f("a/b", 1), d("a"), l("z", "a")}, want: "mkdir a, send a/b, symlink z"},
		{name: "same", src: []Entry{d("a"), f("a/b", 1), l("z", "a")}, dst: []Entry{d("a"), f("a/b", 1), l("z", "a")}},
		{name: "size", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 2)}, want: "send a"},
		{name: "time", src: []Entry{f("a", 1)}, dst: []Entry{at(f("a", 1), t0.Add(time.Millisecond))}, want: "send a"},
		{name: "time by the second", src: []Entry{f("a", 1)}, dst: []Entry{at(f("a", 1), t0.Truncate(time.Second))}},
		{name: "mode", src: []Entry{mode(f("a", 1), 0o755)}, dst: []Entry{f("a", 1)}, want: "attr a"},
		{name: "modes ignored", src: []Entry{mode(f("a", 1), 0o755)}, dst: []Entry{f("a", 1)}, o: Options{IgnoreModes: true}},
		{name: "checksum equal", src: []Entry{sum(f("a", 1), "x")}, dst: []Entry{sum(at(f("a", 1), t0.Add(time.Hour)), "x")}, o: Options{Checksum: true}, want: "attr a"},
		{name: "checksum differs", src: []Entry{sum(f("a", 1), "x")}, dst: []Entry{sum(f("a", 1), "y")}, o: Options{Checksum: true}, want: "send a"},
		{name: "link", src: []Entry{l("a", "x")}, dst: []Entry{l("a", "y")}, want: "symlink a"},
		{name: "file to folder", src: []Entry{d("a"), f("a/b", 1)}, dst: []Entry{f("a", 1)}, want: "delete a, mkdir a, send a/b"},
		{name: "symlink to folder", src: []Entry{d("a"), f("a/b", 1)}, dst: []Entry{l("a", "/data"), f("a/b", 1)}, want: "delete a, mkdir a, send a/b"},
		{name: "empty folder to file", src: []Entry{f("a", 1)}, dst: []Entry{d("a")}, want: "delete a, send a"},
		{name: "folder to file", src: []Entry{f("a", 1)}, dst: []Entry{d("a"), f("a/b", 1)}, want: "skip a"},
		{name: "folder to file, delete", src: []Entry{f("a", 1), f("b", 1), f("c", 1)}, dst: []Entry{d("a"), f("a/b", 1), f("b", 1), f("c", 1)}, o: Options{Delete: true}, want: "delete a/b, delete a, send a"},
		{name: "folder that holds most to symlink", src: []Entry{l("a", "/mnt/a"), f("b", 1)}, dst: []Entry{d("a"), f("a/b", 1), f("a/c", 1), f("b", 1)}, o: Options{Delete: true}, want: "delete a/c, delete a/b, delete a, symlink a", refused: "half"},
		{name: "folder with ignored to file", src: []Entry{f("out", 1)}, dst: []Entry{d("out"), f("out/b", 1)}, o: Options{Delete: true, Protected: out}, want: "skip out"},
		{name: "not asked", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), f("b", 1)}},
		{name: "delete", src: []Entry{f("a", 1), f("c", 1), f("d", 1)}, dst: []Entry{f("a", 1), f("c", 1), f("d", 1), d("b"), f("b/x", 1)}, o: Options{Delete: true}, want: "|delete b/x, delete b"},
		{name: "delete keeps ignored", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), d("out"), f("out/m", 1), f("b", 1)}, o: Options{Delete: true, Protected: out}, want: "|delete b"},
		{name: "empty source", dst: []Entry{f("a", 1)}, o: Options{Delete: true}, want: "|delete a", refused: "empty"},
		{name: "more than half", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), f("b", 1), f("c", 1)}, o: Options{Delete: true}, want: "|delete c, delete b", refused: "half"},
		{name: "forced", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), f("b", 1), f("c", 1)}, o: Options{Delete: true, Force: true}, want: "|delete c, delete b"},
		{name: "half is not more", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), f("b", 1)}, o: Options{Delete: true}, want: "|delete b"},
		{name: "unread source", src: []Entry{f("a", 1)}, dst: []Entry{f("a", 1), f("b", 1)}, o: Options{Delete: true, Force: true, Incomplete: "x"}, want: "|delete b", refused: "completely"},
		{name: "hostile", src: []Entry{f("../a", 1), f("/etc/x", 1), f("a/../../b", 1), f("a//b", 1)}, want: "skip ../a, skip /etc/x, skip a/../../b, skip a//b"},
		{name: "windows", src: []Entry{d("con"), f("con/x", 1), f("a:b", 1), f("nul.txt", 1), f("x.", 1), f("ok", 1)}, o: Options{Windows: true}, want: "send ok, skip a:b, skip con, skip con/x, skip nul.txt, skip x."},
		{name: "case", src: []Entry{f("A", 1), f("a", 1)}, o: Options{FoldCase: true}, want: "send A, skip a"},
		{name: "links out", src: []Entry{l("a", "/etc/passwd"), l("b/c", "../../x"), l("b/d", "../x"), l("e", "C:\\x")}, o: Options{KeepIn: true}, want: "symlink b/d, skip a, skip b/c, skip e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Compare(c.src, c.dst, c.o)
			text := func(list []Action) string {
				var s []string
				for _, a := range list {
					if a.Why == "" {
						t.Errorf("%s %s has no reason", a.Op, a.Entry.Path)
					}
					s = append(s, string(a.Op)+" "+a.Entry.Path)
				}
				return strings.Join(s, ", ")
			}
			got := text(p.Actions)
			if len(p.Deletes) > 0 {
				got += "|" + text(p.Deletes)
			}
			if got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
			if (p.Refused != nil) != (c.refused != "") || p.Refused != nil && !strings.Contains(p.Refused.Error(), c.refused) {
				t.Errorf("refused: %v", p.Refused)
			}
		})
	}
}

func TestPlanShows(t *testing.T) {
	p := Compare([]Entry{f("a\x1b[31m", 3000), d("b")}, []Entry{f("gone", 1), f("more", 1), f("also", 1)}, Options{Delete: true})
	s := p.String()
	if strings.Contains(s, "\x1b") {
		t.Errorf("an escape sequence passed: %q", s)
	}
	for _, want := range []string{"send", "2.9 KiB", "mkdir", "delete", "1 files to send", "3 to delete", "refused to delete 3 of 3"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in\n%s", want, s)
		}
	}
	if got := p.Removes(); len(got) != 3 {
		t.Errorf("removes %v", got)
	}
	if len(p.Rows()) != 5 || p.Counts()[Delete] != 3 || p.Bytes != 3000 {
		t.Error(p.Rows(), p.Counts(), p.Bytes)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 20 << 10: "20 KiB", 5 << 30: "5.0 GiB", 1 << 62: "4096 PiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestAcked(t *testing.T) {
	var a acked
	for _, s := range []struct{ from, to, want int64 }{{10, 20, 0}, {30, 40, 0}, {0, 10, 20}, {20, 30, 40}} {
		if got, _ := a.add(s.from, s.to); got != s.want {
			t.Errorf("after %d-%d: %d, want %d", s.from, s.to, got, s.want)
		}
	}
}

func TestJournal(t *testing.T) {
	for text, want := range map[string]int64{journalText(5): 5, journalText(11): 0, "": 0, "00000000000000000005": 0, "-0000000000000000005\n": 0, "x0000000000000000005\n": 0} {
		if got := parseJournal(text, 10); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestProgressRate(t *testing.T) {
	now := t0
	tr := newTracker(Local{}, func() time.Time { return now }, nil)
	tr.total(10, 1000)
	tr.stage("send")
	tr.snapshot()
	for range 20 {
		now = now.Add(500 * time.Millisecond)
		tr.Content(20)
		tr.snapshot()
	}
	p := tr.snapshot()
	if p.Rate < 35 || p.Rate > 45 || p.Left < 14*time.Second || p.Left > 16*time.Second {
		t.Errorf("rate %v, left %v", p.Rate, p.Left)
	}
	now = now.Add(20 * time.Second) // stalled
	if p := tr.snapshot(); p.Rate > 5 {
		t.Errorf("a stalled transfer shows %v", p.Rate)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("a\x00b/c", "a/x\x00b")
	f.Fuzz(func(t *testing.T, a, b string) {
		list := func(s string) (out []Entry) {
			for i, p := range strings.Split(s, "\x00") {
				e := Entry{Path: p, Size: int64(i), Mode: []fs.FileMode{0o644, fs.ModeDir, fs.ModeSymlink}[len(p)%3]}
				if !slices.ContainsFunc(out, func(o Entry) bool { return o.Path == p }) {
					out = append(out, e)
				}
			}
			return out
		}
		p := Compare(list(a), list(b), Options{Delete: true, KeepIn: true})
		for _, x := range p.Actions {
			if x.Op != Skip && x.Op != Delete && tree.CheckPath(x.Entry.Path) != nil {
				t.Errorf("planned %q", x.Entry.Path)
			}
		}
		_ = p.String()
	})
}

func ExampleSize() {
	fmt.Println(Size(1536))
	// Output: 1.5 KiB
}

func t1() time.Time { return t0 }
