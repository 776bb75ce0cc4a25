package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	stdsync "sync"
	"syscall"
	"time"

	"rentop/remote"
	"rentop/session/phrase"
)

// This file brings ports of an instance to this machine (Jupyter, TensorBoard) for as
// long as the session lives: over a new connection they are there again.

// Port is one of them.
type Port struct {
	There int         // the instance's
	Here  string      // the address on this machine; only this machine may use it
	Why   phrase.Text // why nothing comes through; nil where nothing is known against it
}

// ports are a session's.
type ports struct {
	mu   stdsync.Mutex // protects list and what its items hold
	list []*openPort
}

type openPort struct {
	Port
	cancel context.CancelFunc
	ended  chan struct{}
}

// find is the one of a port there, nil where there is none; it needs mu.
func (p *ports) find(there int) *openPort {
	for _, o := range p.list {
		if o.There == there {
			return o
		}
	}
	return nil
}

// errPort is wrapped where a port is none.
var errPort = errors.New("write a port of the instance, as 8888, or 9000:8888 for its port 8888 at 9000 here")

// parsePort reads [HERE:]THERE; here is 0 where it is not given.
func parsePort(s string) (here, there int, err error) {
	left, right, two := strings.Cut(strings.TrimSpace(s), ":")
	if !two {
		left, right = "0", left
	}
	for i, p := range []string{left, right} {
		n, err := strconv.ParseUint(strings.TrimSpace(p), 10, 16)
		if err != nil || n == 0 && (two || i == 1) {
			return 0, 0, fmt.Errorf("%q is no port: %w", remote.Short(s, 30), errPort)
		}
		if i == 0 {
			here = int(n)
		} else {
			there = int(n)
		}
	}
	return here, there, nil
}

// OpenPort brings a port here: "8888", or "9000:8888". Without an address of its own it
// has the same number, or any that is free where that one is taken. It returns once it
// listens.
func (s *Session) OpenPort(ctx context.Context, which string) (Port, error) {
	here, there, err := parsePort(which)
	if err != nil {
		return Port{}, err
	}
	s.ports.mu.Lock()
	if is := s.ports.find(there); is != nil {
		defer s.ports.mu.Unlock()
		return is.Port, nil
	}
	s.ports.mu.Unlock()
	conn, _, err := s.connected(ctx)
	if err != nil {
		return Port{}, err
	}
	life, cancel := context.WithCancel(s.ctx)
	p := &openPort{Port: Port{There: there}, cancel: cancel, ended: make(chan struct{})}
	listens, over := make(chan string, 1), make(chan error, 1)
	begin := func(local int) {
		s.owned.Go(func() {
			err := s.carryPort(life, conn, p, local, func(at string) { listens <- at })
			over <- err
		})
	}
	wanted := here
	if wanted == 0 {
		wanted = there
	}
	begin(wanted)
	for {
		select {
		case at := <-listens:
			s.ports.mu.Lock()
			if is := s.ports.find(there); is != nil { // asked for twice at once
				defer s.ports.mu.Unlock()
				cancel()
				return is.Port, nil
			}
			p.Here = at
			s.ports.list = append(s.ports.list, p)
			s.ports.mu.Unlock()
			s.owned.Go(func() { s.keepPort(life, p, over) })
			s.tellPorts()
			return p.Port, nil
		case err := <-over:
			if here == 0 && wanted != 0 && taken(err) { // someone else listens at that number here
				wanted = 0
				begin(0)
				continue
			}
			cancel()
			return Port{}, err
		}
	}
}

// taken says that a port of this machine cannot be had, by its number.
func taken(err error) bool {
	return errors.Is(err, errAddrInUse) || errors.Is(err, syscall.EACCES)
}

// carryPort is one connection's time with a port.
func (s *Session) carryPort(ctx context.Context, conn *remote.Conn, p *openPort, local int, ready func(string)) error {
	const loopback = "127.0.0.1:"
	return conn.Forward(ctx, loopback+strconv.Itoa(local), loopback+strconv.Itoa(p.There), ready, func(err error) {
		s.portWhy(p, phrase.Plain(err.Error()))
	})
}

// keepPort brings the port back after each cut, at the address that it had.
func (s *Session) keepPort(ctx context.Context, p *openPort, over <-chan error) {
	defer close(p.ended)
	err := <-over
	local, _ := strconv.Atoi(p.Here[strings.LastIndexByte(p.Here, ':')+1:])
	for ctx.Err() == nil {
		if !errors.Is(err, remote.ErrCut) { // the address was taken meanwhile: it may be free again
			s.portWhy(p, phrase.Plain(err.Error()))
			select {
			case <-time.After(portAgain):
			case <-ctx.Done():
				return
			}
		} else {
			s.portWhy(p, phrase.Say("port.away"))
		}
		var conn *remote.Conn
		if conn, _, err = s.await(ctx, false, false); err != nil { // in its own time
			continue
		}
		err = s.carryPort(ctx, conn, p, local, func(string) { s.portWhy(p, nil) })
	}
}

// portAgain is how long a port waits before it tries again to listen, or to be connected.
const portAgain = 2 * time.Second

func (s *Session) portWhy(p *openPort, why phrase.Text) {
	s.ports.mu.Lock()
	p.Why = why
	s.ports.mu.Unlock()
	s.tellPorts()
}

// ClosePort ends what OpenPort began; false where there is none. Connections over it end.
func (s *Session) ClosePort(which string) bool {
	_, there, err := parsePort(which)
	if err != nil {
		return false
	}
	s.ports.mu.Lock()
	i := slices.IndexFunc(s.ports.list, func(p *openPort) bool { return p.There == there })
	if i < 0 {
		s.ports.mu.Unlock()
		return false
	}
	p := s.ports.list[i]
	s.ports.list = slices.Delete(s.ports.list, i, i+1)
	s.ports.mu.Unlock()
	p.cancel()
	<-p.ended
	s.tellPorts()
	return true
}

// tellPorts puts them into the view.
func (s *Session) tellPorts() {
	s.ports.mu.Lock()
	list := make([]Port, 0, len(s.ports.list))
	for _, p := range s.ports.list {
		list = append(list, p.Port)
	}
	s.ports.mu.Unlock()
	slices.SortFunc(list, func(a, b Port) int { return a.There - b.There })
	s.send(func(st *state) { st.ports = list })
}
