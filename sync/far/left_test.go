//go:build unix

package far

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rentop/sync/tree"
)

// TestLeftovers: what a dead run left goes at once, wherever in the tree, and what a
// live one has stays, also where its root is another folder.
func TestLeftovers(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, _, dst string) {
		remove := func(paths ...string) {
			t.Helper()
			var items []Item
			for _, p := range paths {
				items = append(items, Item{Op: Delete, Entry: tree.Entry{Path: p}})
			}
			if !pull {
				if err := c.Apply(t.Context(), dst, items, func(it Item, err error) {
					if err != nil {
						t.Errorf("%s: %v", it.Entry.Path, err)
					}
				}); err != nil {
					t.Fatal(err)
				}
				return
			}
			root, err := os.OpenRoot(dst)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			s := NewSweeper(root)
			defer s.Close()
			for _, p := range paths {
				if err := s.Remove(p); err != nil {
					t.Errorf("%s: %v", p, err)
				}
			}
		}
		dead, live, alone := tree.TmpPrefix+"dead", tree.TmpPrefix+"live", tree.TmpPrefix+"alone"
		for _, p := range []string{dead + "-1", dead + lockSuffix, "sub/" + dead + "-lock", live + "-7", "sub/" + live + "-2", "sub/deep/" + live + "-3", "sub/" + live + lockSuffix, alone + "-1"} {
			write(t, dst, p, nil)
		}
		write(t, dst, live+lockSuffix, nil)
		os.Remove(filepath.Join(dst, "sub", live+lockSuffix))
		p, err := openPlace(dst)
		if err != nil {
			t.Fatal(err)
		}
		p.run = live
		os.Remove(filepath.Join(dst, live+lockSuffix))
		if tmp := p.temp(); !strings.HasPrefix(tmp, live+"-") || p.lock == nil {
			t.Fatalf("%s, lock %v", tmp, p.lock)
		}
		all := []string{dead + lockSuffix, dead + "-1", "sub/" + dead + "-lock", live + "-7", live + lockSuffix, "sub/" + live + "-2", "sub/deep/" + live + "-3", alone + "-1", "nowhere/" + dead + "-1"}
		remove(all...)
		left := names(t, dst)
		for _, p := range all {
			if is, want := left[p], strings.Contains(p, live) || strings.Contains(p, alone); is != want {
				t.Errorf("%s: there %v, want %v", p, is, want)
			}
		}
		p.Close()
		if names(t, dst)[live+lockSuffix] {
			t.Error("a run that has ended left its lock")
		}
		for name := range left {
			os.Remove(filepath.Join(dst, name))
		}
	})
}

// TestLockIsNotLost: a run whose lock a sweeper takes for a dead one's makes another.
func TestLockIsNotLost(t *testing.T) {
	dst := t.TempDir()
	p, err := openPlace(dst)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dst, p.run+lockSuffix, nil)
	if p.temp(); p.lock != nil {
		t.Error("another's lock was taken")
	}
	p.Close()
	if p, err = openPlace(dst); err != nil {
		t.Fatal(err)
	}
	p.temp()
	if held, err := lock(p.lock); held || err != nil {
		t.Error(held, err)
	}
	other, err := os.OpenFile(filepath.Join(dst, p.run+lockSuffix), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if held, _ := lock(other); !held {
		t.Error("two have the lock")
	}
	var st syscall.Stat_t
	p.Close()
	if syscall.Fstat(int(other.Fd()), &st); st.Nlink != 0 || !unlinked(other) {
		t.Error("the lock is still there")
	}
}

func names(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			out[filepath.ToSlash(rel)] = true
		}
		return nil
	})
	return out
}
