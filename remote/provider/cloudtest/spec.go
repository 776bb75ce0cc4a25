package cloudtest

// Requests and answers of a stand-in are checked against the provider's own
// OpenAPI document, read from the shared folder and never copied.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"rentop/remote/needtest"
)

// sharedSpec is the path of a spec; the test is skipped where it is missing.
func sharedSpec(t testing.TB, name string) string {
	t.Helper()
	return needtest.Shared(t, "specs", name)
}

// spec checks traffic against an OpenAPI document; prefix is what the server puts
// before its paths.
type spec struct {
	doc    *openapi3.T
	prefix string
	passed sync.Map // exchanges that passed: a check costs milliseconds, and stories repeat
}

// specs are read once: the largest has 600 KB.
var specs sync.Map

func loadSpec(t testing.TB, name, prefix string) *spec {
	t.Helper()
	path := sharedSpec(t, name)
	if s, ok := specs.Load(path); ok {
		return s.(*spec)
	}
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &spec{doc: doc, prefix: prefix}
	specs.Store(path, s)
	return s
}

// route finds the operation; a template segment matches anything, but a literal
// one wins.
func (s *spec) route(r *http.Request) (*routers.Route, map[string]string) {
	path, ok := strings.CutPrefix(r.URL.Path, s.prefix)
	if !ok {
		return nil, nil
	}
	var best *routers.Route
	var params map[string]string
	for template, item := range s.doc.Paths.Map() {
		op := item.GetOperation(r.Method)
		got, ok := match(template, path)
		if op == nil || !ok || best != nil && len(got) >= len(params) {
			continue
		}
		best, params = &routers.Route{Spec: s.doc, Path: template, PathItem: item, Method: r.Method, Operation: op}, got
	}
	return best, params
}

func match(template, path string) (map[string]string, bool) {
	a, b := strings.Split(template, "/"), strings.Split(strings.TrimSuffix(path, "/"), "/")
	if len(a) != len(b) {
		return nil, false
	}
	params := map[string]string{}
	for i, Seg := range a {
		if name, ok := strings.CutPrefix(Seg, "{"); ok {
			params[strings.TrimSuffix(name, "}")] = b[i]
		} else if Seg != b[i] {
			return nil, false
		}
	}
	return params, true
}

// check returns what is wrong with a request and its answer.
func (s *spec) check(r *http.Request, body []byte, status int, header http.Header, answer []byte) error {
	exchange := fmt.Sprint(r.Method, r.URL, string(body), status, header, string(answer))
	if _, ok := s.passed.Load(exchange); ok {
		return nil
	}
	route, params := s.route(r)
	if route == nil {
		return fmt.Errorf("the spec has no %s %s", r.Method, r.URL.Path)
	}
	req := r.Clone(context.Background())
	req.Body, req.GetBody = http.NoBody, nil
	if len(body) > 0 { // which is read more than once
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	opt := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: opt}
	if err := openapi3filter.ValidateRequest(req.Context(), in); err != nil {
		return fmt.Errorf("request %s %s: %w", r.Method, r.URL.Path, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: status, Header: header, Options: opt}
	out.SetBodyBytes(answer)
	if err := openapi3filter.ValidateResponse(req.Context(), out); err != nil {
		return fmt.Errorf("answer %d to %s %s: %w", status, r.Method, r.URL.Path, err)
	}
	s.passed.Store(exchange, true)
	return nil
}
