package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/sync/tree"
)

// Check says what is wrong with an instance before it is written: "" or a
// sentence with its cure.
func (in Instance) Check() string {
	if what := CheckName(in.Name); what != "" {
		return what
	}
	_, what := in.check()
	return what
}

// CheckName says what is wrong with a name: it is shown in tables, used as a
// word in commands and as part of a file name.
func CheckName(name string) string {
	switch {
	case name == "":
		return "a name is needed: --name a100"
	case len(name) > 64:
		return "the name is longer than 64 bytes"
	case strings.HasPrefix(name, "-") || strings.HasPrefix(name, "."):
		return fmt.Sprintf("the name %q may not begin with %q", remote.Clean(name), name[:1])
	case remote.Clean(name) != name || strings.ContainsAny(name, ` /\:*?"<>|'`):
		return fmt.Sprintf("the name %q has a space or a character that file names cannot hold; use letters, digits, - and _", remote.Clean(name))
	}
	if why := tree.WindowsName(name); why != "" { // everywhere: a config is shared between computers
		return fmt.Sprintf("the name %q cannot name a folder everywhere: %s; take another", name, why)
	}
	return ""
}

// check returns the key at fault and what is wrong with it.
func (in Instance) check() (key, what string) {
	if what := CheckName(in.Name); what != "" {
		return "", what
	}
	switch {
	case in.SSH == "" && in.Host == "" && !in.rented():
		return "", `needs ssh = "the line your platform gives" or host = "an alias of ~/.ssh/config"`
	case in.SSH != "" && in.Host != "":
		return "host", "has both ssh and host; keep one"
	}
	if in.SSH != "" {
		if _, err := remote.ParseTarget(in.SSH); err != nil {
			return "ssh", err.Error()
		}
	}
	if in.Host != "" {
		if _, err := remote.ParseTarget(in.Host); err != nil {
			return "host", err.Error()
		}
	}
	switch in.Provider {
	case "":
		if in.Command != nil {
			return "command", `has command lines but not provider = "command"`
		}
	case "command":
		if in.Command == nil || in.Command.Status == "" {
			return "provider", `provider = "command" needs command = { status = "…", … }: without a status nothing can be proven`
		}
	case "demo": // only the demo's own instances have it
	default:
		api, ok := provider.FindAPI(in.Provider)
		switch {
		case !ok:
			return "provider", fmt.Sprintf(`the provider %q is not known to this version; leave it out for plain SSH, or use provider = "command" with your own lines; known are %s`, remote.Clean(in.Provider), strings.Join(provider.Kinds(), ", "))
		case in.ID == "":
			return "provider", fmt.Sprintf(`provider = %q needs id = "…", its own name for the instance: rentop import %s shows it`, in.Provider, in.Provider)
		case in.Command != nil:
			return "command", `has command lines but not provider = "command"`
		case api.Kind == "lambda" && in.Rate != nil && in.Rate.WhileStopped != "":
			return "rate", "has a price while stopped, but Lambda has no stop"
		}
	}
	if _, err := in.Plan(); err != nil {
		return "rate", err.Error()
	}
	if what := in.checkTraffic(); what != "" {
		return "traffic", what
	}
	if in.Budget != "" {
		if _, err := price("budget", in.Budget); err != nil {
			return "budget", err.Error()
		}
		if in.Rate == nil || in.Rate.Currency == "" {
			return "budget", "has a budget but no rate with a currency to count it in"
		}
	}
	if in.Idle != nil {
		if in.Idle.Below < 1 || in.Idle.Below > 100 {
			return "idle", "idle.below is a percentage from 1 to 100"
		}
		if d, err := time.ParseDuration(in.Idle.For); err != nil || d <= 0 {
			return "idle", fmt.Sprintf("idle.for is a time such as 20m, not %q", remote.Clean(in.Idle.For))
		}
		if in.Idle.Then != "" && in.Idle.Then != "warn" {
			return "idle", fmt.Sprintf(`idle.then is "warn", not %q: this version warns and never stops an instance by itself`, remote.Clean(in.Idle.Then))
		}
	}
	for _, p := range in.Sync {
		if p.Local == "" || p.Remote == "" {
			return "sync", "each sync pair needs local and remote"
		}
	}
	for _, a := range in.Artifacts {
		if what := a.check(in.Name); what != "" {
			return "artifacts", what
		}
	}
	for _, t := range in.Tags {
		if CheckName(t) != "" || strings.Contains(t, ",") {
			return "tags", fmt.Sprintf("a tag is a word of letters, digits, - and _, not %q", remote.Clean(t))
		}
	}
	for _, p := range in.LookIn {
		if p != "~" && !strings.HasPrefix(p, "~/") && !strings.HasPrefix(p, "/") {
			return "look_in", fmt.Sprintf(`look_in holds absolute paths on the instance, or ones below "~", not %q`, remote.Clean(p))
		}
	}
	for _, w := range in.Watch {
		if d, err := time.ParseDuration(w.StaleAfter); w.Path == "" || err != nil || d < time.Minute {
			return "watch", `each watch needs path and stale_after = "10m" (a minute or more)`
		}
	}
	return "", ""
}

// rented says whether a provider can tell where the instance is.
func (in Instance) rented() bool {
	_, ok := provider.FindAPI(in.Provider)
	return ok
}

func (f *File) checkShared() string {
	for pair, rate := range f.Money.Rates {
		from, to, ok := strings.Cut(pair, "_")
		if !ok || len(from) != 3 || len(to) != 3 {
			return fmt.Sprintf(`money.rates.%s: write pairs as USD_CNY = "7.10"`, remote.Clean(pair))
		}
		if r, err := billing.ParseDecimal(rate); err != nil || r.Sign() <= 0 {
			return fmt.Sprintf("money.rates.%s: %q is not a positive decimal", remote.Clean(pair), remote.Clean(rate))
		}
	}
	if what := f.Alarms.check(); what != "" {
		return what
	}
	if what := f.Transfer.check(); what != "" {
		return what
	}
	if what := f.checkBuckets(); what != "" {
		return what
	}
	return f.UI.check()
}

func (u UI) check() string {
	if !slices.Contains([]string{"", "auto", "en", "zh"}, u.Language) {
		return fmt.Sprintf("ui.language is auto, en or zh, not %q", remote.Clean(u.Language))
	}
	if !slices.Contains([]string{"", "unicode", "ascii"}, u.Glyphs) {
		return fmt.Sprintf("ui.glyphs is unicode or ascii, not %q", remote.Clean(u.Glyphs))
	}
	for action, keys := range u.Keys {
		if len(keys) == 0 || slices.Contains(keys, "") {
			return fmt.Sprintf(`ui.keys.%s needs a key or more, as in ["R"]`, remote.Clean(action))
		}
	}
	return ""
}
