package scrape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serve starts a page and gives its address.
func serve(t *testing.T, o Options) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Ready, o.Type = func(a string) { ready <- a }, "text/plain; version=0.0.4"
	o.Page = func(w io.Writer) { io.WriteString(w, "up 1\n") }
	go func() { ended <- Serve(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve ended with %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("Serve did not end with its context")
		}
	})
	select {
	case a := <-ready:
		return a
	case err := <-ended:
		ended <- err
		t.Fatalf("Serve: %v", err)
	}
	return ""
}

func TestServe(t *testing.T) {
	t.Parallel()
	addr := serve(t, Options{Listen: "127.0.0.1:0"})
	for _, c := range []struct {
		method, path, host string
		code               int
		body               string
	}{
		{"GET", "/metrics", "", 200, "up 1\n"},
		{"HEAD", "/metrics", "", 200, ""},
		{"GET", "/metrics", "localhost:9100", 200, "up 1\n"},
		{"GET", "/metrics", "[::1]:9100", 200, "up 1\n"},
		{"GET", "/metrics", "evil.example", 403, ""},
		{"GET", "/", "", 200, "/metrics"},
		{"GET", "/other", "", 404, ""},
		{"POST", "/metrics", "", 405, ""},
		{"DELETE", "/", "", 405, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.code || !strings.Contains(string(body), c.body) {
			t.Errorf("%s %s of %q: %d %q, want %d %q", c.method, c.path, c.host, resp.StatusCode, body, c.code, c.body)
		}
	}
}

func TestBeyondThisMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.invalid:0"} {
		if err := Serve(t.Context(), Options{Listen: listen}); !errors.Is(err, ErrBeyond) {
			t.Errorf("listen on %s: %v", listen, err)
		}
	}
	addr := serve(t, Options{Listen: "0.0.0.0:0", Beyond: true})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+strings.Replace(addr, "[::]", "127.0.0.1", 1)+"/metrics", nil)
	req.Host = "laptop.lan:9100"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("from another machine, as asked for: %d", resp.StatusCode)
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	addr := serve(t, Options{Listen: "127.0.0.1:0"})
	for listen, want := range map[string]string{"9100": "HOST:PORT", addr: "--listen"} {
		if err := Serve(t.Context(), Options{Listen: listen}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listen on %s: %v, want %q in it", listen, err, want)
		}
	}
}
