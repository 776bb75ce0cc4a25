package tree

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestHolesAreZeros: a sparse file reads the same, wherever its data lies, and ends
// early where it was cut meanwhile.
func TestHolesAreZeros(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := make([]byte, rnd.IntN(1<<20))
		if err := f.Truncate(int64(len(want))); err != nil {
			t.Fatal(err)
		}
		for range i % 5 {
			at := rnd.IntN(len(want) + 1)
			piece := bytes.Repeat([]byte{byte(i + 1)}, min(rnd.IntN(100_000), len(want)-at))
			copy(want[at:], piece)
			if _, err := f.WriteAt(piece, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(&holeReader{f: f}); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("file %d: %d bytes for %d: %v", i, len(got), len(want), err)
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte("x"), 100_000)); err != nil {
		t.Fatal(err)
	}
	r := &holeReader{f: f}
	_, _ = io.CopyN(io.Discard, r, 50_000)
	if err := f.Truncate(60_000); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 10_000 || err != nil {
		t.Fatalf("%d bytes after the cut: %v", n, err)
	}
}
