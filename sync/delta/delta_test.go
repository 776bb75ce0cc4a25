package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"
)

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		v := rng.Uint64()
		for k := range 8 {
			b[i+k] = byte(v >> (8 * k))
		}
	}
	return b
}

// signature signs b and passes it over the wire.
func signature(t testing.TB, b []byte, size int64) []Chunk {
	t.Helper()
	var all []Chunk
	err := Sign(t.Context(), bytes.NewReader(b), size, func(c []Chunk) error {
		var err error
		all, err = Decode(all, Append(nil, c))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func index(t testing.TB, size int64, bases ...[]byte) *Index {
	t.Helper()
	ix := NewIndex()
	for i, b := range bases {
		c := signature(t, b, size)
		for len(c) > 0 { // in odd portions
			n := min(len(c), 777)
			if err := ix.Add(i, c[:n]); err != nil {
				t.Fatal(err)
			}
			c = c[n:]
		}
	}
	return ix
}

// patch makes what the steps say; literals counts what it cost.
func patch(t testing.TB, r io.Reader, size int64, ix *Index, bases ...[]byte) (out []byte, literals, steps int) {
	t.Helper()
	last := Op{Basis: -1}
	err := Diff(t.Context(), r, size, ix, func(op Op) error {
		steps++
		if op.Len == 0 {
			if len(op.Literal) == 0 || len(op.Literal) > MaxLiteral {
				return fmt.Errorf("a literal of %d bytes", len(op.Literal))
			}
			out = append(out, op.Literal...)
			literals += len(op.Literal)
			last = Op{Basis: -1}
			return nil
		}
		if last.Basis == op.Basis && last.Off+last.Len == op.Off {
			return fmt.Errorf("%+v and %+v were not joined", last, op)
		}
		last = op
		out = append(out, bases[op.Basis][op.Off:op.Off+op.Len]...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, literals, steps
}

// edit changes b somehow.
func edit(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(6) {
		at, n := 0, 0
		if len(b) > 0 {
			at = rng.IntN(len(b))
			n = rng.IntN(min(len(b)-at, 50_000) + 1)
		}
		switch rng.IntN(6) {
		case 0: // insert
			b = append(b[:at:at], append(random(rng, rng.IntN(5000)), b[at:]...)...)
		case 1: // delete
			b = append(b[:at:at], b[at+n:]...)
		case 2: // overwrite
			copy(b[at:], random(rng, n))
		case 3: // move
			run := bytes.Clone(b[at : at+n])
			b = append(b[:at:at], b[at+n:]...)
			to := rng.IntN(len(b) + 1)
			b = append(b[:to:to], append(run, b[to:]...)...)
		case 4: // truncate
			b = b[:len(b)-n]
		case 5: // duplicate
			b = append(b, b[at:at+n]...)
		}
	}
	return b
}

func TestPatchMakesTheSource(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		bases := [][]byte{random(rng, rng.IntN(400_000)), {}, random(rng, rng.IntN(50_000)), make([]byte, rng.IntN(300_000))}
		bases = bases[:1+rng.IntN(len(bases))]
		source := edit(rng, bytes.Join(bases, nil))
		size := int64(len(source))
		if seed%3 == 0 {
			size = 5 << 30 // long chunks
		}
		var r io.Reader = bytes.NewReader(source)
		switch seed % 4 {
		case 1:
			r = iotest.HalfReader(r)
		case 2:
			r = iotest.DataErrReader(r)
		}
		got, _, _ := patch(t, r, size, index(t, size, bases...), bases...)
		if !bytes.Equal(got, source) {
			t.Fatalf("seed %d: not the source", seed)
		}
	}
}

func TestNoBasis(t *testing.T) {
	source := random(rand.New(rand.NewPCG(2, 2)), 3<<20+17)
	for _, ix := range []*Index{nil, NewIndex()} {
		got, literals, steps := patch(t, bytes.NewReader(source), int64(len(source)), ix)
		if !bytes.Equal(got, source) || literals != len(source) || steps > 5 {
			t.Fatalf("%d literals in %d steps", literals, steps)
		}
	}
	if _, _, steps := patch(t, bytes.NewReader(nil), 0, nil); steps != 0 {
		t.Fatal("steps for nothing")
	}
}

// What edits may cost, in literal bytes.
func TestLiterals(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	basis := random(rng, 16<<20)
	size := int64(len(basis))
	ix := index(t, size, basis)

	scattered := bytes.Clone(basis)
	edited := 0
	for edited < len(basis)/100 {
		copy(scattered[rng.IntN(len(basis)-4096):], random(rng, 4096))
		edited += 4096
	}
	half := len(basis) / 2
	for _, c := range []struct {
		name   string
		source []byte
		limit  int
	}{
		{"the same", basis, 0},
		{"13 bytes in front", append([]byte("thirteen byte"), basis...), 64 << 10},
		{"1 MiB in front", append(random(rng, 1<<20), basis...), 1<<20 + 64<<10},
		{"halves changed about", append(bytes.Clone(basis[half:]), basis[:half]...), 64 << 10},
		{"a byte gone", append(bytes.Clone(basis[:half]), basis[half+1:]...), 64 << 10},
		{"cut short", basis[:half+123], 64 << 10},
		{"1 % scattered", scattered, len(basis) * 3 / 100},
	} {
		got, literals, steps := patch(t, bytes.NewReader(c.source), size, ix, basis)
		if !bytes.Equal(got, c.source) {
			t.Fatalf("%s: not the source", c.name)
		}
		t.Logf("%s: %d literal bytes (%.2f %%), %d steps", c.name, literals, 100*float64(literals)/float64(size), steps)
		if literals > c.limit {
			t.Errorf("%s: %d literal bytes, the limit is %d", c.name, literals, c.limit)
		}
	}
}

// A signature must stay below 1 % of a file and an Index below 100 MB.
func TestChunkLengths(t *testing.T) {
	for _, size := range []int64{0, 1, 64 << 10, 1 << 30, 1<<30 + 1, 30 << 30, 200e9, 1 << 40, 1 << 62} {
		p := ParamsFor(size)
		if p.Max > MaxChunk || p.Min < 64 {
			t.Errorf("%d: %+v", size, p)
		}
		if chunks := size / int64(p.Avg); size <= 1<<40 && chunks > MaxChunks {
			t.Errorf("%d bytes make about %d chunks", size, chunks)
		}
	}
	const n = 32 << 20
	b := random(rand.New(rand.NewPCG(4, 4)), n)
	for _, size := range []int64{n, 2 << 30, 30 << 30} {
		chunks := signature(t, b, size)
		avg := float64(n) / float64(len(chunks))
		p := ParamsFor(size)
		t.Logf("%+v: %.0f on average, signature %.2f %%", p, avg, 100*float64(len(Append(nil, chunks)))/n)
		if avg < 0.8*float64(p.Avg) || avg > 1.3*float64(p.Avg) {
			t.Errorf("%+v: %.0f bytes on average", p, avg)
		}
		if s := len(Append(nil, chunks)); s > n/100 {
			t.Errorf("signature of %d bytes for %d", s, n)
		}
	}
}

func TestIndexMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ix := NewIndex()
	rng := rand.New(rand.NewPCG(5, 5))
	const n = 200_000_000_000 / (64 << 10)
	batch := make([]Chunk, 0, 1000)
	for i := 0; i < n; i += len(batch) {
		batch = batch[:0]
		for range 1000 {
			batch = append(batch, Chunk{Sum: rng.Uint64() & (1<<SumBits - 1), Len: 64 << 10})
		}
		if err := ix.Add(0, batch); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := after.HeapAlloc - before.HeapAlloc
	t.Logf("200 GB: %d chunks, %d MB", ix.n, grown/1e6)
	if grown > 100e6 {
		t.Errorf("%d bytes", grown)
	}
	if err := ix.Add(1, make([]Chunk, MaxChunks)); !errors.Is(err, ErrFull) {
		t.Errorf("a full index takes more: %v", err)
	}
	runtime.KeepAlive(ix)
}

func TestIndexRefusesWhatIsNoSignature(t *testing.T) {
	ix := NewIndex()
	if err := ix.Add(0, []Chunk{{Sum: 1, Len: 5}}); err != nil {
		t.Fatal(err)
	}
	if err := ix.Add(3, []Chunk{{Sum: 2, Len: 5}}); err != nil {
		t.Fatal(err)
	}
	for basis, c := range map[int]Chunk{0: {Sum: 1, Len: 1}, 3: {Sum: 1}, -1: {Len: 1}, 4: {Len: MaxChunk + 1}, MaxBases: {Len: 1}} {
		if ix.Add(basis, []Chunk{c}) == nil {
			t.Errorf("basis %d, %+v: taken", basis, c)
		}
	}
	if i, ok := ix.find(2, 5, 0); !ok || ix.at(i).basis() != 3 || ix.at(i).off != 0 {
		t.Error("basis 3 is not found")
	}
}

// Sums that all fall in one place must not make a search slow.
func TestFloodedIndex(t *testing.T) {
	ix := NewIndex()
	// Multiples of the inverse of the multiplier land side by side.
	inverse := uint64(1)
	for range 6 {
		inverse *= 2 - 0x9e3779b97f4a7c15*inverse
	}
	const n = 200_000
	for i := range uint64(n) {
		if err := ix.Add(0, []Chunk{{Sum: i * inverse, Len: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(n) {
		ix.find(i*inverse&(1<<SumBits-1), 1, 0)
	}
}

func TestStops(t *testing.T) {
	b := random(rand.New(rand.NewPCG(6, 6)), 8<<20)
	bad := errors.New("the disk is gone")
	none := func([]Chunk) error { return nil }
	if err := Sign(t.Context(), io.MultiReader(bytes.NewReader(b), iotest.ErrReader(bad)), 1, none); !errors.Is(err, bad) {
		t.Errorf("the source fails: %v", err)
	}
	if err := Sign(t.Context(), bytes.NewReader(b), 1, func([]Chunk) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("emit fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Diff(ctx, bytes.NewReader(b), 1, nil, func(Op) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	stuck := readerFunc(func([]byte) (int, error) { return 0, nil })
	if err := Sign(t.Context(), stuck, 1, none); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, []Chunk{{Sum: 1 << 40, Len: 5}, {Sum: 77, Len: MaxChunk}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		chunks, err := Decode(nil, in)
		if err != nil {
			if !errors.Is(err, ErrSignature) || len(chunks) > 0 {
				t.Fatal(err)
			}
			return
		}
		if len(chunks) > len(in) {
			t.Fatalf("%d chunks of %d bytes", len(chunks), len(in))
		}
		again, err := Decode(nil, Append(nil, chunks))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(chunks) {
			t.Fatal(err)
		}
	})
}

// A basis that is signed by a liar must neither crash nor spoil the literals.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("old content"), []byte("new content"), uint16(700))
	f.Fuzz(func(t *testing.T, old, new []byte, times uint16) {
		basis := bytes.Repeat(old, 1+int(times)%2000)
		source := append(bytes.Clone(new), basis[len(basis)/3:]...)
		got, _, _ := patch(t, bytes.NewReader(source), 0, index(t, 0, basis, new), basis, new)
		if !bytes.Equal(got, source) {
			t.Fatal("not the source")
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 7))
	basis := random(rng, 32<<20)
	for _, size := range []int64{1 << 20, 30 << 30} {
		b.Run(fmt.Sprintf("sign/avg=%d", ParamsFor(size).Avg), func(b *testing.B) {
			b.SetBytes(int64(len(basis)))
			for b.Loop() {
				Sign(b.Context(), bytes.NewReader(basis), size, func([]Chunk) error { return nil })
			}
		})
		ix := index(b, size, basis)
		b.Run(fmt.Sprintf("diff/avg=%d", ParamsFor(size).Avg), func(b *testing.B) {
			b.SetBytes(int64(len(basis)))
			for b.Loop() {
				Diff(b.Context(), bytes.NewReader(basis), size, ix, func(Op) error { return nil })
			}
		})
	}
}
