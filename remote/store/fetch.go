// Fetching: the instance brings objects to itself through signed GETs, beside their
// names; one gets its name once it is proven to be what the storage has.

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

// Stored is an object, as it was saved.
type Stored struct {
	Rel     string
	Size    int64
	ModTime time.Time // the file's own where that was kept, else of its arrival
	SHA256  string    // hex; "" where neither the storage nor the manifest tells it
	version string
}

// Stored lists what is below the place, but for the manifest.
func (c *Client) Stored(ctx context.Context) ([]Stored, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	known, err := c.manifest(ctx)
	if err != nil {
		return nil, fmt.Errorf("the manifest in %s: %w", c.place.URL(), err)
	}
	var out []Stored
	err = c.List(ctx, "", func(o Listed) error {
		if checkName(o.Rel) == nil { // a folder's mark is none
			out = append(out, Stored{Rel: o.Rel, Size: o.Size, ModTime: o.Modified, SHA256: known[o.Rel]})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i := range out {
		g.Go(func() error {
			one := &out[i]
			o, err := c.head(gctx, one.Rel)
			if err != nil {
				return err
			}
			one.Size, one.version = o.size, o.version()
			if one.ModTime = o.modified; !o.mtime.IsZero() {
				one.ModTime = o.mtime
			}
			if sum := o.whole(); sum != "" {
				one.SHA256 = sum
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	return out, nil
}

// Wanted is an object and the absolute path there that it is to have. The folder is there.
type Wanted struct {
	Stored
	Path string
}

// Fetch brings objects to the instance. A file's own failure is told by done; the error
// is for what ended the whole. What was cut goes on where it stopped.
func (c *Client) Fetch(ctx context.Context, r remote.Runner, list []Wanted, got func(n int64), done func(Wanted, error)) error {
	if len(list) == 0 {
		return nil
	}
	if err := c.reach(ctx, r); err != nil {
		return err
	}
	p := newPool(ctx, r, c.hands, c.helper)
	defer p.close()
	parts, failed := make([]File, len(list)), make([]error, len(list))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.hands)
	for i, w := range list {
		parts[i] = File{Path: partOf(w), Rel: w.Rel, Size: w.Size}
		g.Go(func() error {
			err := c.take(gctx, p, parts[i])
			if f := (fileError{}); errors.As(err, &f) {
				failed[i], err = err, nil
			} else if err == nil && got != nil {
				got(w.Size)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	if err := c.proveParts(ctx, r, p, list, parts, failed); err != nil {
		return err
	}
	if err := settle(ctx, r, list, parts, failed); err != nil {
		return err
	}
	for i, w := range list {
		done(w, failed[i])
	}
	return nil
}

// partOf is where an object lies on its way; another content has another. Listings of
// ours leave such names out.
func partOf(w Wanted) string {
	sum := sha256.Sum256([]byte(w.Rel + "\x00" + w.version))
	return path.Join(path.Dir(w.Path), ".s3.rentop-part-"+hex.EncodeToString(sum[:12]))
}

// take has the instance get one object.
func (c *Client) take(ctx context.Context, p *pool, part File) error {
	wait := firstWait
	for try := 1; ; try++ {
		to, err := c.sign(ctx, http.MethodGet, part.Rel, nil, nil)
		if err != nil {
			return err
		}
		a, err := p.do(ctx, job{to: to, file: &part, take: true})
		switch {
		case err != nil:
			return err
		case a.curl == 0:
			return nil
		case a.curl == 23: // curl: "failed writing received data to disk"
			return fmt.Errorf("it could not be written on the instance, whose disk may be full: %s", path.Dir(part.Path))
		case try == tries/2:
			return fileError{errors.New("the instance could not get it: " + a.broke)}
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// proveParts compares what arrived with what the storage has.
func (c *Client) proveParts(ctx context.Context, r remote.Runner, p *pool, list []Wanted, parts []File, failed []error) error {
	all, err := c.readSums(ctx, r, parts, nil)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for i, part := range parts {
		switch {
		case failed[i] != nil:
			continue
		case all[i].err != nil:
			failed[i] = all[i].err
			continue
		case list[i].SHA256 == hex.EncodeToString(all[i].whole):
			continue
		case list[i].SHA256 != "":
			failed[i] = errors.New("what arrived is not what was saved: its SHA-256 differs")
			continue
		}
		g.Go(func() error {
			proof, err := c.prove(gctx, p, part, all[i])
			if err == nil {
				failed[i] = proof.Problem
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	return nil
}

// settleScript gives what is proven its time and name; what is not, goes.
const settleScript = decode + `while read -r n ok at part enc; do
  name "$part"; p=$f; name "$enc"
  if [ "$ok" = no ]; then rm -f -- "$p"; continue; fi
  touch -d "@$at" -- "$p" 2>/dev/null || touch -d "@${at%.*}" -- "$p" 2>/dev/null
  [ ! -d "$f" ] && mv -f -- "$p" "$f" && printf '%s named\n' "$n"
done
echo end
`

func settle(ctx context.Context, r remote.Runner, list []Wanted, parts []File, failed []error) error {
	var in bytes.Buffer
	for i, w := range list {
		ok := "yes"
		if failed[i] != nil {
			ok = "no"
		}
		fmt.Fprintln(&in, i, ok, mtime(w.ModTime), octal(parts[i].Path), octal(w.Path))
	}
	named, whole := make([]bool, len(list)), false
	lines := &lineWriter{each: func(line string) error {
		if line == "end" {
			whole = true
			return nil
		}
		n, ok := strings.CutSuffix(line, " named")
		i, err := strconv.Atoi(n)
		if !ok || err != nil || i < 0 || i >= len(named) {
			return misread(line)
		}
		named[i] = true
		return nil
	}}
	err := r.Run(ctx, remote.Cmd{Script: settleScript, Stdin: &in, Stdout: lines})
	if err == nil {
		err = lines.err
	}
	if err == nil && !whole {
		err = errors.New("the answer ended early")
	}
	if err != nil {
		return fmt.Errorf("give what arrived its names: %w", err)
	}
	for i := range list {
		if failed[i] == nil && !named[i] {
			failed[i] = errors.New("it arrived, and could not be given its name there")
		}
	}
	return nil
}
