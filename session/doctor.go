package session

import (
	"context"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/session/phrase"
)

// Finding is one line of a doctor's report.
type Finding struct {
	OK   bool
	What phrase.Text // "tmux 3.3a"
	So   phrase.Text // what follows where it is missing
}

// Doctor says what an instance has, what it lacks, and what that means.
func (s *Session) Doctor(ctx context.Context) ([]Finding, error) {
	_, facts, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	found := findings(facts, s.plan(), s.prov() != nil)
	for _, k := range s.f.DoctorKeys() {
		if k.Kind == s.cfg().Provider {
			found = append(found, k.Finding)
		}
	}
	return found, nil
}

// KeyFinding says whether a provider's API key was found.
type KeyFinding struct {
	Kind string // as in provider = "…"
	Finding
}

// DoctorKeys looks for the API key of each provider. It asks no provider anything.
func (f *Fleet) DoctorKeys() []KeyFinding {
	var out []KeyFinding
	for _, api := range provider.APIs() {
		k := KeyFinding{Kind: api.Kind}
		if from, err := f.KeyFrom(api.Kind); err == nil {
			k.Finding = Finding{OK: true, What: phrase.Say("doctor.key", api.Title, from)}
		} else {
			k.Finding = Finding{What: phrase.Say("doctor.key.no", api.Title), So: phrase.Say("doctor.key.so", err, api.Console)}
		}
		out = append(out, k)
	}
	return out
}

func findings(f *remote.Facts, p billing.Plan, hasProvider bool) []Finding {
	var out []Finding
	is := func(what phrase.Text) { out = append(out, Finding{OK: true, What: what}) }
	lacks := func(what, so phrase.Text) { out = append(out, Finding{What: what, So: so}) }
	has := func(there bool, name string, none, so phrase.Text) {
		if there {
			is(phrase.Plain(name))
		} else {
			lacks(none, so)
		}
	}
	machine := phrase.Say("doctor.machine")
	if f.Container != "" {
		machine = phrase.Say("doctor.container", f.Container)
	}
	is(phrase.List(phrase.Plain(orUnknown(f.OS)), phrase.Plain(f.Arch), machine))
	is(phrase.Say("doctor.login", f.User, orUnknown(f.Shell), f.Home))
	has(f.Root, "root", phrase.Say("doctor.noroot"), phrase.Say("doctor.noroot.so"))
	has(f.Tmux != "", "tmux "+f.Tmux, phrase.Say("doctor.notmux"), phrase.Say("doctor.notmux.so"))
	has(f.Script, "script(1)", phrase.Say("doctor.noscript"), phrase.Say("doctor.noscript.so"))
	has(f.SFTP, "sftp", phrase.Say("doctor.nosftp"), phrase.Say("doctor.nosftp.so"))
	if f.Gzip {
		has(f.Zstd, "zstd", phrase.Say("doctor.nozstd"), phrase.Say("doctor.nozstd.so"))
	} else {
		has(f.Zstd, "zstd", phrase.Say("doctor.nopacker"), phrase.Say("doctor.nopacker.so"))
	}
	switch {
	case len(f.GPUs) > 0:
		is(phrase.Plain(fmt.Sprintf("%d × %s", len(f.GPUs), f.GPUs[0])))
	case f.NvidiaSMI != "":
		lacks(phrase.Say("doctor.nogpu"), phrase.Say("doctor.nogpu.so"))
	default:
		lacks(phrase.Say("doctor.nosmi"), phrase.Say("doctor.nosmi.so"))
	}
	if f.BannerNoise > 0 {
		is(phrase.Say("doctor.noise", f.BannerNoise))
	}
	if off := f.Clock.Sub(f.At); !f.Clock.IsZero() && (off > time.Minute || off < -time.Minute) {
		lacks(phrase.Say("doctor.clock", span(off.Abs())), phrase.Say("doctor.clock.so"))
	}
	if f.BoxStart.IsZero() {
		lacks(phrase.Say("doctor.nostart"), phrase.Say("doctor.nostart.so"))
	} else {
		is(phrase.Say("doctor.start"))
	}
	if p.PerHour == nil {
		lacks(phrase.Say("doctor.noprice"), phrase.Say("doctor.noprice.so"))
	}
	if hasProvider {
		is(phrase.Say("doctor.provider"))
	} else {
		lacks(phrase.Say("doctor.noprovider"), phrase.Say("doctor.noprovider.so"))
	}
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}
