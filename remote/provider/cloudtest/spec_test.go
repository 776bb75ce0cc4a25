package cloudtest

import (
	"net/http"
	"testing"
)

// TestSpecsCatch proves that the check can fail.
func TestSpecsCatch(t *testing.T) {
	s := loadSpec(t, "runpod-rest-v2-openapi.json", "")
	for _, c := range []struct {
		what, method, path, body, answer string
		status                           int
		bad                              bool
	}{
		{"good", "POST", "/v2/pods/a/action", `{"action":"terminate"}`, "", 204, false},
		{"no such path", "GET", "/v1/pods", "", "{}", 200, true},
		{"wrong action", "POST", "/v2/pods/a/action", `{"action":"kill"}`, "", 204, true},
		{"a pod without fields", "GET", "/v2/pods/a", "", `{"id":"a"}`, 200, true},
		{"wrong type", "GET", "/v2/pods", "", `{"pods":[{"id":7}]}`, 200, true},
		{"empty list", "GET", "/v2/pods", "", `{"pods":[]}`, 200, false},
	} {
		r, err := http.NewRequest(c.method, "http://x"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		err = s.check(r, []byte(c.body), c.status, http.Header{"Content-Type": {"application/json"}}, []byte(c.answer))
		if (err != nil) != c.bad {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
