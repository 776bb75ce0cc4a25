// Package codec packs blocks for the way over a link and unpacks them: zstd at a
// level that follows the link, nothing for what does not compress, and byte
// planes for the floats of models. Both ends of a transfer use it; the helper on the
// instance links it, so it depends on klauspost/compress alone.
//
//	c, g := codec.New(workers), codec.NewGovernor(workers)
//	level, size := g.Next()
//	m, packed := c.Encode(nil, block, codec.Hint{Level: level})
//	…
//	block, err := c.Decode(nil, m, packed, rawLen)
package codec
