package far

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"rentop/remote/agent/link"
	"rentop/sync/codec"
	"rentop/sync/tree"
)

// This file is our end: calls to a helper's Serve.

// Client asks one helper. It is safe for concurrent use.
type Client struct {
	c       *conn
	codec   *codec.Codec
	workers int
	cancel  context.CancelFunc
	reading sync.WaitGroup
}

// NewClient speaks over l, which it owns from now on.
func NewClient(l link.Link) *Client {
	ctx, cancel := context.WithCancel(context.Background())
	n := workers()
	c := &Client{c: newConn(l, nil), codec: codec.New(n), workers: n, cancel: cancel}
	c.reading.Go(func() {
		if c.c.read(ctx) != io.EOF {
			l.Close()
		}
	})
	return c
}

// Close ends the link; calls that are open fail.
func (c *Client) Close() error {
	err := c.c.l.Close()
	c.cancel()
	c.reading.Wait()
	return err
}

// Err is why the link ended, nil while it lives.
func (c *Client) Err() error { return c.c.cause() }

// settle is how long a call that was given up waits for the other side's end.
const settle = 2 * time.Second

// do opens a call, runs talk, and ends it: talk's error gives it up.
func (c *Client) do(ctx context.Context, service byte, header []byte, wire func(int64), talk func(k *call) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k, err := c.c.open(ctx, service, header)
	if err != nil {
		return err
	}
	k.wire = wire
	defer k.close()
	if err = talk(k); err == nil {
		return nil
	}
	patience, enough := context.WithTimeout(context.Background(), settle)
	defer enough()
	k.giveUp(patience.Done())
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if _, is := err.(*ProtocolError); is { // nothing it says can be trusted any more
		c.c.end(err)
		c.c.l.Close()
	}
	return err
}

// Resolve makes p absolute on the instance and says what is there, symlinks
// followed; where nothing is, the error is fs.ErrNotExist and abs is set.
func (c *Client) Resolve(ctx context.Context, p string) (abs string, e tree.Entry, err error) {
	err = c.do(ctx, svcResolve, appendString(nil, p), nil, func(k *call) error {
		there := false
		err := found(k, func(d *decoder) {
			abs, there = d.string(tree.MaxPath), d.byte() != 0
			if there {
				var f front
				e = f.entry(d)
			}
		})
		if err != nil {
			return err
		}
		if !strings.HasPrefix(abs, "/") && !(len(abs) > 2 && abs[1] == ':') {
			return broken("a path that is not absolute")
		}
		e.Path = path.Base(abs)
		if !there {
			return &fs.PathError{Op: "stat", Path: abs, Err: fs.ErrNotExist}
		}
		return nil
	})
	return abs, e, err
}

// early gives the end of an answer its meaning where more was expected.
func early(err error) error {
	if err == io.EOF {
		return broken("an answer ends early")
	}
	return err
}

// found has read take the one message of an answer, and waits for the other side's end.
func found(k *call, read func(d *decoder)) error {
	m, err := k.recv()
	if err != nil {
		return early(err)
	}
	if m.what != whatFound {
		return broken("a message of kind %d for an answer", m.what)
	}
	d := &decoder{b: m.body}
	read(d)
	if err := d.end(); err != nil {
		return err
	}
	switch m, err := k.recv(); err {
	case nil:
		return broken("a message of kind %d after an answer's last", m.what)
	case io.EOF:
		return nil
	default:
		return err
	}
}

// Walk is what a listing leaves out, and who hears of what it cannot read.
type Walk struct {
	GitIgnore, OwnIgnore bool
	Include, Exclude     []string
	// Problem hears of what could not be read, in order with the entries; mode holds
	// the type alone. It may be nil.
	Problem func(p string, mode fs.FileMode, err error)
}

// List emits what is under root in the order of tree.Compare; a root that is
// not there is fs.ErrNotExist. ignored counts what was left out, a folder once.
func (c *Client) List(ctx context.Context, root string, w Walk, emit func(tree.Entry) error) (ignored int64, err error) {
	var flags byte
	if w.GitIgnore {
		flags |= walkGit
	}
	if w.OwnIgnore {
		flags |= walkOwn
	}
	if len(w.Include) > maxPatterns || len(w.Exclude) > maxPatterns {
		return 0, fmt.Errorf("more than %d patterns", maxPatterns)
	}
	header := appendStrings(appendStrings(append(appendString(nil, root), flags), w.Include), w.Exclude)
	err = c.do(ctx, svcList, header, nil, func(k *call) error {
		counted := false
		last := ""
		err := c.entries(k, func(e tree.Entry) error {
			if last != "" && tree.Compare(last, e.Path) >= 0 {
				return broken("a listing that is out of order")
			}
			last = e.Path
			return emit(e)
		}, w.Problem, func(n int64) { ignored, counted = n, true })
		if err == nil && !counted {
			err = broken("a listing ends early")
		}
		return err
	})
	return ignored, err
}

