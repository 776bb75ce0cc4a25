package command

// The flags that describe an instance, for add and edit.

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rentop/session/billing"
	"rentop/session/config"
)

// details are flags; only those that were given change an instance.
type details struct {
	price, currency, billed, minimum, whileStopped string
	diskGB                                         int64
	diskPrice                                      string
	budget, provider, id                           string
	lines, artifacts, pairs, lookIn, tags          []string
}

func (d *details) flags(f *pflag.FlagSet) {
	f.StringVar(&d.price, "price", "", "what it costs while it runs, such as `8/h`, ¥8/h or 0.0002/s")
	f.StringVar(&d.currency, "currency", "", "the price's currency: `CNY`, USD, …")
	f.StringVar(&d.billed, "billed", "", "what is counted: `second`, minute (started), minute-exact, hour (started) or hour-exact")
	f.StringVar(&d.minimum, "minimum", "", "the least that each start is billed, such as `60s`")
	f.StringVar(&d.whileStopped, "while-stopped", "", "what it costs an hour while stopped, such as `0.02`")
	f.Int64Var(&d.diskGB, "disk-gb", 0, "the size of its billed disk in `GB`")
	f.StringVar(&d.diskPrice, "disk-price", "", "what the disk costs for each GB and month, such as `0.35`")
	f.StringVar(&d.budget, "budget", "", "the `amount` to warn at")
	f.StringVar(&d.provider, "provider", "", "who can stop and destroy it: `command`, or one of rentop import; empty for plain SSH")
	f.StringVar(&d.id, "id", "", "the provider's own name for it")
	f.StringArrayVar(&d.lines, "command", nil, "a shell line of the provider command, as `status='LINE'`; also start, stop, destroy, snapshot, leftovers")
	f.StringArrayVar(&d.artifacts, "artifact", nil, "a path there that must exist here before it may go, as `PATH=LOCAL`")
	f.StringArrayVar(&d.lookIn, "look-in", nil, "where your files lie there, such as `~`; default: every writable local file system")
	f.StringArrayVar(&d.tags, "tag", nil, "a `WORD` by which the bill can be added up; again for more, empty for none")
	f.StringArrayVar(&d.pairs, "sync", nil, "two folders that belong together, as `LOCAL=REMOTE`")
}

// apply changes in by the flags that c was given.
func (d *details) apply(c *cobra.Command, in *config.Instance) error {
	given := c.Flags().Changed
	if given("price") || given("currency") || given("billed") || given("minimum") || given("while-stopped") {
		if err := d.rate(given, in); err != nil {
			return err
		}
	}
	if given("disk-gb") || given("disk-price") {
		disk := config.Disk{}
		if in.Disk != nil {
			disk = *in.Disk
		}
		if given("disk-gb") {
			disk.GB = d.diskGB
		}
		if given("disk-price") {
			disk.PerGBMonth = d.diskPrice
		}
		in.Disk = &disk
	}
	if given("budget") {
		in.Budget = d.budget
	}
	if given("provider") {
		in.Provider = d.provider
		if d.provider != "command" {
			in.Command = nil
		}
	}
	if given("id") {
		in.ID = d.id
	}
	if given("command") {
		if err := d.command(in); err != nil {
			return err
		}
	}
	if given("artifact") {
		in.Artifacts = nil
		for _, a := range d.artifacts {
			path, to, ok := strings.Cut(a, "=")
			if !ok {
				return badUsage("--artifact %q: write it as PATH=TO, such as '~/out/**=./out' or '~/ckpt=s3://runs/7b'", a)
			}
			if to != "" && !strings.HasPrefix(to, "~") && !config.Elsewhere(to) { // a relative one is meant from here
				abs, err := filepath.Abs(to)
				if err != nil {
					return fmt.Errorf("--artifact %q: %w", a, err)
				}
				to = abs
			}
			in.Artifacts = append(in.Artifacts, config.Artifact{Path: path, To: to})
		}
	}
	if given("look-in") {
		in.LookIn = d.lookIn
	}
	if given("tag") {
		in.Tags = slices.DeleteFunc(d.tags, func(t string) bool { return t == "" })
	}
	if given("sync") {
		in.Sync = nil
		for _, p := range d.pairs {
			local, remote, ok := strings.Cut(p, "=")
			if !ok {
				return badUsage("--sync %q: write it as LOCAL=REMOTE, such as '.=~/project'", p)
			}
			in.Sync = append(in.Sync, config.Pair{Local: local, Remote: remote})
		}
	}
	return nil
}

func (d *details) rate(given func(string) bool, in *config.Instance) error {
	r := config.Rate{}
	if in.Rate != nil {
		r = *in.Rate
	}
	if given("price") {
		perHour, currency, err := billing.ParsePrice(d.price)
		if err != nil {
			return badUsage("--price: %v", err)
		}
		if currency != "" && given("currency") && !strings.EqualFold(currency, d.currency) {
			return badUsage("--price says %s and --currency says %s; keep one", currency, d.currency)
		}
		r.PerHour = billing.Amount{Value: perHour}.Exact(9)
		if currency != "" {
			r.Currency = currency
		}
	}
	if given("currency") {
		code, err := billing.ParseCurrency(d.currency)
		if err != nil {
			return badUsage("--currency: %v", err)
		}
		r.Currency = code
	}
	if r.PerHour != "" && r.Currency == "" {
		return badUsage("the price needs its currency: --currency CNY, or --price '¥8/h'")
	}
	if given("billed") {
		r.Billed = d.billed
	}
	if given("minimum") {
		r.Minimum = d.minimum
	}
	if given("while-stopped") {
		r.WhileStopped = d.whileStopped
	}
	in.Rate = &r
	return nil
}

func (d *details) command(in *config.Instance) error {
	c := config.Command{}
	if in.Command != nil {
		c = *in.Command
	}
	to := map[string]*string{
		"status": &c.Status, "start": &c.Start, "stop": &c.Stop,
		"destroy": &c.Destroy, "snapshot": &c.Snapshot, "leftovers": &c.Leftovers,
	}
	for _, l := range d.lines {
		name, line, ok := strings.Cut(l, "=")
		if !ok || to[name] == nil {
			return badUsage("--command %q: write it as status='LINE'; the names are status, start, stop, destroy, snapshot and leftovers", l)
		}
		*to[name] = line
	}
	in.Provider, in.Command = "command", &c
	return nil
}

// login puts a pasted line where it belongs: one word that is neither user@host
// nor host:port may be an alias of ssh_config.
func login(words []string, in *config.Instance) {
	line := strings.TrimSpace(strings.Join(words, " "))
	in.SSH, in.Host = line, ""
	if !strings.ContainsAny(line, " @:/") {
		in.SSH, in.Host = "", line
	}
}
