package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	stdsync "sync"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

// Between tries to connect: from a second to a minute, jittered so that twenty
// sessions do not come back in one burst.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// keepConnected dials, serves the connection until it ends, and dials again.
func (s *Session) keepConnected() {
	delay := firstRetry
	for s.ctx.Err() == nil {
		if !s.mayDial() {
			s.waitRetry(0)
			continue
		}
		drain(s.nudge)
		began := s.f.opt.Now()
		err := s.connectOnce()
		if s.ctx.Err() != nil {
			return
		}
		if s.f.opt.Now().Sub(began) > lastRetry { // it was up for a while: begin anew
			delay = firstRetry
		}
		if remote.NeedsPerson(err) {
			s.set(Refused, fault(err))
			s.waitRetry(0)
			delay = firstRetry
			continue
		}
		if !s.f.opt.Live {
			s.lost(err, time.Time{})
			s.waitRetry(0) // a command tries once; asking again is its choice
			continue
		}
		wait := delay/2 + rand.N(delay)
		s.lost(err, s.f.opt.Now().Add(wait))
		if s.waitRetry(wait) {
			delay = firstRetry
		} else {
			delay = min(delay*2, lastRetry)
		}
	}
}

// lost says that the connection is gone or did not come about, unless the
// provider has told why.
func (s *Session) lost(err error, retryAt time.Time) {
	s.send(func(st *state) {
		if st.State == Stopped || st.State == Gone {
			return
		}
		st.become(Waiting, fault(err), s.f.opt.Now())
		st.RetryAt = retryAt
	})
}

// mayDial is false where the provider says that there is nothing to dial.
func (s *Session) mayDial() bool {
	ok := true
	ended := !s.sendWait(func(st *state) {
		if st.asked && (st.provider.State == provider.Stopped || st.provider.State == provider.Gone) {
			ok = false
			st.becomeProvider(s.f.opt.Now())
		}
	})
	if ended {
		return false
	}
	if !ok {
		s.link.down(fmt.Errorf("the provider says that it is %s", s.View().State), true)
	}
	return ok
}

// waitRetry waits for a nudge, or for d where it is above 0. It says whether
// it was a nudge.
func (s *Session) waitRetry(d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-s.nudge:
		return true
	case <-timer:
	case <-s.ctx.Done():
	}
	return false
}

func drain(ch chan struct{}) {
	select {
	case <-ch:
	default:
	}
}

// connectOnce dials, serves, and returns why it is over.
func (s *Session) connectOnce() error {
	s.set(Connecting, phrase.Say("state.lookup"))
	conn, err := s.dial(s.ctx)
	if err != nil {
		s.whyUnreachable()
		s.link.down(err, remote.NeedsPerson(err))
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	s.link.dialed(conn)
	s.set(Connecting, phrase.Say("state.probe"))
	facts, err := remote.Probe(ctx, conn)
	if err != nil {
		err = fmt.Errorf("look at the instance: %w", err)
		s.link.down(err, false)
		return err
	}
	s.firstContact(facts)
	s.link.up(conn, facts)
	s.send(func(st *state) {
		st.facts, st.RetryAt = facts, time.Time{}
		st.become(Live, nil, s.f.opt.Now())
	})
	var collectors stdsync.WaitGroup
	if s.f.opt.Live {
		s.collect(ctx, &collectors, conn, facts)
	}
	<-conn.Done()
	cancel()
	collectors.Wait()
	s.endUsage(s.ctx)
	err = conn.Err()
	if err == nil {
		err = errors.New("the connection was closed")
	}
	s.link.lost(err)
	return err
}

// whyUnreachable asks the provider: a machine that does not answer may have been
// stopped elsewhere, and is then billed as that.
func (s *Session) whyUnreachable() {
	if s.prov() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	if got, err := s.askProvider(ctx); err == nil {
		s.observeProvider(got)
	}
}

// dial opens the connection: to where the provider says that the instance is now,
// and where that cannot be reached, to what the config says.
func (s *Session) dial(ctx context.Context) (*remote.Conn, error) {
	line := s.cfg().SSH
	if line == "" {
		line = s.cfg().Host
	}
	var written remote.Target
	if line != "" {
		var err error
		if written, err = remote.ParseTarget(line); err != nil {
			return nil, err
		}
	}
	now, moved, err := s.whereNow(ctx, written)
	if err != nil {
		return nil, err
	}
	conn, err := s.dialTarget(ctx, now)
	if err == nil || !moved || line == "" || ctx.Err() != nil || remote.NeedsPerson(err) {
		return conn, err
	}
	return s.dialTarget(ctx, written)
}

func (s *Session) dialTarget(ctx context.Context, target remote.Target) (*remote.Conn, error) {
	ep, err := s.f.lookUp(ctx, target)
	if err != nil {
		return nil, err
	}
	s.send(func(st *state) { st.address = ep.Address() })
	var ask remote.Asker = asker{s}
	var limit remote.Throttle
	if !s.f.opt.Live { // a transfer uses this connection itself
		limit = s.limit
	}
	return remote.Dial(ctx, ep, remote.DialOptions{
		Throttle: limit,
		Instance: s.cfg().Name, UID: s.uid, Ask: ask, Secrets: s.f.opt.Secrets, HostKeys: s.f.keys,
		Memory: s.memory, AcceptHostKey: s.f.opt.AcceptHostKey,
		OnStage:  func(stage string) { s.set(Connecting, sayStage(stage)) },
		OnHealth: s.heard,
	})
}

// lookUp asks ssh_config. A fleet that starts would else run an ssh for each
// instance at once, and the first frame would wait for the processor.
func (f *Fleet) lookUp(ctx context.Context, t remote.Target) (remote.Endpoint, error) {
	select {
	case f.resolve <- struct{}{}:
	case <-ctx.Done():
		return remote.Endpoint{}, ctx.Err()
	}
	// A `Match exec` that hangs holds its place for a moment, and nobody else up.
	leave := stdsync.OnceFunc(func() { <-f.resolve })
	timer := time.AfterFunc(250*time.Millisecond, leave)
	defer timer.Stop()
	defer leave()
	return remote.Resolve(ctx, t, remote.ResolveOptions{Cache: &f.hosts})
}

// asker shows that the session waits for the person while a question is open.
type asker struct{ s *Session }

func (a asker) Ask(ctx context.Context, q remote.Question) (remote.Answer, error) {
	if own := a.s.f.opt.Asker; own != nil {
		return own.Ask(ctx, q)
	}
	a.s.set(Asking, phrase.Say("state.asks"))
	ans, err := a.s.f.ask.Ask(ctx, q)
	a.s.set(Connecting, phrase.Say("state.login"))
	return ans, err
}

// heard follows the connection's pulse.
func (s *Session) heard(h remote.Health) {
	s.sendQuietly(func(st *state) {
		if h.RTT > 0 {
			st.rtt = h.RTT
		}
		st.urgent = st.urgent || (h.State == remote.Alive) == (st.State == Stalled)
		switch {
		case h.State == remote.Stalled && st.State == Live:
			st.become(Stalled, phrase.Say("state.silent"), s.f.opt.Now())
		case h.State == remote.Alive && st.State == Stalled:
			st.become(Live, nil, s.f.opt.Now())
		}
	})
}
