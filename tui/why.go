package tui

// Why an action cannot be done now: a sentence, or "" where it can.

import (
	"rentop/session"
)

func (a *app) whyReadonly() string {
	switch {
	case a.opt.player != nil:
		return a.T("why.replay")
	case a.opt.Readonly:
		return a.T("why.readonly")
	}
	return ""
}

func (a *app) whyGone(name *string) func() string {
	return func() string {
		if a.session(*name) == nil {
			if *name == "" {
				return a.T("why.noinstance")
			}
			return a.T("why.gone", *name)
		}
		return ""
	}
}

// whyNotHere: what needs a connection that answers.
func (a *app) whyNotHere(name *string) func() string {
	return func() string {
		if why := a.whyGone(name)(); why != "" {
			return why
		}
		if s := a.session(*name); s.State != session.Live {
			return a.T("why.notlive", s.Name, a.T("state."+string(s.State)))
		}
		return ""
	}
}

// whyNotAct: what changes something on the instance.
func (a *app) whyNotAct(name *string) func() string {
	return func() string {
		if why := a.whyReadonly(); why != "" {
			return why
		}
		return a.whyNotHere(name)()
	}
}

// whyNotConfig: what changes the list of instances.
func (a *app) whyNotConfig() string {
	if why := a.whyReadonly(); why != "" {
		return why
	}
	if a.v.Simulated {
		return a.T("why.demo")
	}
	return ""
}

// whyNotConfigured: what changes how an instance is configured.
func (a *app) whyNotConfigured(name *string) func() string {
	return func() string {
		if why := a.whyNotConfig(); why != "" {
			return why
		}
		return a.whyGone(name)()
	}
}

func (a *app) whyNotEdit(name *string) func() string {
	return func() string {
		if why := a.whyReadonly(); why != "" {
			return why
		}
		return a.whyGone(name)()
	}
}

func (a *app) whyNoStart(name *string) func() string {
	return func() string {
		if why := a.whyNotEdit(name)(); why != "" {
			return why
		}
		s := a.session(*name)
		switch {
		case !s.CanStart:
			return a.T("why.nostart", s.Name)
		case s.State != session.Stopped:
			return a.T("why.notstopped", s.Name)
		}
		return ""
	}
}
