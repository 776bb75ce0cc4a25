package session

import (
	"context"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/billing"
)

// Finding is one line of a doctor's report.
type Finding struct {
	OK   bool
	What string // "tmux 3.3a"
	So   string // what follows where it is missing
}

// Doctor says what an instance has, what it lacks, and what that means.
func (s *Session) Doctor(ctx context.Context) ([]Finding, error) {
	_, facts, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	found := findings(facts, s.plan(), s.prov() != nil, s.f.opt.Now())
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
			k.Finding = Finding{OK: true, What: "the API key of " + api.Title + " is in " + from}
		} else {
			k.Finding = Finding{What: "no API key of " + api.Title, So: err.Error() + "; it is made at " + api.Console}
		}
		out = append(out, k)
	}
	return out
}

func findings(f *remote.Facts, p billing.Plan, hasProvider bool, now time.Time) []Finding {
	var out []Finding
	say := func(ok bool, what, so string) {
		if ok {
			so = ""
		}
		out = append(out, Finding{ok, what, so})
	}
	have := func(ok bool, name, so string) {
		if ok {
			say(true, name, "")
		} else {
			say(false, "no "+name, so)
		}
	}
	machine := "virtual machine or bare metal"
	if f.Container != "" {
		machine = "container (" + f.Container + ")"
	}
	say(true, fmt.Sprintf("%s, %s, %s", orUnknown(f.OS), f.Arch, machine), "")
	say(true, fmt.Sprintf("login %s with %s, home %s", f.User, orUnknown(f.Shell), f.Home), "")
	have(f.Root, "root", "system packages and other users' files cannot be read")
	if f.Tmux != "" {
		say(true, "tmux "+f.Tmux, "")
	} else {
		say(false, "no tmux", "jobs run detached and survive, but cannot be attached; the terminal ends with the connection")
	}
	have(f.Script, "script(1)", "job logs are written through tee: programs may buffer their output")
	have(f.SFTP, "sftp", "large files go through exec, which is slower to resume")
	switch {
	case f.Zstd:
		say(true, "zstd", "")
	case f.Gzip:
		say(false, "no zstd", "transfers are compressed with gzip, which is slower and larger")
	default:
		say(false, "neither zstd nor gzip", "transfers are not compressed")
	}
	switch {
	case len(f.GPUs) > 0:
		say(true, fmt.Sprintf("%d × %s", len(f.GPUs), f.GPUs[0]), "")
	case f.NvidiaSMI != "":
		say(false, "nvidia-smi shows no GPU", "see the panel for its message")
	default:
		say(false, "no nvidia-smi", "the panel shows the host only")
	}
	if f.BannerNoise > 0 {
		say(true, fmt.Sprintf("the login prints %d bytes of its own (hidden by a marker)", f.BannerNoise), "")
	}
	if off := f.Clock.Sub(f.At); !f.Clock.IsZero() && (off > time.Minute || off < -time.Minute) {
		say(false, "the instance's clock is "+span(off.Abs())+" off", "file times there are not comparable with yours")
	}
	say(!f.BoxStart.IsZero(), "start time", "the meter counts from first contact")
	if p.PerHour == nil {
		say(false, "no price", "the meter shows ?: set rate = { per_hour = \"…\", currency = \"…\" }")
	}
	have(hasProvider, "provider", "rentop checks a release but cannot stop or destroy the instance itself")
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}
