package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session"
)

// rentedTwo is an account with two instances of one name, one of them stopped.
type rentedTwo struct{ provider.Provider }

func (rentedTwo) Import(context.Context) ([]provider.Instance, error) {
	started := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	return []provider.Instance{
		{ID: "p1", Name: "my pod", Status: provider.Status{State: provider.Running, StartedAt: started}, GPU: "RTX 4090", GPUs: 2, PerHour: "0.44", WhileStopped: "0.005479",
			Currency: "USD", Address: provider.Address{Host: "195.26.233.3", Port: 34446, User: "root", Password: "hunter2-hunter2"}},
		{ID: "p2", Name: "my pod", Status: provider.Status{State: provider.Stopped}, Currency: "USD"},
	}, nil
}

func (rentedTwo) Balance(context.Context) (provider.Balance, error) {
	return provider.Balance{Cash: "-1.25", Currency: "USD"}, nil
}

// What is there is listed, what is chosen is added once, and nothing is made up
// or told that is secret.
func TestImportAdds(t *testing.T) {
	dir := t.TempDir()
	rest, err := provider.New("runpod", provider.Options{Key: func() (string, error) { return "", provider.ErrNoKey }})
	if err != nil {
		t.Fatal(err)
	}
	f, err := session.Open(t.Context(), session.Options{
		Dirs: session.Dirs{Config: filepath.Join(dir, "c"), State: filepath.Join(dir, "s")}, Secrets: &remote.MemorySecrets{},
		Providers: map[string]provider.Provider{"runpod": rentedTwo{rest}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run := func(ids []string, all bool, name string, asJSON bool) string {
		t.Helper()
		var out bytes.Buffer
		a := &app{Program: Program{Out: &out, Err: &out}}
		if err := a.importFrom(t.Context(), f, "runpod", ids, all, name, asJSON); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	text := run(nil, false, "", false)
	for _, want := range []string{"p1", "2×RTX 4090", "0.44 USD", "ssh -p 34446 root@195.26.233.3", "left to spend: -1.25 USD", "rentop import runpod ID"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if len(f.Names()) != 0 {
		t.Errorf("a list added %q", f.Names())
	}
	run([]string{"p1"}, false, "a100", false)
	var got account
	if err := json.Unmarshal([]byte(run(nil, true, "", true)), &got); err != nil {
		t.Fatal(err)
	}
	first, second := got.Instances[0], got.Instances[1]
	if first.Added != "a100" || first.New || second.Added != "my-pod" || !second.New || second.PerHour != nil || second.GPUs != nil || second.StartedAt != nil {
		t.Errorf("%+v", got.Instances)
	}
	config, err := os.ReadFile(f.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[instance.a100]", "id = 'p1'", "per_hour = '0.44'", "while_stopped = '0.005479'", "[instance.my-pod]", "id = 'p2'"} {
		if !strings.Contains(strings.ReplaceAll(string(config), `"`, "'"), want) {
			t.Errorf("no %q in:\n%s", want, config)
		}
	}
	if strings.Contains(string(config)+text, "hunter2") {
		t.Error("the password is told")
	}
	again := run(nil, true, "", false)
	if strings.Contains(again, "(added)") || len(f.Names()) != 2 {
		t.Errorf("added twice: %q\n%s", f.Names(), again)
	}
	var out bytes.Buffer
	a := &app{Program: Program{Out: &out, Err: &out}}
	if err := a.importFrom(t.Context(), f, "runpod", []string{"p1", "p9"}, false, "", false); err == nil || !strings.Contains(err.Error(), "p9") {
		t.Errorf("%v", err)
	}
}
