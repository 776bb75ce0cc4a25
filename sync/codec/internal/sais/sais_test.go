package sais

import (
	"bytes"
	"index/suffixarray"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive sorts as the name says.
func naive(text []byte) []int32 {
	sa := make([]int32, len(text))
	for i := range sa {
		sa[i] = int32(i)
	}
	slices.SortFunc(sa, func(a, b int32) int { return bytes.Compare(text[a:], text[b:]) })
	return sa
}

func check(t *testing.T, text []byte) {
	t.Helper()
	sa := make([]int32, len(text))
	Sort(text, sa)
	if want := naive(text); !slices.Equal(sa, want) {
		t.Fatalf("%q: %v instead of %v", text, sa, want)
	}
}

func TestShort(t *testing.T) {
	// Every text of up to seven letters out of three, among them 0 and 255.
	letters := []byte{0, 'a', 255}
	for n := range 8 {
		text := make([]byte, n)
		for k := 0; ; k++ {
			v := k
			for i := range text {
				text[i] = letters[v%3]
				v /= 3
			}
			if v > 0 {
				break
			}
			check(t, text)
		}
	}
}

func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		text := make([]byte, rng.IntN(3000))
		values := 1 + rng.IntN(256)
		for i := range text {
			text[i] = byte(rng.IntN(values))
		}
		if n := len(text); seed%3 == 0 && n > 10 { // repeats, which recurse deeply
			copy(text[n/2:], text)
			copy(text[n/4:n/2], text)
		}
		check(t, text)
	}
}

func BenchmarkSort(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = byte(rng.IntN(4)) * byte(rng.IntN(20))
	}
	sa := make([]int32, len(text))
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			Sort(text, sa)
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			suffixarray.New(text)
		}
	})
}
