package provider

// One HTTP client for all providers. Every answer is bounded, every try has its
// own timeout, no redirect is followed (it would carry the key elsewhere), and
// the key is in no error. Only what is safe to repeat is repeated: questions,
// and requests that the service says it refused for their rate (429).

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
)

const (
	tries        = 3
	tryTimeout   = 20 * time.Second
	firstWait    = time.Second
	longestWait  = 30 * time.Second // of a Retry-After that is waited for
	maxAnswer    = 8 << 20
	maxPages     = 200
	shortestPart = 8 // of a key's parts that are hidden in texts: a shorter one is in many words
	userAgent    = "rentop"
	contentJSON  = "application/json"
	retryAfter   = "Retry-After"
	rateLimited  = http.StatusTooManyRequests
	authorityKey = "Authorization"
)

// web speaks to one provider's API.
type web struct {
	kind  string
	base  string // without a slash at its end
	key   func() (string, error)
	auth  func(h http.Header, key string)
	sleep func(context.Context, time.Duration) error
	next  http.RoundTripper
	http  *http.Client
	// refusal may read a kind of error from an answer that is none of HTTP's.
	refusal func(status int, body []byte) error
	// sign, where a key is never sent, signs each try anew: of two with one
	// signature a service may take only the first.
	sign func(r *http.Request, key string) error
	// slowed says that an answer is a 429 by another name: nothing was done.
	slowed func(status int, body []byte) bool
}

func newWeb(kind, base string, o Options, auth func(http.Header, string)) (*web, error) {
	if o.Base != "" {
		base = o.Base
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%s: a key is sent over https only, not to %q", kind, remote.Short(base, 80))
	}
	w := &web{kind: kind, base: strings.TrimSuffix(base, "/"), key: o.Key, auth: auth, sleep: o.Sleep, next: o.Transport}
	if w.next == nil {
		// No connection is kept: nobody would close it.
		w.next = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true}
	}
	if w.sleep == nil {
		w.sleep = remote.Sleep
	}
	w.http = &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return w, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// repeatKey marks a context's requests as safe to repeat or not, where the
// method does not tell it: there are POSTs that only ask, and GETs that act.
type repeatKey struct{}

func asking(ctx context.Context) context.Context { return context.WithValue(ctx, repeatKey{}, true) }
func acting(ctx context.Context) context.Context { return context.WithValue(ctx, repeatKey{}, false) }

func repeatable(req *http.Request) bool {
	if mark, ok := req.Context().Value(repeatKey{}).(bool); ok {
		return mark
	}
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// RoundTrip makes the request as often as is safe. The answer's body is whole.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key, err := w.key()
	if err != nil {
		return nil, err
	}
	for n, wait := 1, firstWait; ; n, wait = n+1, 2*wait {
		resp, slow, err := w.once(req, key)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		again := err != nil || resp.StatusCode >= 500
		if !slow && again && !repeatable(req) || !slow && !again || n == tries {
			return resp, err
		}
		if err == nil {
			if told := waitOf(resp.Header); told > longestWait {
				return resp, nil
			} else if told > wait {
				wait = told
			}
		}
		if err := w.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func waitOf(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get(retryAfter))
	if err != nil || s < 0 || s > 1<<20 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// once makes one try. slow says that the service refused it for its rate.
func (w *web) once(req *http.Request, key string) (resp *http.Response, slow bool, err error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), tryTimeout, fmt.Errorf("no answer within %v", tryTimeout))
	defer cancel()
	try := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, false, err
		}
		try.Body = body
	}
	try.Header.Set("User-Agent", userAgent)
	if w.auth != nil {
		w.auth(try.Header, key)
	}
	if w.sign != nil {
		if err := w.sign(try, key); err != nil {
			return nil, false, err
		}
	}
	resp, err = w.next.RoundTrip(try)
	if err != nil {
		return nil, false, w.unreachable(ctx, err, key)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	resp.Body.Close()
	if err != nil {
		return nil, false, w.unreachable(ctx, err, key)
	}
	if len(body) > maxAnswer {
		return nil, false, fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	slow = resp.StatusCode == rateLimited || w.slowed != nil && w.slowed(resp.StatusCode, body)
	return resp, slow, nil
}

// unreachable says why there was no answer. A timeout of the try is no timeout of
// the caller's context.
func (w *web) unreachable(ctx context.Context, err error, key string) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.New(hideKey("no answer: "+remote.Short(err.Error(), 200), key))
}

// call is one request. Path parameters in it are escaped already.
type call struct {
	method, path string
	query        url.Values
	body         any
}

