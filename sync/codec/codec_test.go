package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"rentop/remote/needtest"
)

// weights makes n floats of a kind as a model has them, little-endian.
func weights(rng *rand.Rand, kind Kind, n int) []byte {
	var b []byte
	for range n {
		f := float32(rng.NormFloat64() * 0.02)
		u := math.Float32bits(f)
		switch kind {
		case BF16:
			b = binary.LittleEndian.AppendUint16(b, uint16((u+0x7fff+u>>16&1)>>16))
		case FP16:
			b = binary.LittleEndian.AppendUint16(b, half(f))
		case FP32:
			b = binary.LittleEndian.AppendUint32(b, u)
		}
	}
	return b
}

// half rounds down to fp16; small values become zero.
func half(f float32) uint16 {
	u := math.Float32bits(f)
	sign, exp, man := uint16(u>>16)&0x8000, int(u>>23&0xff)-127+15, uint16(u>>13)&0x3ff
	if exp <= 0 {
		return sign
	}
	return sign | uint16(exp)<<10 | man
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// text makes n bytes in which words repeat.
func text(rng *rand.Rand, n int) []byte {
	words := strings.Fields(`the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so`)
	var b strings.Builder
	for b.Len() < n {
		if rng.IntN(10) == 0 {
			fmt.Fprintf(&b, `{"id":%d,"x":`, rng.Uint32())
		}
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
	}
	return []byte(b.String())[:n]
}

func contents(rng *rand.Rand) map[string][]byte {
	m := map[string][]byte{
		"empty":  {},
		"one":    {7},
		"zeros":  make([]byte, 300_000),
		"text":   text(rng, 1<<18),
		"random": random(rng, 1<<18+3),
		"max":    bytes.Repeat(text(rng, 1<<20), MaxBlock>>20),
		"bf16":   weights(rng, BF16, 130_001),
		"fp16":   weights(rng, FP16, 70_000),
		"fp32":   weights(rng, FP32, 50_001),
		"mixed":  append(append(weights(rng, FP32, 30_000), text(rng, 100_001)...), random(rng, 50_003)...),
	}
	m["bf16 odd"] = append([]byte{1}, m["bf16"]...)
	m["fp32 odd"] = append([]byte{1, 2, 3}, m["fp32"]...)
	for _, n := range []int{2, 3, 4, 5, 63, 64, 65, 255, 256, 4095, 4096, 4097} {
		m[fmt.Sprintf("bf16 of %d bytes", n)] = m["bf16"][:n]
	}
	return m
}

func TestWhatWasPackedIsUnpacked(t *testing.T) {
	c := New(2)
	for name, block := range contents(rand.New(rand.NewPCG(1, 1))) {
		for level := range levels {
			if len(block) > 2<<20 && level > LevelDefault {
				continue
			}
			kinds := FP32
			if len(block) > 2<<20 {
				kinds = BF16
			}
			if level > LevelFastest { // kinds and levels do not meet: some of both will do
				kinds = Unknown
			}
			for kind := Unknown; kind <= kinds; kind++ {
				for phase := range max(1, kind.Width()) {
					prefix := []byte("before")
					m, packed := c.Encode(prefix, block, Hint{Level: level, Kind: kind, Phase: phase})
					if !bytes.HasPrefix(packed, prefix) {
						t.Fatalf("%s, %s, %s: dst was not appended to", name, level, kind)
					}
					packed = packed[len(prefix):]
					if len(packed) > len(block) {
						t.Errorf("%s, %s, %s: packed is longer: %d > %d", name, level, kind, len(packed), len(block))
					}
					got, err := c.Decode(bytes.Clone(prefix), m, packed, len(block))
					if err != nil {
						t.Fatalf("%s, %s, %s+%d, %s: %v", name, level, kind, phase, m, err)
					}
					if !bytes.Equal(got[len(prefix):], block) {
						t.Fatalf("%s, %s, %s+%d, %s: not what went in", name, level, kind, phase, m)
					}
				}
			}
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	c := New(2)
	all := contents(rand.New(rand.NewPCG(2, 2)))
	var wg sync.WaitGroup
	for name, block := range all {
		wg.Go(func() {
			for range 3 {
				m, packed := c.Encode(nil, block, Hint{Level: LevelFastest})
				got, err := c.Decode(nil, m, packed, len(block))
				if err != nil || !bytes.Equal(got, block) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
}

// The probe must find floats and where a number starts without being told, and
// must leave alone what does not compress.
func TestProbe(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	noise := random(rng, 8)
	for _, kind := range []Kind{BF16, FP16, FP32} {
		w := weights(rng, kind, 300_000)
		for lead := range 8 {
			block := append(bytes.Clone(noise[:lead]), w[:len(w)-lead%3]...)
			p := inspect(block, Hint{Level: LevelFastest})
			want := plan{Planes, kind.Width(), (kind.Width() - lead%kind.Width()) % kind.Width()}
			if p != want {
				t.Errorf("%s after %d bytes: %+v instead of %+v", kind, lead, p, want)
			}
		}
	}
	// A header in front is no reason to miss what follows.
	w := weights(rng, BF16, 500_000)
	block := append(bytes.Repeat([]byte(`{"model.layers.0.weight":{"dtype":"BF16"}},`), 96), w...)
	if p := inspect(block, Hint{}); p.method != Planes || p.width != 2 {
		t.Errorf("bf16 after a header: %+v", p)
	}
	upcast := make([]byte, 0, 1<<20)
	for b := weights(rng, BF16, 1<<18); len(b) > 0; b = b[2:] {
		upcast = append(upcast, 0, 0, b[0], b[1])
	}
	for lead := range 4 {
		if p := inspect(upcast[lead:], Hint{}); p != (plan{Planes, 4, lead}) {
			t.Errorf("fp32 that was bf16, first byte %d: %+v", lead, p)
		}
	}
	for name, want := range map[string]Method{"text": Zstd, "zeros": Zstd, "random": Raw} {
		block := contents(rng)[name]
		if p := inspect(block, Hint{}); p.method != want {
			t.Errorf("%s: %+v instead of %s", name, p, want)
		}
	}
}

// Weights must shrink as much as their exponents allow.
func TestFloatsShrink(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	c := New(1)
	for kind, want := range map[Kind]float64{BF16: 0.68, FP16: 0.87, FP32: 0.85} {
		block := weights(rng, kind, 1<<20)
		for _, hint := range []Kind{kind, Unknown} {
			m, packed := c.Encode(nil, block, Hint{Level: LevelFastest, Kind: hint})
			if got := float64(len(packed)) / float64(len(block)); m != Planes || got > want {
				t.Errorf("%s, told %s: %s leaves %.3f, want at most %.3f", kind, hint, m, got, want)
			}
		}
	}
}

func TestDecodeStaysWithinBounds(t *testing.T) {
	c := New(1)
	_, bomb := c.Encode(nil, make([]byte, MaxBlock), Hint{Level: LevelFastest})
	if len(bomb) > 4096 {
		t.Fatalf("8 MiB of zeros pack to %d bytes", len(bomb))
	}
	for _, claim := range []int{len(bomb), 4096, MaxBlock - 1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.Decode(nil, Zstd, bomb, claim)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("claim %d: %v", claim, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(claim)+(1<<20) {
			t.Errorf("claim %d: %d bytes allocated", claim, grown)
		}
	}
	for _, bad := range []int{-1, MaxBlock + 1} {
		if _, err := c.Decode(nil, Raw, nil, bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("length %d: %v", bad, err)
		}
	}
	if _, err := c.Decode(nil, 200, []byte{1}, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("unknown method: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	c := New(1)
	rng := rand.New(rand.NewPCG(5, 5))
	for _, block := range [][]byte{text(rng, 3000), weights(rng, BF16, 1500), weights(rng, FP32, 800), random(rng, 100), make([]byte, 5000)} {
		for l := LevelQuick; l < levels; l++ {
			m, packed := c.Encode(nil, block, Hint{Level: l})
			f.Add(uint8(m), packed, len(block))
		}
	}
	f.Fuzz(func(t *testing.T, m uint8, in []byte, rawLen int) {
		if rawLen > 1<<20 {
			rawLen &= 1<<20 - 1
		}
		out, err := c.Decode(nil, Method(m), in, rawLen)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if err == nil && len(out) != rawLen {
			t.Fatalf("%d bytes instead of %d", len(out), rawLen)
		}
		if cap(out) > max(rawLen, 0)+1024 {
			t.Fatalf("%d bytes allocated for %d", cap(out), rawLen)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	c := New(1)
	f.Add([]byte("hello hello hello hello hello hello hello hello hello hello hello hello"), uint8(1), uint8(2), 1)
	f.Fuzz(func(t *testing.T, b []byte, level, kind uint8, phase int) {
		block := bytes.Repeat(b, 1+int(level)*7)
		block = block[:min(len(block), 1<<20)]
		h := Hint{Level: Level(level) % levels, Kind: Kind(kind) % (FP32 + 1), Phase: phase}
		m, packed := c.Encode(nil, block, h)
		got, err := c.Decode(nil, m, packed, len(block))
		if err != nil || !bytes.Equal(got, block) {
			t.Fatalf("%+v %s: %v", h, m, err)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	rng := rand.New(rand.NewPCG(6, 6))
	c := New(1)
	for _, in := range []struct {
		name  string
		block []byte
	}{
		{"random", random(rng, 1<<20)},
		{"bf16", weights(rng, BF16, 1<<19)},
		{"fp16", weights(rng, FP16, 1<<19)},
		{"fp32", weights(rng, FP32, 1<<18)},
	} {
		var m Method
		var packed []byte
		b.Run(in.name+"/encode", func(b *testing.B) {
			b.SetBytes(int64(len(in.block)))
			for b.Loop() {
				m, packed = c.Pack(packed[:0], in.block, Hint{Level: LevelFastest})
			}
			if m == Raw {
				packed = append(packed, in.block...)
			}
			b.ReportMetric(float64(len(packed))/float64(len(in.block)), "ratio")
		})
		b.Run(in.name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(in.block)))
			var out []byte
			for b.Loop() {
				out, _ = c.Decode(out[:0], m, packed, len(in.block))
			}
		})
		b.Run(in.name+"/probe", func(b *testing.B) {
			b.SetBytes(int64(len(in.block)))
			for b.Loop() {
				inspect(in.block, Hint{})
			}
		})
	}
}

// BenchmarkLevels packs the file that RENTOP_BENCH_FILE names, up to 32 MiB of it, in the blocks of
// each level.
func BenchmarkLevels(b *testing.B) {
	name := os.Getenv("RENTOP_BENCH_FILE")
	needtest.That(b, name != "", "a file to pack, which RENTOP_BENCH_FILE names")
	data, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	data = data[:min(len(data), 32<<20)]
	c := New(1)
	for level := LevelQuick; level < levels; level++ {
		var blocks, packed [][]byte
		var how []Method
		for rest := data; len(rest) > 0; {
			n := min(len(rest), level.BlockSize())
			blocks, rest = append(blocks, rest[:n]), rest[n:]
		}
		b.Run(level.String()+"/encode", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			size := 0
			for b.Loop() {
				packed, how, size = packed[:0], how[:0], 0
				for _, block := range blocks {
					m, p := c.Encode(nil, block, Hint{Level: level})
					packed, how, size = append(packed, p), append(how, m), size+len(p)
				}
			}
			b.ReportMetric(float64(len(data))/float64(size), ":1")
		})
		b.Run(level.String()+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			out := make([]byte, 0, MaxBlock)
			for b.Loop() {
				for i, p := range packed {
					if _, err := c.Decode(out, how[i], p, len(blocks[i])); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
