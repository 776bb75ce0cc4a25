// Package cloudtest holds stand-ins of the services of all providers, for tests: a
// few machines that really change state, an API that speaks the provider's dialect
// as its document or recorded answers have it, and faults at any request.
//
// What a StandIn's machines are is the truth. A test compares it with what an
// adapter told.
package cloudtest

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
)

// Key is what the accounts have; it must be in no text.
const Key = "k-0123456789abcdef-secret"

// Box is one machine.
type Box struct {
	ID, Name string
	State    string // running, stopped, off (stopped and billed), gone
	Volume   string // of its own, outlives it
	wanted   string // what an accepted action leads to, while the service lags
	power    int    // power cycles: address and password are new after each
	started  time.Time
}

// Image is a snapshot that was taken of a box.
type Image struct{ ID, Name, Box string }

// Dialect is how one provider speaks.
type Dialect struct {
	Kind string
	IDs  [3]string // two machines of the same name, and one that does not exist
	// Serve answers a request; the stand-in is locked.
	Serve func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte)
	// Acts says whether a request changes something.
	Acts func(r *http.Request) bool
	// Refuse is the service's way to say no.
	Refuse func(w http.ResponseWriter, status int, say string)
	// Auth says whether a request has the account's key.
	Auth func(r *http.Request) bool
	// JSON is what is told of a box; nil where it is told in another way.
	JSON func(b *Box) map[string]any
	// Shaped checks an answer against a recorded one, where there is no document.
	Shaped func(r *http.Request, answer []byte) error

	spec   string // file of the OpenAPI document; "" where there is none
	prefix string // of the server in it
	key    string // what the account has; "" is Key
	hosts  bool   // in memory the provider's own hosts are spoken to, one a region
	// unchecked says that an answer is the provider's, but not its document's.
	unchecked func(r *http.Request, status int) bool
	// make is the adapter where it is none of HTTP's.
	make func(s *StandIn) provider.Provider
}

// Instead lets answer come before the dialect: where it says true, it did.
func (d *Dialect) Instead(answer func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool) {
	serve := d.Serve
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if !answer(s, w, r, body) {
			serve(s, w, r, body)
		}
	}
}

// Maker makes a dialect anew; a test is skipped there where its document is missing.
type Maker struct {
	Kind string
	Make func(testing.TB) *Dialect
}

// Clouds makes the dialects of all providers that have an API.
func Clouds() []Maker {
	return []Maker{
		{"alibaba", Alibaba}, {"autodl", AutoDL}, {"aws", AWS}, {"digitalocean", DigitalOcean}, {"hyperstack", Hyperstack},
		{"lambda", Lambda}, {"runpod", RunPod}, {"tencent", Tencent}, {"vast", Vast},
	}
}

// Providers are Clouds and the provider of a person's own lines.
func Providers() []Maker { return append(Clouds(), Maker{"command", Command}) }

// Fault is what goes wrong with one request.
type Fault int

// The faults. Of the last two the caller dies: see StandIn.Kill.
const (
	Fine        Fault = iota
	Failed            // 500, nothing done
	Limited           // 429 in plain text, nothing done
	Missing           // 404 in the service's own words, though the thing exists
	TimedOut          // no answer, nothing done
	Dropped           // accepted, not done
	Lost              // done, reported as failed
	Unheard           // done, no answer
	Cut               // done, the answer ends in its middle
	Page              // 502 and a page of HTML, nothing done
	LastFault         // not a fault: how many there are
	Killed            // the caller dies before the request
	KilledAfter       // and after it was done
)

// Unsure are the faults after which a caller cannot know whether it was done.
func Unsure() []Fault { return []Fault{Failed, TimedOut, Lost, Unheard, Cut, Page} }

