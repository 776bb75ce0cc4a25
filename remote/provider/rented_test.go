package provider_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// An answer about another instance is no answer: nothing is done by it.
func TestAnswerAboutAnother(t *testing.T) {
	d := cloudtest.RunPod(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == "GET" && cloudtest.Seg(r, 2) == d.IDs[0] {
			cloudtest.SendJSON(w, 200, s.JSON(s.Boxes[d.IDs[1]])) // the other one of the same name
			return true
		}
		return false
	})
	s := cloudtest.New(t, d)
	p := s.InMemory()
	if st, err := p.Status(t.Context(), d.IDs[0]); err == nil {
		t.Errorf("%+v", st)
	}
	if err := p.Destroy(t.Context(), d.IDs[0]); err == nil || s.Truth(d.IDs[0]) != "running" || s.Truth(d.IDs[1]) != "running" {
		t.Errorf("%v; they are %s and %s", err, s.Truth(d.IDs[0]), s.Truth(d.IDs[1]))
	}
}

// Ids that would be another path, or another request, are never sent.
func TestImpossibleIDs(t *testing.T) {
	for _, d := range []*cloudtest.Dialect{cloudtest.RunPod(t), cloudtest.Vast(t), cloudtest.Lambda(t), cloudtest.Hyperstack(t)} {
		s := cloudtest.New(t, d)
		p := s.InMemory()
		for _, id := range []string{"", ".", "..", "a/b", "../pods/x", "a b", "a?x=1", "a#", "%2e%2e", "-1 OR", "名", strings.Repeat("1", 200)} {
			if err := p.Destroy(t.Context(), id); err == nil {
				t.Errorf("%s: destroyed %q", d.Kind, id)
			}
		}
		if len(s.Requests) > 0 {
			t.Errorf("%s: sent %q", d.Kind, s.Requests)
		}
	}
}

// What a key has seen is remembered over restarts, and by key.
func TestSeenOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	s := cloudtest.New(t, cloudtest.RunPod(t))
	id := s.IDs[0]
	if _, err := s.Over("http://127.0.0.1", s, provider.SeenFile(path)).Status(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.Boxes[id].State = "gone"
	st, err := s.Over("http://127.0.0.1", s, provider.SeenFile(path)).Status(t.Context(), id)
	if err != nil || st.State != provider.Gone {
		t.Errorf("after a restart: %+v, %v", st, err)
	}
	if st, err := s.InMemory().Status(t.Context(), id); err == nil {
		t.Errorf("a memory without it says %+v", st)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), cloudtest.Key) || strings.Count(string(text), id) != 1 {
		t.Errorf("%q, %v", text, err)
	}
	// Another key has not seen it.
	p, err := provider.New("runpod", provider.Options{Key: func() (string, error) { return "another", nil }, Base: "http://127.0.0.1", Transport: s, Seen: provider.SeenFile(path)})
	if err != nil {
		t.Fatal(err)
	}
	s.Auth = func(*http.Request) bool { return true }
	if st, err := p.Status(t.Context(), id); err == nil {
		t.Errorf("another key says %+v", st)
	}
}

// A redirect would carry the key elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	s := cloudtest.New(t, cloudtest.RunPod(t))
	_, err := s.Over(server.URL, nil, nil).Status(t.Context(), s.IDs[0])
	if err == nil || reached || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("%v, reached: %v", err, reached)
	}
}

func TestKeyGoesOverHTTPSOnly(t *testing.T) {
	if _, err := provider.New("runpod", provider.Options{Base: "http://api.example.com"}); err == nil {
		t.Error("a key would go over plain HTTP")
	}
}

// An answer without an end is cut off, not read.
func TestLongAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := []byte(strings.Repeat(" ", 1<<20))
		for range 64 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	s := cloudtest.New(t, cloudtest.RunPod(t))
	if _, err := s.Over(server.URL, nil, nil).Status(t.Context(), s.IDs[0]); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("%v", err)
	}
}

// Retry-After is waited for where it is short, and told where it is long.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		after string
		waits int
		tells string
	}{{"7", 2, "7s"}, {"3600", 0, "1h0m0s"}, {"", 2, "wait a minute"}, {"soon", 2, "wait a minute"}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", c.after)
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}))
		waits := 0
		p := cloudtest.New(t, cloudtest.RunPod(t)).Over(server.URL, counting{&waits, http.DefaultTransport}, nil)
		_, err := p.Status(t.Context(), "abc")
		if err == nil || waits-1 != c.waits || !strings.Contains(err.Error(), c.tells) {
			t.Errorf("%q: %v after %d more tries", c.after, err, waits-1)
		}
		server.Close()
	}
}

type counting struct {
	n    *int
	next http.RoundTripper
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	*c.n++
	return c.next.RoundTrip(r)
}

func TestKeys(t *testing.T) {
	ring := &remote.MemorySecrets{}
	env := map[string]string{}
	k := provider.Keys{Secrets: ring, Getenv: func(n string) string { return env[n] }}
	if _, _, err := k.Find("runpod"); !errors.Is(err, provider.ErrNoKey) || !strings.Contains(err.Error(), "RUNPOD_API_KEY") {
		t.Errorf("%v", err)
	}
	if err := k.Save("runpod", " from-ring \n"); err != nil {
		t.Fatal(err)
	}
	if key, from, err := k.Find("runpod"); err != nil || key.Reveal() != "from-ring" || from != "keyring" {
		t.Errorf("%q from %s, %v", key.Reveal(), from, err)
	}
	env["RUNPOD_API_KEY"] = "from-env\n"
	if key, from, err := k.Find("runpod"); err != nil || key.Reveal() != "from-env" || from != "RUNPOD_API_KEY" {
		t.Errorf("%q from %s, %v", key.Reveal(), from, err)
	}
	for _, bad := range []string{"two lines\nhere", "umläut", strings.Repeat("x", 5000)} {
		env["RUNPOD_API_KEY"] = bad
		if key, _, err := k.Find("runpod"); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %q, %v", bad, key.Reveal(), err)
		}
	}
	delete(env, "RUNPOD_API_KEY")
	if err := k.Forget("runpod"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Find("runpod"); !errors.Is(err, provider.ErrNoKey) {
		t.Errorf("forgotten: %v", err)
	}
}

// Every name has a provider, and none asks anything before it is used.
func TestKinds(t *testing.T) {
	for _, kind := range provider.Kinds() {
		p, err := provider.New(kind, provider.Options{Key: func() (string, error) { return "", provider.ErrNoKey }})
		if err != nil || p.Kind() != kind {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		id := cmp.Or(map[string]string{"aws": "us-east-1/i-1", "alibaba": "cn-beijing/i-1", "tencent": "ap-beijing/ins-1"}[kind], "123")
		if _, err := p.Status(t.Context(), id); !errors.Is(err, provider.ErrNoKey) {
			t.Errorf("%s without a key: %v", kind, err)
		}
		if can := p.Can(); can.Stop && can.StopKeepsCharging == "" {
			t.Errorf("%s: a stop ends all charges?", kind)
		}
	}
	if _, err := provider.New("nowhere", provider.Options{}); err == nil || !strings.Contains(err.Error(), "runpod") {
		t.Errorf("%v", err)
	}
}

// Several processes may remember at once.
func TestSeenFileConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := provider.SeenFile(path)
			for n := range 50 {
				s.Add("k", "w", strings.Repeat("x", i+1)+time.Duration(n).String())
			}
		})
	}
	wg.Wait()
	if s := provider.SeenFile(path); !s.Has("k", "w", "x49ns") || s.Has("k", "w", "y") {
		t.Error("what was seen is not remembered")
	}
}
