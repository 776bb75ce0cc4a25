package command

// What an account at a provider rents, and adding it to the config.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session"
	"rentop/session/config"
)

// imported is one instance in import --json. Names are added, never changed.
type imported struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	State        string       `json:"state"`
	Detail       string       `json:"detail"` // the provider's own word
	GPU          string       `json:"gpu"`
	GPUs         *int         `json:"gpus"`     // null is not known
	PerHour      *json.Number `json:"per_hour"` // while it runs; null is not known
	WhileStopped *json.Number `json:"while_stopped"`
	Currency     string       `json:"currency"`
	Spot         bool         `json:"spot"`
	Region       string       `json:"region"`
	StartedAt    *time.Time   `json:"started_at"`
	CreatedAt    *time.Time   `json:"created_at"`
	Ends         *time.Time   `json:"ends"` // when the provider ends it by itself
	SSH          string       `json:"ssh"`  // "" where it has no address now
	Added        string       `json:"added_as"`
	New          bool         `json:"new"` // added by this run
}

// account is import --json.
type account struct {
	Provider  string       `json:"provider"`
	Balance   *json.Number `json:"balance"` // null where the provider does not tell
	Credit    *json.Number `json:"credit"`
	Currency  *string      `json:"currency"`
	Instances []imported   `json:"instances"`
}

func (a *app) importCommand() *cobra.Command {
	var all, saveKey bool
	var name string
	c := &cobra.Command{
		Use:   "import PROVIDER [ID…] [flags]",
		Short: "List what you rent at a provider, and add it",
		Long: "Lists what your account at a provider rents: " + strings.Join(provider.Kinds(), ", ") + ".\n" +
			"With ids, or --all, it adds those instances to the config; what is there already stays.\n" +
			"The API key comes from an environment variable or the keyring (see docs/providers.md),\n" +
			"never from the config or the command line.",
		Example:           "  rentop import runpod\n  rentop import runpod 7h9k2m4n6p --name a100\n  rentop import vast --all\n  rentop import lambda --save-key",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeKinds,
	}
	asJSON := jsonFlag(c)
	c.Flags().BoolVar(&all, "all", false, "add all of them")
	c.Flags().StringVar(&name, "name", "", "what you call it, where one id is given (`NAME`)")
	c.Flags().BoolVar(&saveKey, "save-key", false, "ask for the API key, or read it from standard input, and keep it in the keyring")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		kind, ids := args[0], args[1:]
		api, ok := provider.FindAPI(kind)
		switch {
		case !ok:
			return badUsage("the provider %q is not known; there are %s", remote.Clean(kind), strings.Join(provider.Kinds(), ", "))
		case name != "" && len(ids) != 1:
			return badUsage("--name is for one id: rentop import %s ID --name %s", kind, remote.Clean(name))
		case all && len(ids) > 0:
			return badUsage("give ids or --all, not both")
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			if saveKey {
				return a.saveKey(cmd.Context(), f, api)
			}
			return a.importFrom(cmd.Context(), f, kind, ids, all, name, *asJSON)
		})
	}
	return c
}

func completeKinds(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return provider.Kinds(), cobra.ShellCompDirectiveNoFileComp
}

// saveKey takes a key from the person, unseen, or from a pipe.
func (a *app) saveKey(ctx context.Context, f *session.Fleet, api provider.API) error {
	var key string
	if isTerminal(a.In) {
		ans, err := a.person.Ask(ctx, remote.Question{Kind: remote.AskInteractive, Host: api.Title, Prompt: api.KeyForm() + " (from " + api.Console + "):"})
		if err != nil {
			return err
		}
		key = ans.Text
	} else {
		text, err := io.ReadAll(io.LimitReader(a.In, 64<<10))
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		key = string(text)
	}
	if err := f.SaveKey(api.Kind, key); err != nil {
		return err
	}
	a.note("the key of %s is in the keyring", api.Title)
	return nil
}