// StandIn is one provider's service with two machines of an account.
type StandIn struct {
	t testing.TB
	*Dialect
	spec *spec

	// Next gives the fault of a request, Sleep is how the adapter waits, Torn hears
	// of each request to stop or destroy that reached a box and Kill that the caller
	// dies; each may be nil. Next, Torn and Kill are called with the stand-in locked.
	Next  func(r *http.Request) Fault
	Sleep func(context.Context, time.Duration) error
	Torn  func(id, action string)
	Kill  func()

	mu       sync.Mutex
	Boxes    map[string]*Box
	Images   map[string]*Image
	Requests []string
	Destroys map[string]int // requests to destroy that reached a box
	key      string         // that the account has; another is another account's
	lag      bool
	broken   bool
	hang     bool
	dead     bool // the caller: nothing of it reaches the service
	drop     bool // the request in hand is accepted and not done
}

// New makes a stand-in with two running machines.
func New(t testing.TB, d *Dialect) *StandIn {
	s := &StandIn{t: t, Dialect: d, Boxes: map[string]*Box{}, Images: map[string]*Image{}, key: cmp.Or(d.key, Key), Destroys: map[string]int{}}
	if d.spec != "" {
		s.spec = loadSpec(t, d.spec, d.prefix)
	}
	for i, id := range d.IDs[:2] {
		s.Boxes[id] = &Box{ID: id, Name: "train", State: "running", started: time.Date(2026, 11, 30, 10, 0, i, 0, time.UTC), Volume: fmt.Sprintf("%d00%d", i+1, i)}
	}
	return s
}

// act changes a box's state, or refuses. It is called with mu held.
func (s *StandIn) act(id, action string) (status int) {
	b := s.Boxes[id]
	if b == nil || b.State == "gone" {
		return http.StatusNotFound
	}
	to := map[string]string{"start": "running", "stop": "stopped", "off": "off", "destroy": "gone"}[action]
	if action == "destroy" {
		s.Destroys[id]++
	}
	if action != "start" && s.Torn != nil {
		s.Torn(id, action)
	}
	if b.State == to || action == "start" && b.State == "running" {
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

func (b *Box) set(to string) {
	if to == "running" {
		b.power++
	}
	b.State, b.wanted = to, ""
}

// Live are the boxes that exist, sorted.
func (s *StandIn) Live() []*Box {
	var out []*Box
	for _, id := range slices.Sorted(maps.Keys(s.Boxes)) {
		if s.Boxes[id].State != "gone" {
			out = append(out, s.Boxes[id])
		}
	}
	return out
}

func (s *StandIn) find(id string) *Box {
	if b := s.Boxes[id]; b != nil && b.State != "gone" {
		return b
	}
	return nil
}

// Truth is the state that a box really has.
func (s *StandIn) Truth(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Boxes[id].State
}

// Lag makes the service accept actions that are done only when it settles.
func (s *StandIn) Lag() { s.set(&s.lag, true) }

// Settle does what was accepted meanwhile, and ends the lag.
func (s *StandIn) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = false
	for _, b := range s.Boxes {
		if b.wanted != "" {
			b.set(b.wanted)
		}
	}
}

// Break makes every request fail, and Hang makes each wait for its end.
func (s *StandIn) Break() { s.set(&s.broken, true) }

// Hang makes every request wait for its end.
func (s *StandIn) Hang() { s.set(&s.hang, true) }

// Revive lets a caller that was killed be heard again: it is another process now.
func (s *StandIn) Revive() { s.set(&s.dead, false) }

// Forget makes the account another one, which has no instances.
func (s *StandIn) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.Boxes)
}

func (s *StandIn) set(b *bool, to bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*b = to
}

// errDead is what a killed caller would be told, could it still hear.
var errDead = errors.New("the caller was killed")

// RoundTrip is the service without a network between: for many runs in a second.
func (s *StandIn) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	f := s.handle(w, r)
	switch f {
	case TimedOut, Unheard:
		return nil, errors.New("read tcp 127.0.0.1:1->127.0.0.1:2: i/o timeout, sent " + s.key)
	case Killed, KilledAfter:
		return nil, errDead
	}
	resp := w.Result()
	if f == Cut {
		whole, _ := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), broken{}))
	}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// ServeHTTP is the service over a real connection.
