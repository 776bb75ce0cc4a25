// Saving: what is not in the bucket yet is hashed, signed for, sent by the instance,
// completed from the storage's own list, and proven.

package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

const (
	workers   = 4 // on the instance: four streams fill most lines
	lookers   = 16
	tries     = 6
	firstWait = 500 * time.Millisecond
	lastWait  = 15 * time.Second
	oldUpload = 24 * time.Hour
)

// Saving says what is told while files are saved. All of it may be nil or zero.
type Saving struct {
	Hashed func(done int)  // files, on the instance
	Sent   func(n int64)   // bytes that are in the bucket now; from several goroutines
	Done   func(Saved)     // once a file; from one goroutine at a time
	Skip   func(File) bool // known to be there: not even hashed
}

// Saved is what became of one file.
type Saved struct {
	File    File
	SHA256  string // hex
	Already bool   // it was there, equal
	Sent    int64  // bytes that the instance sent
	Kept    int64  // bytes of parts that an earlier run had sent
	Proof   Proof
	Err     error
}

// Save brings files to the place. A file's own failure is in its Saved; the error is
// for what ended the whole: no other file would have fared better. What was sent by
// then stays, and the next Save goes on with it, part by part.
func (c *Client) Save(ctx context.Context, r remote.Runner, files []File, s Saving) error {
	if s.Done == nil {
		s.Done = func(Saved) {}
	}
	var list []File
	for _, f := range files {
		switch err := cmp.Or(checkName(f.Rel), checkSize(f.Size)); {
		case err != nil:
			s.Done(Saved{File: f, Err: err})
		case s.Skip == nil || !s.Skip(f):
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	if err := c.reach(ctx, r); err != nil {
		return err
	}
	all, err := c.readSums(ctx, r, list, s.Hashed)
	if err != nil {
		return err
	}
	p := newPool(ctx, r, c.hands, c.helper)
	defer p.close()
	done := make(chan Saved)
	over, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { // ends with the files
		defer close(done)
		var g errgroup.Group
		g.SetLimit(c.hands)
		for i, f := range list {
			g.Go(func() error {
				one := c.saveOne(over, p, f, all[i], s)
				if one.Err != nil && fatal(one.Err) {
					end(one.Err)
				}
				done <- one
				return nil
			})
		}
		_ = g.Wait()
	}()
	var first error
	for one := range done {
		if one.Err != nil && over.Err() != nil {
			first = cmp.Or(first, context.Cause(over))
			continue // the others were not tried, or ended with it
		}
		s.Done(one)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if first != nil {
		return fmt.Errorf("%s: %w", c.place.URL(), first)
	}
	return nil
}

// fileError is what is one file's affair.
type fileError struct{ error }

func (f fileError) Unwrap() error { return f.error }

// fatal says whether no other file would fare better.
func fatal(err error) bool {
	var f *Fault
	var own fileError
	switch {
	case errors.As(err, &own) || errors.Is(err, ErrChanged):
		return false
	case errors.As(err, &f):
		return f.everywhere()
	}
	return true // the connection, the worker, the context
}

func (c *Client) saveOne(ctx context.Context, p *pool, f File, sum sums, s Saving) Saved {
	out := Saved{File: f}
	if out.Err = sum.err; out.Err != nil {
		out.Err = fileError{out.Err}
		return out
	}
	out.SHA256 = hex.EncodeToString(sum.whole)
	for again := range 2 {
		out.Proof, out.Err = c.prove(ctx, p, f, sum)
		if out.Err != nil {
			return out
		}
		if out.Proof.Problem == nil {
			out.Already = again == 0
			return out
		}
		fresh := again > 0 // what was kept may be what was wrong
		if sum.parts == nil {
			out.Sent, out.Err = f.Size, c.put(ctx, p, f, sum, s)
		} else {
			out.Err = c.putParts(ctx, p, f, sum, s, fresh, &out)
		}
		if out.Err != nil {
			return out
		}
		if out.Proof, out.Err = c.prove(ctx, p, f, sum); out.Err != nil || out.Proof.Problem == nil {
			return out
		}
		if out.Kept == 0 {
			break
		}
	}
	out.Err = fileError{fmt.Errorf("it was sent, and what the storage has is another: %w", out.Proof.Problem)}
	return out
}

// put sends a file as one object.
func (c *Client) put(ctx context.Context, p *pool, f File, sum sums, s Saving) error {
	err := c.send(ctx, p, func() (job, error) {
		to, err := c.signPut(ctx, f, sum.whole)
		return job{to: to, file: &f, n: f.Size}, err
	})
	if err == nil && s.Sent != nil {
		s.Sent(f.Size)
	}
	return err
}

// putParts sends what is missing of an upload in parts, and completes it.
func (c *Client) putParts(ctx context.Context, p *pool, f File, sum sums, s Saving, fresh bool, out *Saved) error {
	list := parts(f.Size, c.part(f.Size))
	open, err := c.unfinished(ctx, f.Rel)
	if err != nil {
		return err
	}
	var id string
	have := map[int]minio.ObjectPart{}
	if len(open) > 0 && !fresh {
		id = open[0].id
		if have, err = c.listParts(ctx, f.Rel, id); err != nil && !absent(err) {
			return err
		} else if err != nil {
			id = ""
		}
	}
	if id == "" {
		if id, err = c.begin(ctx, f); err != nil {
			return err
		}
	}
	var sent, kept atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.hands)
	for _, t := range list {
		if same(have[t.number], t, sum) {
			kept.Add(t.n)
			if s.Sent != nil {
				s.Sent(t.n)
			}
			continue
		}
		g.Go(func() error {
			err := c.send(gctx, p, func() (job, error) {
				to, err := c.signPart(gctx, f.Rel, id, t.number, sum.one(t.number))
				return job{to: to, file: &f, at: t.at, n: t.n}, err
			})
			if err == nil {
				sent.Add(t.n)
				if s.Sent != nil {
					s.Sent(t.n)
				}
			}
			return err
		})
	}
	err = g.Wait()
	out.Sent, out.Kept = out.Sent+sent.Load(), kept.Load()
	if err != nil {
		return err
	}
	if err := c.finish(ctx, f, id, list, sum); err != nil {
		return err
	}
	for _, u := range open { // what nobody goes on with is billed all the same
		if u.id != id && (fresh || c.now().Sub(u.begun) > oldUpload) {
			_ = c.abort(ctx, f.Rel, u.id)
		}
	}
	return nil
}

// same says whether a part that is there may stay. Storage that tells no SHA-256 is
// believed for now: the whole is read back.
func same(have minio.ObjectPart, t part, sum sums) bool {
	return have.PartNumber == t.number && have.Size == t.n &&
		(have.ChecksumSHA256 == "" || have.ChecksumSHA256 == base64.StdEncoding.EncodeToString(sum.one(t.number)))
}

// finish makes an object of the parts as the storage lists them: what the instance
// says of them counts for nothing.
func (c *Client) finish(ctx context.Context, f File, id string, list []part, sum sums) error {
	have, err := c.listParts(ctx, f.Rel, id)
	if err != nil {
		return err
	}
	done := make([]minio.CompletePart, 0, len(list))
	for _, t := range list {
		got := have[t.number]
		if !same(got, t, sum) {
			return fileError{fmt.Errorf("the instance says that part %d was sent, the storage does not have it", t.number)}
		}
		done = append(done, minio.CompletePart{PartNumber: t.number, ETag: got.ETag, ChecksumSHA256: got.ChecksumSHA256})
	}
	if err := c.complete(ctx, f.Rel, id, done); err != nil {
		if _, herr := c.head(ctx, f.Rel); absent(err) && herr == nil {
			return nil // an answer that was lost: what it is, is proven next
		}
		return err
	}
	return nil
}

// send has one request made until it went well or cannot: each try is signed anew.
func (c *Client) send(ctx context.Context, p *pool, next func() (job, error)) error {
	wait := firstWait
	for try := 1; ; try++ {
		j, err := next()
		if err != nil {
			return err
		}
		a, err := p.do(ctx, j)
		if err != nil {
			return err
		}
		again, err := c.verdict(a)
		switch {
		case err == nil:
			return nil
		case !again || try == tries:
			return err
		}
		if f := (*Fault)(nil); errors.As(err, &f) && (f.expired() || c.refusesSums(err)) {
			continue
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, lastWait)
	}
}

// verdict reads an answer that came to the instance.
func (c *Client) verdict(a answer) (again bool, err error) {
	switch {
	case a.changed:
		return false, fileError{ErrChanged}
	case a.curl == 60 || a.curl == 77:
		return false, errors.New("the instance does not trust the storage's certificate (" + a.broke + "): apt-get install -y ca-certificates there")
	case a.curl != 0 && a.status < 300:
		return true, fileError{fmt.Errorf("the instance got no answer from the storage: %s", cmp.Or(a.broke, fmt.Sprintf("curl %d", a.curl)))}
	case a.status >= 200 && a.status < 300:
		return false, nil
	}
	f := faultOf(a.status, a.body)
	f.Skew = c.skew()
	switch {
	case f.Code == "BadDigest" || f.Code == "XAmzContentChecksumMismatch" || f.Code == "InvalidDigest" || f.Code == "IncompleteBody":
		return false, fileError{fmt.Errorf("%w (what arrived is not what was hashed: %s)", ErrChanged, f.Code)}
	case f.everywhere():
		return false, f
	}
	plain := *f
	return f.passing() || f.expired() || c.wouldRefuse(&plain), fileError{f}
}

// wouldRefuse is refusesSums without its effect.
func (c *Client) wouldRefuse(f *Fault) bool { return f.Code == "NotImplemented" && !c.plain.Load() }
