package session

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/session/release"
)

// madeUp writes a snapshot that no rentop took: the entries of its archive below the
// folder home/m, each file with the content of its PAX comment.
func madeUp(t *testing.T, home string, list ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	manifest := map[string]string{}
	z := gzip.NewWriter(&b)
	tw := tar.NewWriter(z)
	for _, h := range list {
		text := h.PAXRecords["comment"]
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
			sum := sha256.Sum256([]byte(text))
			manifest[filepath.Join("/", h.Name)[1:]] = hex.EncodeToString(sum[:])
		}
		if sum := manifest[filepath.Join("/", h.Linkname)[1:]]; h.Typeflag == tar.TypeLink && sum != "" {
			manifest[filepath.Join("/", h.Name)[1:]] = sum
		}
		h.Mode, h.ModTime = 0o644, time.Unix(1e9, 0)
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := tw.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var text string
	for p, sum := range manifest {
		if esc := strings.NewReplacer("\\", "\\\\", "\n", "\\n").Replace(p); esc != p {
			text += `\` + sum + "  " + esc + "\n"
			continue
		}
		text += sum + "  " + p + "\n"
	}
	file := filepath.Join(t.TempDir(), "made.tar.gz")
	as, ms := sha256.Sum256(b.Bytes()), sha256.Sum256([]byte(text))
	about, err := json.Marshal(release.Portable{Version: 1, Instance: "\x1b]0;x\a", Home: home, SHA256: hex.EncodeToString(as[:]), Manifest: hex.EncodeToString(ms[:]), Files: len(manifest)})
	if err != nil {
		t.Fatal(err)
	}
	for f, b := range map[string][]byte{file: b.Bytes(), file + ".sha256": []byte(text), file + ".json": about} {
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func regular(name, text string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"comment": text}}
}

// TestRestoreHostile: whatever an archive says, nothing comes anywhere but to the places
// that its names say, nothing through a symlink, and nothing twice.
func TestRestoreHostile(t *testing.T) {
	t.Parallel()
	f, _, b := two(t, t.TempDir())
	s := session(t, f, "b")
	out := t.TempDir() // everybody may write here
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		list  []tar.Header
		says  string            // the error; "" is none
		there map[string]string // files in the home afterwards; "?" is none
	}{
		"two symlinks of one inode": {
			list:  []tar.Header{regular("old/s/x", "x"), {Name: "old/s/l", Typeflag: tar.TypeSymlink, Linkname: "x"}, {Name: "old/s/l2", Typeflag: tar.TypeLink, Linkname: "old/s/l"}},
			there: map[string]string{"s/x": "x", "s/l": "x", "s/l2": "x"},
		},
		"a second name of nothing": {
			list: []tar.Header{regular("old/n/x", "x"), {Name: "old/n/y", Typeflag: tar.TypeLink, Linkname: "etc/passwd"}},
			says: "/old/n/y is a second name of etc/passwd, which it does not hold", there: map[string]string{"n/x": "?"},
		},
		"devices": {
			list:  []tar.Header{regular("old/d/x", "x"), {Name: "old/d/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, {Name: "old/d/pipe", Typeflag: tar.TypeFifo}, {Name: "old/d/null2", Typeflag: tar.TypeLink, Linkname: "old/d/null"}},
			there: map[string]string{"d/x": "x", "d/null": "?", "d/null2": "?", "d/pipe": "?"},
		},
		"through a symlink": {
			list:  []tar.Header{{Name: "old/t/out", Typeflag: tar.TypeSymlink, Linkname: out}, regular("old/t/out/x", "x")},
			says:  "/t/out",
			there: map[string]string{"t/out/x": "x"},
		},
		"through a symlink that is there": {list: []tar.Header{regular("old/there/x", "x")}, says: "a symlink is where a folder was"},
		"a way out": {
			list:  []tar.Header{regular("old/w/../../old/w/x", "x"), regular("/old/w/y", "y"), regular("old/w/\x1b[31m\nred", "z")},
			there: map[string]string{"w/x": "x", "w/y": "y", "w/\x1b[31m\nred": "z"},
		},
		"one name twice": {
			list:  []tar.Header{regular("old/2/x", strings.Repeat("long", 100)), regular("old/2/x", "short"), regular("old/2/X", "case")},
			there: map[string]string{"2/x": "short", "2/X": "case"},
		},
		"rentop's own": {
			list:  []tar.Header{regular("old/r/x", "x"), regular("old/r/.rentop/jobs/j/exit", "0"), regular("old/.rentop-trash/x", "x"), {Name: "old/r/y", Typeflag: tar.TypeLink, Linkname: "old/.rentop-trash/x"}},
			there: map[string]string{"r/x": "x", "r/.rentop/jobs/j/exit": "?", ".rentop-trash/x": "?", "r/y": "x"},
		},
		"no target": {list: []tar.Header{regular("old/e/x", "x"), {Name: "old/e/l", Typeflag: tar.TypeSymlink, Linkname: ""}}, there: map[string]string{"e/x": "x", "e/l": "?"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "through a symlink that is there" {
				if err := os.Symlink(out, filepath.Join(b.Home, "there")); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.Restore(t.Context(), RestoreSpec{Snapshot: madeUp(t, "/old", c.list...)}, nil, nil)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			for rel, want := range c.there {
				if have := reads(t, b.Home, rel); have != want {
					t.Errorf("%q is %q", rel, have)
				}
			}
		})
	}
	if left, _ := os.ReadDir(out); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
}
