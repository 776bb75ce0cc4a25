package session

// The providers that are reached with an API key: one of each for the whole
// fleet, their keys, what their accounts rent, and where an instance is now.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	stdsync "sync"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/config"
)

// rentals makes a provider when it is first asked for.
type rentals struct {
	keys provider.Keys
	seen provider.Seen

	mu   stdsync.Mutex // protects what follows; never held over I/O
	made map[string]provider.Provider
	key  map[string]string // that were found: a keyring is asked once
}

func (r *rentals) init(o Options) {
	r.keys = provider.Keys{Secrets: o.Secrets}
	r.seen = provider.SeenFile(filepath.Join(o.Dirs.State, "seen-instances"))
	r.made, r.key = map[string]provider.Provider{}, map[string]string{}
}

// get is nil where no provider has that name.
func (r *rentals) get(kind string) provider.Provider {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.made[kind]; p != nil {
		return p
	}
	p, err := provider.New(kind, provider.Options{Key: func() (string, error) { return r.find(kind) }, Seen: r.seen})
	if err != nil {
		return nil
	}
	r.made[kind] = p
	return p
}

func (r *rentals) find(kind string) (string, error) {
	r.mu.Lock()
	key := r.key[kind]
	r.mu.Unlock()
	if key != "" {
		return key, nil
	}
	found, _, err := r.keys.Find(kind)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key[kind] = found.Reveal()
	return found.Reveal(), nil
}

// account is the provider of that kind, also one of Options.
func (f *Fleet) account(kind string) (provider.Provider, error) {
	if p := f.opt.Providers[kind]; p != nil {
		return p, nil
	}
	if p := f.rentals.get(kind); p != nil {
		return p, nil
	}
	_, err := provider.New(kind, provider.Options{})
	return nil, err
}

// Import lists what an account rents at a provider.
func (f *Fleet) Import(ctx context.Context, kind string) ([]provider.Instance, error) {
	p, err := f.account(kind)
	if err != nil {
		return nil, err
	}
	lister, ok := p.(provider.Importer)
	if !ok {
		return nil, fmt.Errorf("%s: list the instances: %w", kind, provider.ErrUnsupported)
	}
	return lister.Import(ctx)
}

// Balance is what an account has left; provider.ErrUnsupported where its
// provider does not tell.
func (f *Fleet) Balance(ctx context.Context, kind string) (provider.Balance, error) {
	p, err := f.account(kind)
	if err != nil {
		return provider.Balance{}, err
	}
	teller, ok := p.(provider.Balancer)
	if !ok {
		return provider.Balance{}, fmt.Errorf("%s: balance: %w", kind, provider.ErrUnsupported)
	}
	return teller.Balance(ctx)
}

// KeyFrom says where a provider's API key is: the name of a variable, or
// "keyring". It never gives the key.
func (f *Fleet) KeyFrom(kind string) (string, error) {
	_, from, err := f.rentals.keys.Find(kind)
	return from, err
}

// SaveKey keeps a provider's API key in the keyring.
func (f *Fleet) SaveKey(kind, key string) error {
	return f.rentals.keys.Save(kind, provider.Secret(key))
}

// ImportedAs is an instance of an account as the config has it. What the
// provider does not tell is left out, for the person to add.
func ImportedAs(kind, name string, in provider.Instance) config.Instance {
	out := config.Instance{Name: name, Provider: kind, ID: in.ID}
	if !in.Address.ShellOnly {
		out.SSH = in.Address.SSH()
	}
	if in.PerHour != "" && in.Currency != "" {
		api, _ := provider.FindAPI(kind)
		out.Rate = &config.Rate{PerHour: in.PerHour, Currency: in.Currency, WhileStopped: in.WhileStopped, Billed: api.Billed, Minimum: api.Minimum}
	}
	return out
}

// askWhere bounds the question where an instance is.
const askWhere = 15 * time.Second

// whereNow is where an instance is as its provider tells it now: port, address and
// password may be new after each power cycle. It is what was written where the
// provider does not tell, and where that is an alias or goes over another host.
func (s *Session) whereNow(ctx context.Context, written remote.Target) (now remote.Target, moved bool, err error) {
	teller, ok := s.prov().(provider.Addresser)
	if !ok || s.cfg().Host != "" || written.Jump != "" || written.Options["hostname"] != "" {
		return written, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWhere)
	defer cancel()
	told, err := teller.Address(ctx, s.providerID())
	if err == nil && told.ShellOnly {
		err = errors.New("there is only a proxy that carries a shell, no files and no forwards: expose port 22 (22/tcp) there, or write the login line that you have")
	}
	if err != nil && written.Host == "" {
		return written, false, fmt.Errorf("its config has no login line, and its provider tells none: %w", err)
	}
	if err != nil {
		return written, false, nil // what was written may still be right
	}
	if password := told.Password.Reveal(); password != "" {
		s.memory.SetPassword(s.uid, password)
	}
	now = written
	now.Host, now.Port = told.Host, told.Port
	if now.User == "" {
		now.User = told.User
	}
	if now.Port == 0 {
		now.Port = 22
	}
	return now, now.Host != written.Host || now.Port != max(written.Port, 22), nil
}