// entries reads a listing until its end.
func (c *Client) entries(k *call, emit func(tree.Entry) error, problem func(string, fs.FileMode, error), count func(int64)) error {
	if problem == nil {
		problem = func(string, fs.FileMode, error) {}
	}
	for {
		m, err := k.recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		d := &decoder{b: m.body}
		switch m.what {
		case whatEntries:
			if d, err = unpackList(c.codec, m.body); err != nil {
				return err
			}
			for f := (front{}); len(d.b) > 0; {
				e := f.entry(d)
				if d.err != nil {
					return d.err
				}
				if err := tree.CheckPath(e.Path); err != nil {
					problem(e.Path, e.Mode.Type(), err)
				} else if err := emit(e); err != nil {
					return err
				}
			}
		case whatProblem:
			p, mode := d.string(tree.MaxPath), d.mode()
			if perr := d.error(); d.err == nil && perr != nil {
				problem(p, mode.Type(), perr)
			}
		case whatCount:
			n := d.size()
			if count != nil {
				count(n)
			}
		default:
			return broken("a message of kind %d in a listing", m.what)
		}
		if err := d.end(); err != nil {
			return err
		}
		k.release(m.size())
		m.free()
	}
}

// Stat is List for these paths only; those that are not there are left out.
func (c *Client) Stat(ctx context.Context, root string, paths []string, emit func(tree.Entry) error) error {
	return c.do(ctx, svcStat, appendString(nil, root), nil, func(k *call) error {
		return c.asking(k, whatPaths, len(paths), pathsOf(paths), func() error { return c.entries(k, emit, nil, nil) })
	})
}

// Hash reads files on the instance and reports their SHA-256 in the order of paths.
func (c *Client) Hash(ctx context.Context, root string, paths []string, done func(path string, sum []byte, err error)) error {
	return c.do(ctx, svcHash, appendString(nil, root), nil, func(k *call) error {
		return c.asking(k, whatPaths, len(paths), pathsOf(paths), func() error {
			return c.answers(k, whatSums, len(paths), func(d *decoder, i int) {
				err := d.error()
				var sum []byte
				if err == nil {
					sum = d.bytes(sha256.Size)
				}
				if d.err == nil {
					done(paths[i], sum, err)
				}
			})
		})
	})
}

// Apply carries out items, none of them a Send, in their order.
func (c *Client) Apply(ctx context.Context, root string, items []Item, done func(Item, error)) error {
	add := func(f *front, b []byte, i int) []byte { return f.appendItem(b, &items[i]) }
	return c.do(ctx, svcApply, appendString(nil, root), nil, func(k *call) error {
		return c.asking(k, whatItems, len(items), add, func() error {
			return c.answers(k, whatDone, len(items), func(d *decoder, i int) {
				if err := d.error(); d.err == nil {
					done(items[i], err)
				}
			})
		})
	})
}

// adding appends the i-th thing that is asked for.
type adding func(f *front, b []byte, i int) []byte

func pathsOf(paths []string) adding {
	return func(f *front, b []byte, i int) []byte { return f.append(b, paths[i]) }
}

// asking sends n things in lists of kind what while the answers come.
func (c *Client) asking(k *call, what byte, n int, add adding, answers func() error) error {
	asked := make(chan error, 1)
	go func() {
		err := c.ask(k, what, n, add)
		if err != nil {
			k.cancel(err)
		}
		asked <- err
	}()
	err := answers()
	if err != nil {
		k.cancel(err)
	}
	if aerr := <-asked; err == nil {
		err = aerr
	}
	return err
}

func (c *Client) ask(k *call, what byte, n int, add adding) error {
	var b []byte
	var f front
	for i := range n {
		if b = add(&f, b, i); len(b) >= goodList || i == n-1 {
			if err := k.send(what, packList(c.codec, b)); err != nil {
				return err
			}
			b, f = b[:0], front{}
		}
	}
	return k.sendEnd(nil)
}

// answers has one read each of the n answers, which come in lists of kind what.
func (c *Client) answers(k *call, what byte, n int, one func(d *decoder, i int)) error {
	next := 0
	err := k.eachList(c.codec, what, func(d *decoder) error {
		for ; len(d.b) > 0; next++ {
			if next == n {
				return broken("more answers than were asked for")
			}
			if one(d, next); d.err != nil {
				return d.err
			}
		}
		return nil
	})
	if err == nil && next < n {
		err = early(io.EOF)
	}
	return err
}

// Space is the room, in bytes, of the file system that holds root, or of its
// nearest folder that is there.
func (c *Client) Space(ctx context.Context, root string) (free, total int64, err error) {
	err = c.do(ctx, svcSpace, appendString(nil, root), nil, func(k *call) error {
		return found(k, func(d *decoder) { free, total = d.size(), d.size() })
	})
	return free, total, err
}
