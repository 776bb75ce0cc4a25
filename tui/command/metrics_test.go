package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/sshtest"
)

// heard is what a run writes, to be read while it goes on.
type heard struct {
	mu  sync.Mutex // protects the rest
	all bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// configured makes an empty place for rentop, with a config of that text.
func configured(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "") // no keyring of the developer's
	t.Setenv("RENTOP_CONFIG_DIR", dir)
	t.Setenv("RENTOP_STATE_DIR", filepath.Join(dir, "state"))
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// oneServer is a config with a real server as instance a, and another that nobody
// listens at; and the flag that trusts the first.
func oneServer(t *testing.T) (trust string) {
	t.Helper()
	s := sshtest.Start(t, sshtest.Options{})
	_, port, _ := net.SplitHostPort(s.Addr)
	configured(t, fmt.Sprintf("[instance.a]\nssh = \"ssh -p %s -i %s %s@127.0.0.1\"\nrate = { per_hour = \"8.00\", currency = \"CNY\" }\n\n[instance.off]\nssh = \"ssh -p 1 root@127.0.0.1\"\n",
		port, s.KeyFile, s.User))
	return ssh.FingerprintSHA256(s.HostKey())
}

// running starts a command line that ends with Ctrl-C; stop gives its exit code.
func running(t *testing.T, args ...string) (out, errs *heard, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, errs = &heard{}, &heard{}
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, Program{Version: "test", In: strings.NewReader(""), Out: out, Err: errs, Now: time.Now}, args)
	}()
	t.Cleanup(cancel)
	return out, errs, func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(20 * time.Second):
			t.Fatalf("rentop %q does not end: %s", args, errs)
		}
		return -1
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}

// A real instance's figures, as a Prometheus reads them, and those of one that
// cannot be reached.
func TestMetrics(t *testing.T) {
	trust := oneServer(t)
	_, errs, stop := running(t, "metrics", "--listen", "127.0.0.1:0", "--accept-host-key", trust)
	var at string
	eventually(t, "an address", func() bool {
		at = regexp.MustCompile(`http://\S+/metrics`).FindString(errs.String())
		return at != ""
	})
	var page string
	eventually(t, "the instance's figures", func() bool {
		resp, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		page = string(b)
		return strings.Contains(page, `rentop_host_cpu_percent{instance="a"}`) && strings.Contains(page, `{instance="off",state="waiting"} 1`)
	})
	for _, want := range []string{`rentop_build_info{version="test"} 1`, `rentop_instance_state{instance="a",state="live"} 1`,
		`rentop_cost_per_hour{instance="a",currency="CNY"} 8`, `rentop_sample_stale{instance="off"} 1`} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
	if strings.Contains(page, `rentop_host_cpu_percent{instance="off"}`) || strings.Contains(page, `rentop_cost{instance="off"`) {
		t.Errorf("figures of an instance that was never reached:\n%s", page)
	}
	if code := stop(); code != done {
		t.Errorf("Ctrl-C ends it with %d: %s", code, errs)
	}
}

func TestMetricsRefuses(t *testing.T) {
	configured(t, "")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"metrics", "--listen", "0.0.0.0:0"}, refused, "--i-know"},
		{[]string{"metrics", "--listen", "9100"}, failed, "HOST:PORT"},
		{[]string{"metrics", "nobody"}, usage, "no instance of that name"},
	} {
		var errs bytes.Buffer
		if code := Run(t.Context(), Program{Out: io.Discard, Err: &errs, Now: time.Now}, c.args); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%q ends with %d and says %q; want %d and %q", c.args, code, errs.String(), c.code, c.says)
		}
	}
}
