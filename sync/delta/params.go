package delta

// Params bound the chunks of content. Both ends must use the same ones, or
// nothing matches: they follow from one size, see ParamsFor.
type Params struct {
	Min, Avg, Max int // bytes; Avg is a power of two
}

// MaxChunk is the longest chunk of any Params, in bytes.
const MaxChunk = 4 << 20

// ParamsFor gives chunks of 2 KiB on average for a file below 1 GiB, and twice as
// long for each threefold of that: the signature, 8 bytes a chunk, shrinks from
// 0.4 % of a file to 0.01 % of one of 200 GB, and an Index of it stays below 100 MB.
// size is that of the new content: its side asks for the signature and names it.
func ParamsFor(size int64) Params {
	avg := 2 << 10
	for s := size; s > 1<<30 && avg < MaxChunk/4; s /= 3 {
		avg *= 2
	}
	return Params{Min: avg / 2, Avg: avg, Max: avg * 4}
}
