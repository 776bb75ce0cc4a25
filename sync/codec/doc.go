// Package codec packs blocks for the way over a link and unpacks them. How hard
// follows the link; what does not compress goes as it is; the floats of models are
// grouped by significance first. Both ends of a transfer use it, and the helper on the instance
// links it, so it depends on klauspost/compress alone.
//
//	c, g := codec.New(workers), codec.NewGovernor(workers)
//	ranges := codec.Sniff(head, size)
//	…
//	level, n := g.Next() // and a block of n bytes at off
//	hint := codec.HintAt(ranges, off, n)
//	hint.Level = level
//	method, packed := c.Encode(nil, block, hint)
//	…
//	block, err := c.Decode(nil, method, packed, n)
//
// # What was measured
//
// On one core of a 2.8 GHz Xeon that others shared, in MB/s of raw bytes and raw ÷ packed, with
// each level's own block size. Text is 32 MiB of JSON lines, code is 32 MiB of Go's own
// source, as tar:
//
//	level     text   code   pack   unpack
//	quick     2.03   2.98    460    1500
//	fastest   2.81   4.88    160     900
//	default   3.04   5.32    120     850
//	better    3.33   5.81     60     800
//	best      3.65   6.30     15     700
//	most      4.65   6.97    6.5      12
//
// The first is S2, on other text and code of the kind, its speeds scaled by fastest's of that hour: it costs both
// ends less than half of zstd, for links faster than the cores. Four are
// zstd's levels of klauspost/compress, C zstd in one stream reaches 3.12 on the
// text at its level 3. The last is our own (bwt.go, column.go): a Burrows-Wheeler transform takes
// two to three times the work of zstd's best to leave 10 to 22 % less, which pays up to some 3 MB/s.
// Beside it on the same 8 MiB of text, kanzi-go 2.6.0 (pure Go, too): BWT and CM pack as fast and as
// small, 4.69, but unpack at half the speed; BWT, ranks and ANS leave 4.24 at twice the speed; TPAQ
// 4.87 at a third. It would add 309 KB to the gzipped helper, zstd and huff0 add 239, all of this package
// beside them 53.
//
// Blocks are independent, so that they can be packed by several cores and lost with
// a connection: 1 MiB at a time costs zstd 0.5 to 10 % more bytes than 8 MiB do, more at higher
// levels, and sorting 19 %. Passing the block before as a dictionary was left out: it makes klauspost's
// encoder build its tables anew for each block.
//
// bf16 weights leave 66 % where zstd leaves 78 to 100, fp16 84 %, fp32 83 %, at 500 MB/s
// and more. Looking at noise costs 20 to 40 µs a MiB.
package codec