// do makes a call and reads a JSON answer into out, where that is not nil. A 404
// is errAbsent, a 400, 409 or 422 errState.
func (w *web) do(ctx context.Context, c call, out any) error {
	var body io.Reader
	if c.body != nil {
		b, err := json.Marshal(c.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	to := w.base + c.path
	if len(c.query) > 0 {
		to += "?" + c.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, to, body)
	if err != nil {
		return errors.New("the request could not be made") // the error would show the URL
	}
	req.Header.Set("Accept", contentJSON)
	if c.body != nil {
		req.Header.Set("Content-Type", contentJSON)
	}
	answer, err := w.exchange(req)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("the answer is not what its documentation says (%s); nothing is known", remote.Short(shape(err), 120))
	}
	return nil
}

// exchange makes a request and gives the answer's body, where it is no refusal.
func (w *web) exchange(req *http.Request) ([]byte, error) {
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	answer, err := io.ReadAll(resp.Body) // whole and bounded: see once
	if err != nil {
		return nil, err
	}
	return answer, w.judge(resp, answer)
}

// shape says what is wrong with JSON without showing any of it.
func shape(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return "a JSON " + wrong.Value + " at " + wrong.Field
	}
	return "it is no JSON, or cut short"
}

// plain takes the URL out of an error of net/http.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// judge turns an HTTP status into an error.
func (w *web) judge(resp *http.Response, body []byte) error {
	if w.refusal != nil {
		if err := w.refusal(resp.StatusCode, body); err != nil {
			return w.hide(err)
		}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	return w.hide(statusError(resp.StatusCode, resp.Header, message(body)))
}

// statusError says what an HTTP status means and what to do about it.
func statusError(status int, h http.Header, said string) error {
	what := fmt.Sprintf("it answered %d", status)
	if said != "" {
		what += ": " + said
	}
	switch {
	case status == http.StatusNotFound && said != "" || status == http.StatusGone:
		return fmt.Errorf("%s: %w", what, errAbsent)
	case status == http.StatusConflict, status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return refused(what)
	case status == http.StatusUnauthorized:
		return errors.New(what + "; the key is not accepted: make a new one in the provider's console")
	case status == http.StatusForbidden:
		return errors.New(what + "; the key may not do this: give it the permission in the provider's console")
	case status == rateLimited:
		if wait := waitOf(h); wait > 0 {
			return fmt.Errorf("%s; too many requests, it asks to wait %v", what, wait)
		}
		return errors.New(what + "; too many requests, wait a minute")
	case status >= 300 && status < 400:
		return errors.New(what + ", a redirect, which is not followed")
	case status >= 500:
		return errors.New(what + "; the provider has a fault, what it did is not known")
	}
	return errors.New(what)
}

// refused is a no that may come from the instance's state: what was wanted may be
// so already.
type refused string

func (r refused) Error() string     { return string(r) }
func (refused) Is(other error) bool { return other == errState }

// message is what an error's body tells a person, "" where it is none of an API's:
// a 404 without one is a proxy's or a wrong address's, not the provider's word.
func message(body []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil {
		for _, name := range []string{"detail", "message", "msg", "error", "error_reason", "title", "code"} {
			var s string
			if json.Unmarshal(fields[name], &s) == nil && s != "" {
				return remote.Short(s, 200)
			}
			var inner map[string]json.RawMessage // Lambda: {"error": {"code", "message"}}
			if json.Unmarshal(fields[name], &inner) == nil && json.Unmarshal(inner["message"], &s) == nil && s != "" {
				return remote.Short(s, 200)
			}
		}
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if line == "" || strings.HasPrefix(line, "<") || len(line) > 500 {
		return ""
	}
	return remote.Short(line, 200)
}

// hide takes the key out of an error's text and keeps what it is.
func (w *web) hide(err error) error {
	key, e := w.key()
	if e != nil {
		key = ""
	}
	safe := redact(hideKey(err.Error(), key), nil)
	if safe == err.Error() {
		return err
	}
	switch {
	case errors.Is(err, errAbsent):
		return fmt.Errorf("%s: %w", strings.TrimSuffix(safe, ": "+errAbsent.Error()), errAbsent)
	case errors.Is(err, errState):
		return refused(safe)
	}
	return errors.New(safe)
}

// hideKey takes out a key as it is, as it is in a URL and as Basic sends it, and
// each part of one that has several.
func hideKey(text, key string) string {
	if key == "" {
		return text
	}
	forms := []string{key, url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte(key + ":"))}
	for part := range strings.SplitSeq(key, ":") {
		if len(part) >= shortestPart {
			forms = append(forms, part, url.QueryEscape(part))
		}
	}
	for _, form := range forms {
		text = strings.ReplaceAll(text, form, "[secret]")
	}
	return text
}

func bearer(h http.Header, key string) { h.Set(authorityKey, "Bearer "+key) }
