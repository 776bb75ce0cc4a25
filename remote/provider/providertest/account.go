package providertest

// The checks of what an account tells, and of what must not happen to the rest
// of it.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rentop/remote/provider"
)

func imports(t *testing.T, h Harness) {
	p, ok := h.Provider.(provider.Importer)
	if !has(t, ok, "list of the account") {
		return
	}
	list, err := p.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]provider.Instance{}
	for _, in := range list {
		if _, twice := found[in.ID]; twice {
			t.Errorf("%q is listed twice", in.ID)
		}
		found[in.ID] = in
		decimal(t, in.PerHour)
		decimal(t, in.WhileStopped)
		if (in.PerHour != "" || in.WhileStopped != "") && in.Currency == "" {
			t.Errorf("%q has a price without a currency", in.ID)
		}
	}
	in, ok := found[h.ID]
	if !ok {
		t.Fatalf("%q is not in the list: %+v", h.ID, list)
	}
	if in.Status.State != provider.Running || in.GPU == "" || in.GPUs < 1 {
		t.Errorf("%+v: want it running, with its GPU", in)
	}
	if _, ok := found[h.Missing]; ok {
		t.Errorf("%q is listed", h.Missing)
	}
	if h.Provider.Can().Destroy {
		if err := h.Provider.Destroy(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Gone)
		list, err := p.Import(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range list {
			if in.ID == h.ID {
				t.Errorf("it is gone and listed: %+v", in)
			}
		}
	}
}

func balance(t *testing.T, h Harness) {
	p, ok := h.Provider.(provider.Balancer)
	if !has(t, ok, "balance") {
		return
	}
	b, err := p.Balance(t.Context())
	if errors.Is(err, provider.ErrUnsupported) {
		t.Log("does not apply: its API does not tell the balance")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.Currency == "" || b.Cash == "" {
		t.Errorf("%+v is not complete", b)
	}
	decimal(t, strings.TrimPrefix(b.Cash, "-"))
	decimal(t, strings.TrimPrefix(b.Credit, "-"))
}

// addresses: after a power cycle the new one is told, and no password leaks.
func addresses(t *testing.T, h Harness) {
	p, ok := h.Provider.(provider.Addresser)
	if !has(t, ok, "address") {
		return
	}
	first, err := p.Address(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	if first.Host == "" || first.User == "" || !strings.HasPrefix(first.SSH(), "ssh ") {
		t.Errorf("%+v is not complete: %q", first, first.SSH())
	}
	if s := first.Password.Reveal(); s != "" {
		text, _ := json.Marshal(first)
		if strings.Contains(fmt.Sprintf("%v %+v %#v %s", first, first, first, text)+first.SSH(), s) {
			t.Error("the password is shown")
		}
	}
	if !h.Provider.Can().Stop || !h.Provider.Can().Start {
		return
	}
	if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	await(t, h, provider.Stopped)
	if err := h.Provider.Start(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	await(t, h, provider.Running)
	second, err := p.Address(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	if second.Host == "" {
		t.Errorf("no address after a power cycle")
	}
}

func onlyThis(t *testing.T, h Harness) {
	if !has(t, h.Other != "" && h.Truth != nil, "other instance") {
		return
	}
	can := h.Provider.Can()
	status(t, h)
	if can.Stop {
		if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Stopped)
	}
	if can.Destroy {
		if err := h.Provider.Destroy(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Gone)
	}
	if can.Destroy && h.Truth(h.ID) != provider.Gone {
		t.Errorf("it is %q, and was told to be gone", h.Truth(h.ID))
	}
	if got := h.Truth(h.Other); got != provider.Running {
		t.Errorf("the other instance of the same name is %q", got)
	}
}

func otherAccount(t *testing.T, h Harness) {
	if !has(t, h.OtherAccount != nil, "other account") {
		return
	}
	h.OtherAccount()
	if s, err := h.Provider.Status(t.Context(), h.ID); err == nil {
		t.Errorf("a key that never saw the instance says %q of it", s.State)
	}
	if can := h.Provider.Can(); can.Destroy && h.Provider.Destroy(t.Context(), h.ID) == nil {
		t.Error("a key that never saw the instance destroyed it")
	}
}
