package provider_test

// The stand-in of a provider's service: a few machines that really change state,
// an API that speaks the provider's dialect, and faults at any request.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/provider/providertest"
)

const theKey = "k-0123456789abcdef-secret"

// box is one machine. Its state is the truth that a test compares with.
type box struct {
	id, name string
	state    string // running, stopped, off (stopped and billed), gone
	wanted   string // what an accepted action leads to, while the service lags
	power    int    // power cycles: address and password are new after each
	volume   string // of its own, outlives it
	started  time.Time
}

type image struct{ id, name, box string }

// dialect is how one provider speaks.
type dialect struct {
	kind   string
	ids    [3]string // two machines of the same name, and one that does not exist
	spec   string    // file of the OpenAPI document; "" where there is none
	prefix string    // of the server in it
	auth   func(r *http.Request) bool
	serve  func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte)
	// acts says whether a request changes something.
	acts func(r *http.Request) bool
	// refuse is the service's way to say no.
	refuse func(w http.ResponseWriter, status int, say string)
	// shaped checks an answer against a recorded one, where there is no document.
	shaped func(r *http.Request, answer []byte) error
	// key is what the account has; "" is theKey.
	key string
	// hosts says that in memory the provider's own hosts are spoken to, one a region.
	hosts bool
	// stories are how many are told of its faults; 0 is chaosRuns.
	stories int
	// unchecked says that an answer is the provider's, but not its document's.
	unchecked func(r *http.Request, status int) bool
}

// fault is what goes wrong with one request.
type fault int

const (
	fine     fault = iota
	failed         // 500, nothing done
	limited        // 429 in plain text, nothing done
	missing        // 404 in the service's own words, though the thing exists
	timedOut       // no answer, nothing done
	dropped        // accepted, not done
	lost           // done, reported as failed
	unheard        // done, no answer
	cut            // done, the answer ends in its middle
	page           // 502 and a page of HTML, nothing done
	lastFault
)

type standIn struct {
	t testing.TB
	d *dialect
	s *spec

	mu       sync.Mutex
	boxes    map[string]*box
	images   map[string]*image
	lag      bool
	broken   bool
	hang     bool
	key      string // that the account has; another is another account's
	drop     bool   // the request in hand is accepted and not done
	next     func(r *http.Request) fault
	requests []string
	destroys map[string]int // requests to destroy that reached a box
}

func newStandIn(t testing.TB, d *dialect) *standIn {
	s := &standIn{t: t, d: d, boxes: map[string]*box{}, images: map[string]*image{}, key: theKey, destroys: map[string]int{}}
	if d.key != "" {
		s.key = d.key
	}
	if d.spec != "" {
		s.s = loadSpec(t, d.spec, d.prefix)
	}
	for i, id := range d.ids[:2] {
		s.boxes[id] = &box{id: id, name: "train", state: "running", started: time.Date(2026, 11, 30, 10, 0, i, 0, time.UTC), volume: fmt.Sprintf("%d00%d", i+1, i)}
	}
	return s
}

// act changes a box's state, or refuses. It is called with mu held.
func (s *standIn) act(id, action string) (status int) {
	b := s.boxes[id]
	if b == nil || b.state == "gone" {
		return http.StatusNotFound
	}
	to := map[string]string{"start": "running", "stop": "stopped", "off": "off", "destroy": "gone"}[action]
	if action == "destroy" {
		s.destroys[id]++
	}
	if b.state == to || action == "start" && b.state == "running" {
		return http.StatusConflict
	}
	switch {
	case s.drop:
	case s.lag:
		b.wanted = to
	default:
		b.set(to)
	}
	return http.StatusOK
}

func (b *box) set(to string) {
	if to == "running" {
		b.power++
	}
	b.state, b.wanted = to, ""
}

// live are the boxes that exist, sorted.
func (s *standIn) live() []*box {
	var out []*box
	for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
		if s.boxes[id].state != "gone" {
			out = append(out, s.boxes[id])
		}
	}
	return out
}

func (s *standIn) find(id string) *box {
	if b := s.boxes[id]; b != nil && b.state != "gone" {
		return b
	}
	return nil
}

func (s *standIn) truth(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes[id].state
}

func (s *standIn) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = false
	for _, b := range s.boxes {
		if b.wanted != "" {
			b.set(b.wanted)
		}
	}
}

