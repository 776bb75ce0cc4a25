// From the approval to the provider's proof. The rules: the request is in the
// journal before it is made; it is made once for one approval; only the
// provider's own word ends it.

package release

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

// approved re-checks and tears down. done is false where it must start over.
func (m *Machine) approved(ctx context.Context) (done bool, err error) {
	if err := m.log(ctx, stepRecheck, nil); err != nil {
		return true, err
	}
	changed, err := m.recheck(ctx)
	if err != nil {
		return false, err
	}
	if m.isCancelled() {
		return true, m.cancel(ctx)
	}
	if len(changed) > 0 {
		return false, m.startOver(ctx, changed)
	}
	for i, c := range m.v.Checks {
		if c.State == Failed || c.State == Unknown {
			m.v.Checks[i].State = Waived
		}
	}
	if err := m.log(ctx, stepProven, checkData{Summary: m.v.Shown}); err != nil {
		return true, err
	}
	if m.d.Provider == nil {
		return true, m.handOver(ctx)
	}
	if other, err := m.otherRun(ctx); err != nil || other {
		if err != nil {
			return true, err
		}
		return false, m.startOver(ctx, phrase.Say("why.another"))
	}
	if done, err := m.alreadyThere(ctx); done || err != nil {
		return true, err
	}
	if st, err := m.status(ctx); err == nil && st.State == provider.Changing {
		// Perhaps an earlier teardown at work: nothing is requested on top of it.
		if st, err = m.poll(ctx, m.d.Timing.Prove, settled); err != nil {
			return true, err
		}
		if m.reached(st.State) {
			return true, m.finish(ctx, st)
		}
		return false, m.startOver(ctx, phrase.Say("why.changing", word(st)))
	}
	return m.tearDown(ctx)
}

func settled(s provider.State) bool { return s != provider.Changing }

// handOver ends a release of plain SSH: rentop can prove that nothing is lost,
// but neither end the rental nor see that it ended.
func (m *Machine) handOver(ctx context.Context) error {
	if err := m.log(ctx, stepHanded, nil); err != nil {
		return err
	}
	m.v.Why = m.ofGoal("why.hand.stop", "why.hand.destroy")
	m.v.Cost = m.d.Cost(ctx)
	m.phase(Stuck)
	return fmt.Errorf("release %s: checked, not torn down: %w", m.d.Instance, ErrHandedOver)
}

// otherRun says whether a run that began after this one requested a teardown.
func (m *Machine) otherRun(ctx context.Context) (bool, error) {
	entries, err := m.d.Journal.Load(ctx)
	if err != nil {
		return false, fmt.Errorf("release %s: read the journal before the teardown: %w; nothing was torn down", m.d.Instance, err)
	}
	begun := false
	for _, e := range entries {
		if e.Run == m.run {
			begun = true
		} else if begun && e.Step == stepTeardown && m.d.Clock.Now().Sub(e.At) < m.d.Timing.Prove {
			return true, nil
		}
	}
	return false, nil
}

// tearDown makes the one request. From here on nothing is cancelled.
func (m *Machine) tearDown(ctx context.Context) (done bool, err error) {
	t := teardownData{Goal: m.goal, ID: m.d.ProviderID}
	if err := m.log(ctx, stepTeardown, t); err != nil {
		return true, err
	}
	m.v.Why = nil
	m.phase(Tearing)
	err = m.call(ctx, func(ctx context.Context) error {
		if m.goal == Stop {
			return m.d.Provider.Stop(ctx, m.d.ProviderID)
		}
		return m.d.Provider.Destroy(ctx, m.d.ProviderID)
	})
	deadline := m.d.Timing.Prove
	if err != nil {
		t.Error = remote.Short(err.Error(), 300)
		deadline = m.d.Timing.Refused
	}
	// The answer is written also where ctx ended during the call.
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if err := m.log(after, stepAnswer, t); err != nil {
		return true, err
	}
	return m.proveOrStuck(ctx, deadline, t.Error)
}

// resumeTeardown takes up a run whose teardown was requested before a crash.
// The provider is asked; it is not asked to do it again.
func (m *Machine) resumeTeardown(ctx context.Context) (done bool, err error) {
	st, err := m.poll(ctx, m.d.Timing.Grace, m.reached)
	if err != nil {
		return true, err
	}
	switch {
	case m.reached(st.State):
		return true, m.finish(ctx, st)
	case st.State == provider.Changing || st.State == provider.Unknown:
		return m.proveOrStuck(ctx, m.d.Timing.Prove, "")
	}
	asked := phrase.Say("why.asked", word(st))
	if m.accepted {
		asked = phrase.Say("why.accepted", word(st))
	}
	return false, m.startOver(ctx, asked)
}

// alreadyThere ends the run where the provider says that there is nothing left
// to do. "Gone" about an instance that answers is not believed: another
// account's key or a wrong id would say the same.
func (m *Machine) alreadyThere(ctx context.Context) (bool, error) {
	if m.d.Provider == nil {
		return false, nil
	}
	st, err := m.status(ctx)
	if err != nil || !m.reached(st.State) || m.answers(ctx) {
		return false, ctx.Err()
	}
	return true, m.finish(ctx, st)
}

// answers says whether the instance still runs what it is given.
func (m *Machine) answers(ctx context.Context) bool {
	if m.d.Runner == nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	return m.d.Runner.Run(ctx, remote.Cmd{Script: "exit 0"}) == nil
}

