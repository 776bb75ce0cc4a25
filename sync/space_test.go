package sync

import "testing"

func TestParseDF(t *testing.T) {
	for text, want := range map[string][2]int64{
		"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 1000 400 600 40% /\n":           {600 << 10, 1000 << 10},
		"Filesystem 1024-blocks Used Available Capacity Mounted on\nmy disk x 1000 400 600 40% /mnt/a 5% b\n": {600 << 10, 1000 << 10},
		"overlay 10 20 -3 99% /\n": {0, 10 << 10},
	} {
		free, total, err := parseDF([]byte(text))
		if err != nil || free != want[0] || total != want[1] {
			t.Errorf("%q: %d %d %v", text, free, total, err)
		}
	}
	for _, bad := range []string{"", "x", "a b c d 5%", "x 99999999999999999999 1 1 1% /", "% % % % %"} {
		if _, _, err := parseDF([]byte(bad)); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func FuzzParseDF(f *testing.F) {
	f.Add([]byte("/dev/sda1 1000 400 600 40% /"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if free, total, err := parseDF(b); err == nil && (free < 0 || total < 0) {
			t.Errorf("%q: %d %d", b, free, total)
		}
	})
}

func FuzzPathList(f *testing.F) {
	f.Add("a/b", "a/c", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		l := &pathList{}
		want := []Entry{{Path: a, Size: 5}, {Path: b, From: c, Size: 1 << 40}, {Path: c}}
		for _, e := range want {
			l.add(e)
		}
		i := 0
		for e := range l.all {
			if e.Path != want[i].Path || e.From != want[i].From || e.Size != want[i].Size {
				t.Errorf("%d: %+v, want %+v", i, e, want[i])
			}
			i++
		}
		if i != 3 || l.n != 3 {
			t.Error(i, l.n)
		}
	})
}