// RoundTrip is the service without a network between: for many runs in a second.
func (s *standIn) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	f := s.handle(w, r)
	switch f {
	case timedOut, unheard:
		return nil, errors.New("read tcp 127.0.0.1:1->127.0.0.1:2: i/o timeout, sent " + s.key)
	}
	resp := w.Result()
	if f == cut {
		whole, _ := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
	}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// ServeHTTP is the service over a real connection.
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		io.Copy(io.Discard, r.Body) // the server sees the client leave only then
		<-r.Context().Done()
		return
	}
	s.handle(w, r)
}

func (s *standIn) handle(w http.ResponseWriter, r *http.Request) fault {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body)) // for the signature
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	f := fine
	if s.next != nil {
		f = s.next(r)
	}
	if ua := r.Header.Get("User-Agent"); !strings.HasPrefix(ua, "rentop") {
		s.t.Errorf("User-Agent %q", ua)
	}
	if strings.Contains(r.URL.String(), s.key) {
		s.t.Errorf("the key is in the URL: %s", r.URL)
	}
	switch {
	case s.broken:
		s.d.refuse(w, http.StatusInternalServerError, "internal error, seen "+theKey)
		return f
	case !s.d.auth(r):
		s.d.refuse(w, http.StatusUnauthorized, "bad key")
		return f
	}
	switch f {
	case failed:
		s.d.refuse(w, http.StatusInternalServerError, "boom "+theKey)
		return f
	case limited:
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, "API requests too frequent: endpoint threshold=2.0")
		return f
	case missing:
		s.d.refuse(w, http.StatusNotFound, "not found")
		return f
	case page:
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html><body>Bad gateway "+theKey+"</body></html>")
		return f
	case timedOut:
		return f
	}
	s.drop = f == dropped
	rec := httptest.NewRecorder()
	s.d.serve(s, rec, r, body)
	s.drop = false
	if s.s != nil && (s.d.unchecked == nil || !s.d.unchecked(r, rec.Code)) {
		if err := s.s.check(r, body, rec.Code, rec.Header(), rec.Body.Bytes()); err != nil {
			s.t.Errorf("not as the spec says: %.600v", err)
		}
	}
	if s.d.shaped != nil && rec.Code < 300 && !bytes.Contains(rec.Body.Bytes(), []byte("Refused")) {
		if err := s.d.shaped(r, rec.Body.Bytes()); err != nil {
			s.t.Errorf("not as recorded: %s %s: %v", r.Method, r.URL.Path, err)
		}
	}
	if f == lost {
		s.d.refuse(w, http.StatusInternalServerError, "lost "+theKey)
		return f
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
	return f
}

func sendJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// over makes the provider over the stand-in; nothing waits.
func (s *standIn) over(base string, t http.RoundTripper, seen provider.Seen) provider.Provider {
	p, err := provider.New(s.d.kind, provider.Options{
		Key: func() (string, error) { return cmp.Or(s.d.key, theKey), nil }, Base: base + s.d.prefix, Transport: t, Seen: seen,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Now:   func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// inMemory is the provider over RoundTrip.
func (s *standIn) inMemory() provider.Provider {
	if s.d.hosts {
		return s.over("", s, nil)
	}
	return s.over("http://127.0.0.1", s, nil)
}

// conforms runs the suite against a real server of the dialect.
func conforms(t *testing.T, d *dialect) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		s := newStandIn(t, d)
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		p := s.over(server.URL, nil, nil)
		set := func(b *bool) func() {
			return func() { s.mu.Lock(); *b = true; s.mu.Unlock() }
		}
		h := providertest.Harness{
			Provider: p, ID: d.ids[0], Missing: d.ids[2], Secret: theKey, Other: d.ids[1],
			Break: set(&s.broken), Hang: set(&s.hang),
			Lag:   func() func() { set(&s.lag)(); return s.settle },
			Truth: func(id string) provider.State { return truthOf(s.truth(id)) },
			OtherAccount: func() {
				s.mu.Lock()
				clear(s.boxes)
				s.mu.Unlock()
			},
		}
		return h
	})
}

func truthOf(state string) provider.State {
	switch state {
	case "running":
		return provider.Running
	case "stopped", "off":
		return provider.Stopped
	}
	return provider.Gone
}

// seg is a part of the path, "" where it has none.
func seg(r *http.Request, n int) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if n >= len(parts) {
		return ""
	}
	return parts[n]
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }
