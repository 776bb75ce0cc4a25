package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote/provider"
	"rentop/session/config"
	"rentop/session/phrase"
)

// provider is who can stop and destroy the instance; nil for plain SSH.
func (f *Fleet) provider(in config.Instance) provider.Provider {
	if p := f.opt.Providers[in.Provider]; p != nil {
		return p
	}
	if in.Provider == "command" && in.Command != nil {
		p, err := provider.Command(provider.CommandOptions{Name: in.Name, Lines: provider.Lines(*in.Command)})
		if err == nil { // a missing status line was refused with the config
			return p
		}
	}
	return f.rentals.get(in.Provider)
}

// providerID is what the provider calls the instance.
func (s *Session) providerID() string {
	if s.cfg().ID != "" {
		return s.cfg().ID
	}
	return s.cfg().Name
}

const providerEvery = 20 * time.Second

// watchProvider asks the provider now and then: only it knows that an instance
// was stopped or destroyed behind our back.
func (s *Session) watchProvider() {
	var written provider.Status
	var writtenAt time.Time
	every(s.ctx, providerEvery, func() {
		if s.prov() == nil {
			return
		}
		got, err := s.askProvider(s.ctx)
		if err != nil {
			return // nothing is known: keep what was
		}
		now := s.f.opt.Now()
		changed := got.State != written.State || !got.StartedAt.Equal(written.StartedAt)
		if changed || now.Sub(writtenAt) >= observeEvery {
			s.observeProvider(got)
			written, writtenAt = got, now
		}
	})
}

// askProvider reads the provider's word and takes it into the state.
func (s *Session) askProvider(ctx context.Context) (provider.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, err := s.prov().Status(ctx, s.providerID())
	if err != nil {
		return got, err
	}
	cameBack := false
	made := s.sendWait(func(st *state) {
		was := st.provider.State
		st.provider, st.asked = got, true
		if got.State == provider.Running && (was == provider.Stopped || was == provider.Gone) {
			cameBack = true
		}
		st.becomeProvider(s.f.opt.Now())
	})
	if made && cameBack && s.f.opt.Live {
		s.Nudge()
	}
	return got, nil
}

// becomeProvider shows what the provider says where no connection says otherwise.
func (st *state) becomeProvider(now time.Time) {
	if st.State == Live {
		return
	}
	switch st.provider.State {
	case provider.Stopped:
		st.become(Stopped, phrase.Say("state.provider"), now)
	case provider.Gone:
		st.saved = Saved{} // there is nothing left to be saved
		st.become(Gone, phrase.Say("state.provider"), now)
	case provider.Running:
		if st.State == Stopped || st.State == Gone {
			st.become(Idle, phrase.Say("state.again"), now)
		}
	}
}

// Start has the provider start a stopped instance, and connects.
func (s *Session) Start(ctx context.Context) error {
	if s.prov() == nil {
		return fmt.Errorf("%s: %w", s.cfg().Name, errNoProvider)
	}
	if !s.prov().Can().Start {
		return fmt.Errorf("%s: start: %w", s.cfg().Name, provider.ErrUnsupported)
	}
	if err := s.prov().Start(ctx, s.providerID()); err != nil {
		return fmt.Errorf("%s: start: %w", s.cfg().Name, err)
	}
	for wait := time.Second; ; wait = min(2*wait, 15*time.Second) {
		got, err := s.askProvider(ctx)
		if err == nil && got.State == provider.Running {
			s.observeProvider(got)
			if s.f.opt.Live {
				s.Nudge()
			}
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%s: the provider accepted the start but does not say that it runs (it is %s): %w", s.cfg().Name, s.View().State, ctx.Err())
		}
	}
}

// errNoProvider says what to do where rentop cannot act on the machine itself.
var errNoProvider = errors.New(`it has no provider, so rentop cannot start, stop or destroy it; do it in the provider's console, or set provider = "command" with your own lines`)

// can says what the provider allows, for the view.
func (s *Session) can() provider.Can {
	if s.prov() == nil {
		return provider.Can{}
	}
	return s.prov().Can()
}