func (s *StandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// roll gives the fault of the request in hand.
func (s *StandIn) roll(r *http.Request) Fault {
	if s.dead {
		return Killed
	}
	f := Fine
	if s.Next != nil {
		f = s.Next(r)
	}
	if f == Killed || f == KilledAfter {
		s.dead = true
		if s.Kill != nil {
			s.Kill()
		}
	}
	return f
}

func (s *StandIn) handle(w http.ResponseWriter, r *http.Request) Fault {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body)) // for the signature
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests = append(s.Requests, r.Method+" "+r.URL.RequestURI()+" "+string(body))
	f := s.roll(r)
	if ua := r.Header.Get("User-Agent"); !strings.HasPrefix(ua, "rentop") {
		s.t.Errorf("User-Agent %q", ua)
	}
	if strings.Contains(r.URL.String(), s.key) {
		s.t.Errorf("the key is in the URL: %s", r.URL)
	}
	switch {
	case f == Killed:
		return f
	case s.broken:
		s.Refuse(w, http.StatusInternalServerError, "internal error, seen "+Key)
		return f
	case !s.Auth(r):
		s.Refuse(w, http.StatusUnauthorized, "bad key")
		return f
	}
	switch f {
	case Failed:
		s.Refuse(w, http.StatusInternalServerError, "boom "+Key)
		return f
	case Limited:
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, "API requests too frequent: endpoint threshold=2.0")
		return f
	case Missing:
		s.Refuse(w, http.StatusNotFound, "not found")
		return f
	case Page:
		w.WriteHeader(http.StatusBadGateway)
		io.WriteString(w, "<html><body>Bad gateway "+Key+"</body></html>")
		return f
	case TimedOut:
		return f
	}
	s.drop = f == Dropped
	rec := httptest.NewRecorder()
	s.Serve(s, rec, r, body)
	s.drop = false
	if s.spec != nil && (s.unchecked == nil || !s.unchecked(r, rec.Code)) {
		if err := s.spec.check(r, body, rec.Code, rec.Header(), rec.Body.Bytes()); err != nil {
			s.t.Errorf("not as the spec says: %.600v", err)
		}
	}
	if s.Shaped != nil && rec.Code < 300 && !bytes.Contains(rec.Body.Bytes(), []byte("Refused")) {
		if err := s.Shaped(r, rec.Body.Bytes()); err != nil {
			s.t.Errorf("not as recorded: %s %s: %v", r.Method, r.URL.Path, err)
		}
	}
	if f == Lost {
		s.Refuse(w, http.StatusInternalServerError, "lost "+Key)
		return f
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
	return f
}

// Over makes the provider over the stand-in. Nothing waits, unless Sleep does.
func (s *StandIn) Over(base string, t http.RoundTripper, seen provider.Seen) provider.Provider {
	p, err := provider.New(s.Kind, provider.Options{
		Key: func() (string, error) { return cmp.Or(s.Dialect.key, Key), nil }, Base: base + s.prefix, Transport: t, Seen: seen,
		Sleep: func(ctx context.Context, d time.Duration) error {
			if s.Sleep != nil {
				return s.Sleep(ctx, d)
			}
			return ctx.Err()
		},
		Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// InMemory is the provider without a network between.
func (s *StandIn) InMemory() provider.Provider { return s.Remembering(nil) }

// Remembering is InMemory with a memory of its own of what the key has seen.
func (s *StandIn) Remembering(seen provider.Seen) provider.Provider {
	switch {
	case s.make != nil:
		return s.make(s)
	case s.hosts:
		return s.Over("", s, seen)
	}
	return s.Over("http://127.0.0.1", s, seen)
}

// StateOf is a box's state as a provider has to tell it.
func StateOf(state string) provider.State {
	switch state {
	case "running":
		return provider.Running
	case "stopped", "off":
		return provider.Stopped
	}
	return provider.Gone
}

// SendJSON answers with a value.
func SendJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// Seg is a part of a request's path, "" where it has none.
func Seg(r *http.Request, n int) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if n >= len(parts) {
		return ""
	}
	return parts[n]
}

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }
