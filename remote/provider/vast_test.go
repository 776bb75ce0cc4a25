package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// What was charged is added up over pages, and only for the instance that was asked for.
func TestVastCharges(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Vast(t))
	p := s.InMemory().(provider.Charger)
	c, err := p.Charges(t.Context(), s.IDs[0], time.Date(2026, 6, 1, 10, 30, 0, 0, time.UTC), time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC))
	if err != nil || c.Amount != "3.125" || c.To.Sub(c.From) != 24*time.Hour || c.From.Hour() != 0 {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := p.Charges(t.Context(), s.IDs[2], time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Errorf("it names no charge, and that is %+v", c)
	}
}

// Where the contract and the container do not say the same, nothing is guessed.
func TestVastStates(t *testing.T) {
	for _, c := range []struct {
		actual              any
		cur, next, intended string
		want                provider.State
	}{
		{"running", "running", "running", "running", provider.Running},
		{"exited", "stopped", "stopped", "stopped", provider.Stopped},
		{"running", "running", "stopped", "stopped", provider.Changing},
		{"exited", "running", "running", "stopped", provider.Changing},
		{"exited", "running", "running", "running", provider.Unknown}, // and it pays
		{"running", "stopped", "stopped", "stopped", provider.Unknown},
		{"loading", "running", "running", "running", provider.Changing},
		{nil, "running", "running", "running", provider.Changing},
		{"offline", "running", "running", "running", provider.Unknown},
		{"unknown", "unloaded", "unloaded", "unloaded", provider.Unknown},
		{"", "", "", "", provider.Unknown},
	} {
		d := cloudtest.Vast(t)
		d.Serve = func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, _ []byte) {
			one := s.JSON(s.Boxes[d.IDs[0]])
			one["ports"] = []int{}
			one["actual_status"], one["cur_state"], one["next_state"], one["intended_status"] = c.actual, c.cur, c.next, c.intended
			cloudtest.SendJSON(w, 200, map[string]any{"instances": one})
		}
		st, err := cloudtest.New(t, d).InMemory().Status(t.Context(), d.IDs[0])
		if err != nil || st.State != c.want {
			t.Errorf("%+v: %q, %v", c, st.State, err)
		}
		if st.State == provider.Unknown && st.Billed != nil {
			t.Errorf("%+v: unknown, but billed %v", c, *st.Billed)
		}
	}
}

// An error inside a 200 is an error: a destroy that was swallowed costs money.
func TestVastErrorInside200(t *testing.T) {
	d := cloudtest.Vast(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == "DELETE" {
			cloudtest.SendJSON(w, 200, map[string]any{"success": false, "msg": "contract is locked"})
			return true
		}
		return false
	})
	if err := cloudtest.New(t, d).InMemory().Destroy(t.Context(), d.IDs[0]); err == nil || !strings.Contains(err.Error(), "contract is locked") {
		t.Errorf("%v", err)
	}
}

// A refusal for the rate is plain text; the request is made again, and told.
func TestVastRateLimitInPlainText(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Vast(t))
	p := s.InMemory()
	n := 0
	s.Next = func(r *http.Request) cloudtest.Fault {
		if n++; r.Method == "DELETE" && n <= 3 {
			return cloudtest.Limited
		}
		return cloudtest.Fine
	}
	if err := p.Destroy(t.Context(), s.IDs[0]); err != nil || s.Truth(s.IDs[0]) != "gone" {
		t.Errorf("%v, it is %s", err, s.Truth(s.IDs[0]))
	}
	s.Next = func(*http.Request) cloudtest.Fault { return cloudtest.Limited }
	if _, err := p.Status(t.Context(), s.IDs[1]); err == nil || !strings.Contains(err.Error(), "too many requests") || !strings.Contains(err.Error(), "endpoint threshold") {
		t.Errorf("%v", err)
	}
}

// A list that lacks a page is no list.
func TestVastShortListIsAnError(t *testing.T) {
	d := cloudtest.Vast(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if cloudtest.Seg(r, 1) == "v1" {
			cloudtest.SendJSON(w, 200, map[string]any{"success": true, "total_instances": 2, "next_token": nil, "instances": []any{s.JSON(s.Boxes[d.IDs[1]])}})
			return true
		}
		return false
	})
	if list, err := cloudtest.New(t, d).InMemory().(provider.Importer).Import(t.Context()); err == nil {
		t.Errorf("%+v", list)
	}
}

func TestVastPricesAndBalance(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Vast(t))
	p := s.InMemory()
	if err := p.Stop(t.Context(), s.IDs[0]); err != nil {
		t.Fatal(err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if list[0].PerHour != "" || list[0].WhileStopped != "" || list[1].PerHour != "0.81" || !list[1].Spot {
		t.Errorf("%+v: a stopped one's price is not known", list)
	}
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-1.25" || b.Credit != "12.5" {
		t.Errorf("%+v, %v", b, err)
	}
	left, err := p.Leftovers(t.Context(), s.IDs[0], provider.Stopped)
	if err != nil || len(left) != 2 || left[0].Kind != "disk" || left[1].ID != "31" {
		t.Errorf("%+v, %v", left, err)
	}
}