func (a *app) importFrom(ctx context.Context, f *session.Fleet, kind string, ids []string, all bool, name string, asJSON bool) error {
	there, err := f.Import(ctx, kind)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(there, func(in provider.Instance) bool { return in.ID == id }) {
			return fmt.Errorf("%s rents no instance %q; nothing was added", kind, remote.Short(id, 80))
		}
	}
	out := account{Provider: kind, Instances: []imported{}}
	var failed error
	for _, in := range there {
		l := importing(in)
		l.Added = addedAs(f, kind, in.ID)
		if l.Added == "" && (all || slices.Contains(ids, in.ID)) {
			entry := session.ImportedAs(kind, freeName(f, kind, name, in), in)
			if err := f.Add(entry); err != nil {
				failed = errors.Join(failed, fmt.Errorf("add %s: %w", in.ID, err))
			} else {
				l.Added, l.New = entry.Name, true
			}
		}
		out.Instances = append(out.Instances, l)
	}
	b, err := f.Balance(ctx, kind)
	if err == nil {
		out.Balance, out.Credit, out.Currency = figure(b.Cash), figure(b.Credit), &b.Currency
	} else if !errors.Is(err, provider.ErrUnsupported) {
		a.note("%v", err)
	}
	if asJSON {
		return errors.Join(printJSON(a.Out, out), failed)
	}
	return errors.Join(a.printAccount(out), failed)
}

func importing(in provider.Instance) imported {
	l := imported{
		ID: in.ID, Name: in.Name, State: string(in.Status.State), Detail: in.Status.Detail, GPU: in.GPU, PerHour: figure(in.PerHour), WhileStopped: figure(in.WhileStopped),
		Currency: in.Currency, Spot: in.Spot, Region: in.Region, StartedAt: instant(in.Status.StartedAt), CreatedAt: instant(in.CreatedAt), Ends: instant(in.Ends), SSH: in.Address.SSH(),
	}
	if in.GPUs > 0 {
		l.GPUs = &in.GPUs
	}
	return l
}

// figure is a decimal in JSON; null where it is not known.
func figure(s string) *json.Number {
	if s == "" {
		return nil
	}
	n := json.Number(s)
	return &n
}

// addedAs is the name of the instance in the config, "" where it is not there.
func addedAs(f *session.Fleet, kind, id string) string {
	for name, in := range f.Config().Instance {
		if in.Provider == kind && in.ID == id {
			return name
		}
	}
	return ""
}

// freeName is a name that the config can take: the given one, the provider's, or
// one made of provider and id.
func freeName(f *session.Fleet, kind, given string, in provider.Instance) string {
	if given != "" {
		return given
	}
	taken := f.Config().Instance
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune(` /\:*?"<>|'`, r) {
			return '-'
		}
		return r
	}, in.Name)
	for _, name := range []string{plain, kind + "-" + in.ID} {
		if _, is := taken[name]; !is && config.CheckName(name) == "" {
			return name
		}
	}
	return kind + "-" + in.ID // whose fault add will tell
}

func (a *app) printAccount(out account) error {
	if len(out.Instances) == 0 {
		a.note("%s rents nothing now", out.Provider)
	} else {
		t := newTable("ID", "NAME", "STATE", "GPU", "PER HOUR", "LOGIN", "IN THE CONFIG").alignRight(4)
		for _, l := range out.Instances {
			price := number(l.PerHour)
			if l.PerHour != nil {
				price += " " + l.Currency
			}
			gpu := l.GPU
			if l.GPUs != nil {
				gpu = fmt.Sprintf("%d×%s", *l.GPUs, l.GPU)
			}
			added := l.Added
			if l.New {
				added += " (added)"
			}
			t.add(l.ID, l.Name, l.State, gpu, price, l.SSH, added)
		}
		if err := t.print(a.Out); err != nil {
			return err
		}
	}
	if out.Balance != nil {
		left := "left to spend: " + number(out.Balance)
		if out.Credit != nil {
			left += " and credit of " + number(out.Credit)
		}
		a.note("%s %s", left, *out.Currency)
	}
	if slices.ContainsFunc(out.Instances, func(l imported) bool { return l.Added == "" }) {
		a.note("add with rentop import %s ID --name NAME, or --all", out.Provider)
	}
	return nil
}
