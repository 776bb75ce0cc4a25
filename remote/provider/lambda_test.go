package provider_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// There is no stop: it is refused here, and nothing is sent.
func TestLambdaHasNoStop(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Lambda(t))
	p := s.InMemory()
	if can := p.Can(); can.Stop || can.Start || can.Snapshot || !can.Destroy {
		t.Errorf("%+v", can)
	}
	if err := p.Stop(t.Context(), s.IDs[0]); !errors.Is(err, provider.ErrUnsupported) || len(s.Requests) > 0 {
		t.Errorf("%v, and %d requests were made", err, len(s.Requests))
	}
}

// A file system goes on costing, at $0.20 a GiB and month.
func TestLambdaFileSystemsGoOn(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Lambda(t))
	p := s.InMemory()
	left, err := p.Leftovers(t.Context(), s.IDs[0], provider.Gone)
	if err != nil || len(left) != 1 || left[0].Name != "data-0" || left[0].PerMonth != "200" {
		t.Errorf("%+v, %v", left, err)
	}
	if err := p.Destroy(t.Context(), s.IDs[0]); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), s.IDs[0], provider.Gone)
	if err != nil || len(left) != 2 || left[0].Name != "data-0" || left[1].Name != "forgotten" || left[1].PerMonth != "" {
		t.Errorf("%+v, %v: its own and the forgotten one, not the other instance's", left, err)
	}
}

func TestLambdaImport(t *testing.T) {
	list, err := cloudtest.New(t, cloudtest.Lambda(t)).InMemory().(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if in := list[0]; in.PerHour != "2.58" || in.GPU != "A100 SXM4 (40 GB)" || in.GPUs != 2 || in.Address.SSH() != "ssh ubuntu@10.10.10.1" {
		t.Errorf("%+v", in)
	}
}

// A termination that names another instance, or none, was not accepted.
func TestLambdaTerminationOfAnother(t *testing.T) {
	d := cloudtest.Lambda(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == "POST" {
			cloudtest.SendJSON(w, 200, map[string]any{"data": map[string]any{"terminated_instances": []any{}}})
			return true
		}
		return false
	})
	if err := cloudtest.New(t, d).InMemory().Destroy(t.Context(), d.IDs[0]); err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("%v", err)
	}
}
