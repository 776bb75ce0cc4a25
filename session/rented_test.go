package session

import (
	"context"
	"net"
	"strconv"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/provider"
	"rentop/remote/sshtest"
	"rentop/session/config"
)

// account is a provider's account with one instance.
type account struct {
	mu    stdsync.Mutex
	at    provider.Address
	asked int
}

func (*account) Kind() string { return "runpod" }
func (*account) Can() provider.Can {
	return provider.Can{Destroy: true}
}
func (*account) Status(context.Context, string) (provider.Status, error) {
	return provider.Status{State: provider.Running}, nil
}
func (*account) Start(context.Context, string) error   { return provider.ErrUnsupported }
func (*account) Stop(context.Context, string) error    { return provider.ErrUnsupported }
func (*account) Destroy(context.Context, string) error { return nil }
func (*account) Snapshot(context.Context, string, string) (provider.Snapshot, error) {
	return provider.Snapshot{}, provider.ErrUnsupported
}
func (*account) Leftovers(context.Context, string, provider.State) ([]provider.Leftover, error) {
	return nil, nil
}

func (a *account) Import(context.Context) ([]provider.Instance, error) {
	return []provider.Instance{{ID: "pod1", Name: "train", Status: provider.Status{State: provider.Running}, Address: a.at, GPU: "H100", GPUs: 1, PerHour: "2.5", WhileStopped: "0.01", Currency: "USD"}}, nil
}

func (a *account) Address(_ context.Context, id string) (provider.Address, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked++; id != "pod1" || a.at.Host == "" {
		return provider.Address{}, provider.ErrNoAddress
	}
	return a.at, nil
}

// A stale login line is no harm: the provider is asked where the instance is, and
// its new password is used, before each connection.
func TestAddressOfNow(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Password: "new after the cycle"})
	host, port, _ := net.SplitHostPort(srv.Addr)
	n, _ := strconv.Atoi(port)
	acc := &account{at: provider.Address{Host: host, Port: n, User: srv.User, Password: "new after the cycle"}}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("SSH_AUTH_SOCK", "")
	f, err := Open(t.Context(), Options{
		Dirs: Dirs{Config: dir + "/config", State: dir + "/state"}, Secrets: noKeyring{}, AcceptHostKey: ssh.FingerprintSHA256(srv.HostKey()),
		Providers: map[string]provider.Provider{"runpod": acc},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Import(t.Context(), "runpod")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	in := ImportedAs("runpod", "train", list[0])
	if in.Rate == nil || in.Rate.PerHour != "2.5" || in.Rate.Billed != "second" || strings.Contains(in.SSH, "cycle") || in.ID != "pod1" {
		t.Errorf("%+v", in)
	}
	for _, line := range []string{"", "ssh -p 1 " + srv.User + "@127.0.0.1"} { // none, and one of yesterday
		in.Name, in.SSH = "train"+strconv.Itoa(len(line)), line
		if err := f.Add(in); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := session(t, f, in.Name).Ready(ctx); err != nil {
			t.Errorf("with the line %q: %v", line, err)
		}
		cancel()
	}
	if acc.asked < 2 {
		t.Errorf("asked %d times", acc.asked)
	}
}

// Where the provider's address cannot be reached, the written line is tried; an
// alias of ssh_config is never replaced.
func TestWrittenLineIsTheFallback(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	acc := &account{at: provider.Address{Host: "127.0.0.1", Port: 1, User: "root"}}
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{
		Dirs: Dirs{Config: dir + "/config", State: dir + "/state"}, Secrets: noKeyring{}, AcceptHostKey: ssh.FingerprintSHA256(srv.HostKey()),
		Providers: map[string]provider.Provider{"runpod": acc},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "runpod", ID: "pod1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := session(t, f, "box").Ready(ctx); err != nil {
		t.Error(err)
	}
}

// What a provider with an API needs is said when the config is read.
func TestRentedConfig(t *testing.T) {
	for _, c := range []struct{ text, tells string }{
		{`[instance.a]` + "\nprovider = \"runpod\"\nid = \"x\"", ""},
		{`[instance.a]` + "\nprovider = \"runpod\"\nssh = \"ssh root@h\"", "rentop import runpod"},
		{`[instance.a]` + "\nprovider = \"ec2\"\nid = \"x\"\nssh = \"ssh root@h\"", "known are alibaba"},
		{`[instance.a]` + "\nprovider = \"command\"\nid = \"x\"", "needs ssh"},
	} {
		_, err := config.Parse("config.toml", []byte(c.text))
		if (err == nil) != (c.tells == "") || err != nil && !strings.Contains(err.Error(), c.tells) {
			t.Errorf("%s: %v, want %q", c.text, err, c.tells)
		}
	}
}
