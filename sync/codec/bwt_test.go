package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestSortedBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s sorter
	check := func(block []byte) {
		t.Helper()
		packed := s.encode(nil, block)
		got := make([]byte, len(block))
		if err := s.decode(got, packed); err != nil || !bytes.Equal(got, block) {
			t.Fatalf("%d bytes: %v", len(block), err)
		}
	}
	for n := 1; n < 300; n++ { // parts of every length, also none
		block := make([]byte, n)
		values := 1 + rng.IntN(256)
		for i := range block {
			block[i] = byte(rng.IntN(values))
		}
		check(block)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(255 - i)
	}
	check(every)
	check(bytes.Repeat([]byte("ab"), 5000))
	check(bytes.Repeat([]byte{0}, MaxBlock))
	check(random(rng, 100_000))
	check(text(rng, 1<<18+7))
}

// What is written must be readable by every build for ever: the arithmetic of the coder is
// the format. A change here needs a new Method.
func TestSortedFormat(t *testing.T) {
	var s sorter
	sum := sha256.Sum256(s.encode(nil, text(rand.New(rand.NewPCG(2, 2)), 200_000)))
	const want = "62394b2219644fc9"
	if got := hex.EncodeToString(sum[:8]); got != want {
		t.Errorf("the format has changed: %s instead of %s", got, want)
	}
}

func TestSortedPacksText(t *testing.T) {
	c := New(1)
	block := text(rand.New(rand.NewPCG(3, 3)), 1<<19)
	_, best := c.Encode(nil, block, Hint{Level: LevelBest})
	m, most := c.Encode(nil, block, Hint{Level: LevelMost})
	if m != Sorted || len(most)*100 > len(best)*85 {
		t.Errorf("%s leaves %d bytes, zstd %d", m, len(most), len(best))
	}
}

func FuzzSorted(f *testing.F) {
	rng := rand.New(rand.NewPCG(4, 4))
	var s sorter
	for _, n := range []int{1, 9, 1000, 20_000} {
		f.Add(s.encode(nil, text(rng, n)), n)
		f.Add(s.encode(nil, random(rng, n)), n)
	}
	c := New(1)
	f.Fuzz(func(t *testing.T, in []byte, rawLen int) {
		rawLen &= 1<<16 - 1
		if out, err := c.Decode(nil, Sorted, in, rawLen); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		} else if len(out) != rawLen {
			t.Fatal(len(out), rawLen)
		}
	})
}
