// Package delta finds what of a new file is in old ones already, wherever it lies
// there: content is cut where itself says so, so an insert shifts nothing but its
// own chunk.
//
// The side that has the bases signs them, the side that has the new file
// indexes the signatures and emits the steps that make the new file from them:
//
//	delta.Sign(ctx, basis, size, func(c []delta.Chunk) error { … delta.Append(buf, c) … })
//
//	ix := delta.NewIndex()
//	ix.Add(0, chunks)
//	delta.Diff(ctx, file, size, ix, func(op delta.Op) error { … })
//
// size is the length of the new file on both sides: it decides how long chunks
// are. Sums are hints. The caller proves the result by a real hash.
package delta
