package delta

import (
	"context"
	"io"
)

// Op is one step that makes the new content: bytes as they are, or a run copied
// from a basis.
type Op struct {
	// Literal is set where Len is 0: at most MaxLiteral bytes, good until emit returns.
	Literal []byte
	// Basis, Off and Len name a run to copy; Len is 0 in a literal.
	Basis int
	Off   int64
	Len   int64
}

// Diff reads the new content from r and emits the steps that make it, in order:
// runs that the bases in ix seem to hold, and literals for the rest. Runs that lie
// side by side are joined. size is the one that the signatures were made with.
// Memory does not grow with the content.
//
// Sums are a hint: who applies the steps must compare a real hash of the whole
// with that of the source, and ask for the file without a basis where they differ.
func Diff(ctx context.Context, r io.Reader, size int64, ix *Index, emit func(Op) error) error {
	d := differ{stream: newStream(r, ParamsFor(size)), ix: ix, emit: emit}
	for {
		b, err := d.next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := d.take(b); err != nil {
			return err
		}
	}
	if err := d.literal(d.at); err != nil {
		return err
	}
	return d.copied()
}

// differ holds a run to copy that may still grow, or a literal that may: never both.
type differ struct {
	*stream
	ix   *Index
	emit func(Op) error
	run  Op
	want int // entry that would lengthen the run
}

// take adds one chunk.
func (d *differ) take(b []byte) error {
	n := int64(len(b))
	i, ok := d.ix.find(sum(b), n, d.want)
	if !ok {
		d.want = 0
		if err := d.copied(); err != nil {
			return err
		}
		if d.at-d.kept > MaxLiteral {
			return d.literal(d.at - len(b))
		}
		return nil
	}
	if err := d.literal(d.at - len(b)); err != nil {
		return err
	}
	d.kept = d.at
	e := d.ix.at(i)
	d.want = i + 1
	if d.run.Len > 0 && d.run.Basis == e.basis() && d.run.Off+d.run.Len == e.off {
		d.run.Len += n
		return nil
	}
	if err := d.copied(); err != nil {
		return err
	}
	d.run = Op{Basis: e.basis(), Off: e.off, Len: n}
	return nil
}

// copied emits the run.
func (d *differ) copied() error {
	if d.run.Len == 0 {
		return nil
	}
	op := d.run
	d.run = Op{}
	return d.emit(op)
}

// literal emits what is kept up to end.
func (d *differ) literal(end int) error {
	for d.kept < end {
		b := d.buf[d.kept:min(end, d.kept+MaxLiteral)]
		d.kept += len(b)
		if err := d.emit(Op{Literal: b}); err != nil {
			return err
		}
	}
	return nil
}
