// Proof: what the storage has is what the instance has, now.

package store

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

// How says what a proof rests on.
type How string

const (
	ByStorage How = "storage"   // the storage's own SHA-256
	ReadBack  How = "read back" // the instance read the object and hashed it
)

// Proof is what is known of one file in the bucket.
type Proof struct {
	SHA256  string // of the file there, hex; "" where it could not be read
	How     How
	Version string // names exactly this object; Look compares it
	Problem error  // nil: equal, byte for byte
}

// ErrMissing is the problem of what is not there.
var ErrMissing = errors.New("it is not in the bucket")

// Prove reads every file on the instance and asks the storage for its own sums.
func (c *Client) Prove(ctx context.Context, r remote.Runner, files []File, progress func(done int)) ([]Proof, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	all, err := c.readSums(ctx, r, files, progress)
	if err != nil {
		return nil, err
	}
	p := newPool(ctx, r, c.hands, c.helper)
	defer p.close()
	out := make([]Proof, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i, f := range files {
		if problem := checkName(f.Rel); problem != nil {
			out[i].Problem = problem
			continue
		}
		if all[i].err != nil {
			out[i].Problem = all[i].err
			continue
		}
		g.Go(func() (err error) {
			out[i], err = c.prove(gctx, p, f, all[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	return out, nil
}

// prove compares one object with the sums of its file. A difference is the proof's
// problem; the error says that nothing is known.
func (c *Client) prove(ctx context.Context, p *pool, f File, sum sums) (Proof, error) {
	out := Proof{SHA256: hex.EncodeToString(sum.whole), How: ByStorage}
	o, err := c.head(ctx, f.Rel)
	if absent(err) {
		out.Problem = ErrMissing
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Version = o.version()
	if o.size != f.Size {
		out.Problem = fmt.Errorf("it has %d bytes in the bucket", o.size)
		return out, nil
	}
	digest, count, inParts := strings.Cut(o.sum, "-")
	switch {
	case o.sum == "": // told none
	case inParts && sum.parts != nil && count == fmt.Sprint(len(sum.parts)):
		if o.sum == sum.composite() {
			return out, nil
		}
	case inParts: // other parts than ours
	case digest == base64.StdEncoding.EncodeToString(sum.whole):
		return out, nil
	default:
		out.Problem = errors.New("its content in the bucket is another")
		return out, nil
	}
	return c.readBack(ctx, p, f, sum, out)
}

// readBack has the instance read the object.
func (c *Client) readBack(ctx context.Context, p *pool, f File, sum sums, out Proof) (Proof, error) {
	out.How = ReadBack
	var got []byte
	wait := firstWait
	for try := 1; ; try++ {
		to, err := c.sign(ctx, http.MethodGet, f.Rel, nil, nil)
		if err != nil {
			return out, err
		}
		a, err := p.do(ctx, job{to: to})
		if err != nil {
			return out, err
		}
		if got = a.sum; a.curl == 0 {
			break
		}
		if try == tries/2 {
			return out, fileError{errors.New("it could not be read back: " + a.broke)}
		}
		if err := c.sleep(ctx, wait); err != nil {
			return out, err
		}
		wait *= 2
	}
	if !bytes.Equal(got, sum.whole) {
		out.Problem = errors.New("its content in the bucket is another")
	}
	return out, nil
}

// Look asks again for objects that were proven: their versions as they are now, ""
// for one that is gone. No content is read.
func (c *Client) Look(ctx context.Context, rels []string) ([]string, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	out := make([]string, len(rels))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i, rel := range rels {
		g.Go(func() error {
			o, err := c.head(gctx, rel)
			if absent(err) {
				return nil
			}
			if err == nil {
				out[i] = o.version()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	return out, nil
}
