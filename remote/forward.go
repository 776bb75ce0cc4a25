// Local port forwarding.

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// forwardLimit bounds the connections that one Forward carries at once.
const forwardLimit = 200

// Forward listens on local and carries each connection to remote as the instance
// sees it, until ctx ends or the connection does. Both are "port", "host:port" or
// ":port"; without a host it is the loopback. Port 0 of local is any free one. ready,
// if not nil, is called once with the address listened on; refused, if not nil, with
// why the instance did not take a connection: from any goroutine, for each.
func (c *Conn) Forward(ctx context.Context, local, remote string, ready func(addr string), refused func(error)) error {
	listen, err := forwardAddr(local, true)
	if err != nil {
		return err
	}
	target, err := forwardAddr(remote, false)
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("forward %s to the instance's %s: %w", local, remote, err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	defer ln.Close()
	wg.Go(func() {
		select {
		case <-c.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	if ready != nil {
		ready(ln.Addr().String())
	}
	room := make(chan struct{}, forwardLimit)
	for {
		conn, err := ln.Accept()
		if err != nil {
			select {
			case <-c.Done():
				return fmt.Errorf("forward %s: %w", local, ErrCut)
			default:
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() { // out of files: later
				select {
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			return fmt.Errorf("forward %s: %w", local, err)
		}
		select {
		case room <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-room }()
			if err := c.carry(ctx, conn, target); err != nil && refused != nil && ctx.Err() == nil {
				refused(err)
			}
		})
	}
}

// carry moves one connection's bytes; a target that refuses is its error, and to the
// person's program a closed connection, as with ssh -L.
func (c *Conn) carry(ctx context.Context, local net.Conn, target string) error {
	defer local.Close()
	there, err := c.Client().DialContext(ctx, "tcp", target)
	var no *ssh.OpenChannelError
	switch {
	case errors.As(err, &no) && no.Reason == ssh.Prohibited:
		return fmt.Errorf("the SSH server there forbids forwarding to %s", target)
	case errors.As(err, &no):
		return fmt.Errorf("nothing answers at %s there (%s); is the program running, and does it listen at that port?", target, Short(no.Message, 100))
	case err != nil:
		return fmt.Errorf("no connection to %s there: %w", target, err)
	}
	defer there.Close()
	stop := context.AfterFunc(ctx, func() { local.Close(); there.Close() })
	defer stop()
	done := make(chan struct{})
	go func() { // ends when either side is closed
		defer close(done)
		io.Copy(there, local)
		closeWrite(there)
	}()
	io.Copy(local, there)
	closeWrite(local)
	<-done
	return nil
}

func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	} else {
		c.Close()
	}
}

// forwardAddr completes an address; port 0 only where any will do.
func forwardAddr(s string, zero bool) (string, error) {
	host, port := "", s
	if strings.Contains(s, ":") {
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", fmt.Errorf("%q is no address: write 8888 or host:8888", s)
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !zero {
		return "", fmt.Errorf("%q has no port: write 8888 or host:8888", s)
	}
	if host == "" {
		host = "localhost"
		if zero {
			host = "127.0.0.1"
		}
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