// proveOrStuck asks until the provider confirms. Stuck, it goes on asking (with
// Deps.Stay) until it confirms or the person decides.
func (m *Machine) proveOrStuck(ctx context.Context, deadline time.Duration, refusal string) (done bool, err error) {
	m.phase(Proving)
	st, err := m.poll(ctx, deadline, m.reached)
	if err != nil {
		return true, err
	}
	for {
		if m.reached(st.State) {
			return true, m.finish(ctx, st)
		}
		if say := m.sayStuck(st, refusal); say.String() != m.v.Why.String() || m.v.Phase != Stuck {
			m.v.Why = say
			if err := m.log(ctx, stepStuck, whyData{say.String()}); err != nil {
				return true, err
			}
		}
		m.phase(Stuck)
		if !m.d.Stay {
			return true, fmt.Errorf("release %s: %s: %w", m.d.Instance, m.v.Why, ErrStuck)
		}
		d, heard, err := m.stuckWait(ctx)
		switch {
		case err != nil:
			return true, err
		case heard && d.Kind == DecideCancel:
			return true, m.cancel(ctx)
		case heard:
			return false, m.startOver(ctx, phrase.Say("why.unconfirmed"))
		}
		if st, err = m.poll(ctx, 0, m.reached); err != nil {
			return true, err
		}
	}
}

// stuckWait waits for a decision or for the next question to the provider.
func (m *Machine) stuckWait(ctx context.Context) (d Decision, heard bool, err error) {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	slept := make(chan struct{})
	go func() {
		defer close(slept)
		_ = m.d.Clock.Sleep(wait, m.d.Timing.Stay) // its only error is wait's end
	}()
	defer func() { stop(); <-slept }()
	for {
		select {
		case d := <-m.decisions:
			if d.Kind == DecideAgain || d.Kind == DecideCancel {
				return d, true, nil
			}
		case <-slept:
			return d, false, ctx.Err()
		case <-ctx.Done():
			return d, false, ctx.Err()
		}
	}
}

func (m *Machine) sayStuck(st provider.Status, refusal string) phrase.Text {
	s := m.ofGoal("stuck.stop", "stuck.destroy", word(st))
	if refusal != "" {
		s = m.ofGoal("refused.stop", "refused.destroy", refusal, word(st))
	}
	return s.Then(phrase.Say("stuck.cure"))
}

// ofGoal says one thing about a stop and another about a destroy.
func (m *Machine) ofGoal(stop, destroy phrase.ID, args ...any) phrase.Text {
	if m.goal == Stop {
		return phrase.Say(stop, args...)
	}
	return phrase.Say(destroy, args...)
}

// word is what the provider said, in quotes.
func word(st provider.Status) string {
	if st.Detail != "" {
		return strconv.Quote(remote.Short(st.Detail, 200))
	}
	return strconv.Quote(string(st.State))
}

// poll asks with backoff until an answer is enough or the deadline passed, and
// returns the last answer; Unknown with the error as its detail where there was
// none. Its error is ctx's or the journal's. A single question (deadline 0) is not
// journaled: a release that is stuck over night would fill the ledger with them.
func (m *Machine) poll(ctx context.Context, deadline time.Duration, enough func(provider.State) bool) (provider.Status, error) {
	if deadline > 0 {
		if err := m.log(ctx, stepAsk, nil); err != nil {
			return provider.Status{}, err
		}
	}
	end := m.d.Clock.Now().Add(deadline)
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		st, err := m.status(ctx)
		if ctx.Err() != nil {
			return st, ctx.Err()
		}
		if err != nil {
			st = provider.Status{State: provider.Unknown, Detail: "no answer: " + remote.Short(err.Error(), 300)}
		}
		left := end.Sub(m.d.Clock.Now())
		if enough(st.State) || left <= 0 {
			return st, nil
		}
		if err := m.d.Clock.Sleep(ctx, min(wait, left)); err != nil {
			return st, err
		}
	}
}

func (m *Machine) status(ctx context.Context) (st provider.Status, err error) {
	err = m.call(ctx, func(ctx context.Context) error {
		st, err = m.d.Provider.Status(ctx, m.d.ProviderID)
		return err
	})
	if err != nil {
		st = provider.Status{State: provider.Unknown}
	}
	return st, err
}

func (m *Machine) call(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, m.d.Timing.Call)
	defer stop()
	return f(ctx)
}

// finish records the provider's word and shows the review.
func (m *Machine) finish(ctx context.Context, st provider.Status) error {
	if err := m.log(ctx, stepProof, proofData{State: string(st.State), Detail: remote.Short(st.Detail, 200)}); err != nil {
		return err
	}
	m.v.Ended, m.v.Proof = st.State, phrase.Say("proof.gone", m.d.kind())
	if st.State == provider.Stopped {
		m.v.Proof = phrase.Say("proof.stopped", m.d.kind())
	}
	if st.Detail != "" && st.Detail != string(st.State) {
		m.v.Proof = m.v.Proof.Then(phrase.Say("proof.detail", remote.Short(st.Detail, 200)))
	}
	m.v.Why = nil
	if st.State == provider.Stopped && st.Billed != nil && *st.Billed {
		m.v.Why = phrase.Say("why.charged")
	}
	if m.answers(ctx) {
		m.v.Why = phrase.Say("why.answers", word(st))
	}
	if f := m.checkCosts(ctx); f.State != Unknown {
		m.round[CheckCosts] = f
	}
	m.v.Cost = m.d.Cost(ctx)
	if m.d.Review != nil {
		m.v.Review = m.d.Review(ctx)
	}
	if err := m.log(ctx, stepDone, nil); err != nil {
		return err
	}
	m.phase(Review)
	return nil
}
