package far

import (
	"context"
	"errors"
	"io"
	"runtime"

	"rentop/remote/agent/link"
	"rentop/sync/codec"
	"rentop/sync/tree"
)

// This file is the helper's end: it answers calls until the link ends.

// The services.
const (
	svcResolve = 1 + iota
	svcList
	svcStat
	svcHash
	svcApply
	svcReceive
	svcSend
	svcSpace
)

// What the messages of a call hold; content's own are in content.go.
const (
	whatPaths   = 1 + iota // a packed list of paths
	whatEntries            // a packed list of entries
	whatProblem            // a path and why it could not be read
	whatCount              // a number: of what rules left out
	whatSums               // a packed list of SHA-256 or errors, in the order of the paths
	whatItems              // a packed list of items
	whatDone               // errors or none, in the order of the items
	whatFound              // the one message of an answer: a path and what is there, or a disk's room
)

type server struct {
	codec   *codec.Codec
	workers int
}

// Serve answers the calls of one client until the link ends or ctx does; then
// it closes the link. It returns nil where the client ended well.
func Serve(ctx context.Context, l link.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := workers()
	s := &server{codec: codec.New(n), workers: n}
	c := newConn(l, s.call)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err := c.read(ctx)
	cancel()
	l.Close()
	c.served.Wait()
	var p *ProtocolError
	if errors.As(c.cause(), &p) {
		return p
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// workers is how many goroutines pack, unpack and hash at once: with more, no SSH
// connection is faster, and each has up to 45 MiB for a strong level.
func workers() int { return max(2, min(runtime.GOMAXPROCS(0), maxWorkers)) }

const maxWorkers = 6

func (s *server) call(k *call) {
	err := s.answer(k)
	k.sendEnd(err)
	k.close()
	var p *ProtocolError
	if errors.As(err, &p) {
		k.c.end(err)
		k.c.l.Close()
	}
}

func (s *server) answer(k *call) error {
	d := &decoder{b: k.header}
	root := d.string(tree.MaxPath)
	switch k.service {
	case svcResolve:
		if err := d.end(); err != nil {
			return err
		}
		return s.resolve(k, root)
	case svcList:
		return s.list(k, root, d)
	}
	if err := d.end(); err != nil {
		return err
	}
	switch k.service {
	case svcStat:
		return s.stat(k, root)
	case svcHash:
		return s.hash(k, root)
	case svcApply:
		return s.apply(k, root)
	case svcSpace:
		return s.space(k, root)
	case svcReceive:
		return s.receive(k, root)
	case svcSend:
		return s.send(k, root)
	}
	return broken("a call of the unknown service %d", k.service)
}
