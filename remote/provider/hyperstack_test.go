package provider_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// Shut off is charged in full: it is told, and a stop still has something to do.
func TestHyperstackShutOffIsCharged(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Hyperstack(t))
	id := s.IDs[0]
	s.Boxes[id].State = "off"
	p := s.InMemory()
	st, err := p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || !*st.Billed {
		t.Fatalf("%+v, %v: want stopped and billed", st, err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	st, err = p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || *st.Billed {
		t.Errorf("%+v, %v: want hibernated and not billed", st, err)
	}
	for _, line := range s.Requests {
		if strings.Contains(line, id+"/stop") {
			t.Errorf("it was shut off: %s", line)
		}
	}
}

// What cannot hibernate is not shut off in its place.
func TestHyperstackNoHibernation(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Hyperstack(t))
	s.Boxes[s.IDs[0]].Volume = "none"
	err := s.InMemory().Stop(t.Context(), s.IDs[0])
	if err == nil || !strings.Contains(err.Error(), "charged in full") || s.Truth(s.IDs[0]) != "running" {
		t.Errorf("%v, it is %s", err, s.Truth(s.IDs[0]))
	}
}

// GETs that act are made once, whatever the answer is; GETs that ask are repeated.
func TestHyperstackActsOnce(t *testing.T) {
	for _, f := range cloudtest.Unsure() {
		s := cloudtest.New(t, cloudtest.Hyperstack(t))
		p := s.InMemory()
		acts, asks := 0, 0
		s.Next = func(r *http.Request) cloudtest.Fault {
			if s.Acts(r) {
				acts++
				return f
			}
			asks++
			return cloudtest.Fine
		}
		if err := p.Stop(t.Context(), s.IDs[0]); err == nil || acts != 1 {
			t.Errorf("fault %d: %v after %d requests", f, err, acts)
		}
		s.Next = func(*http.Request) cloudtest.Fault { asks++; return f }
		asks = 0
		if _, err := p.Status(t.Context(), s.IDs[0]); err == nil || asks != 3 && f != cloudtest.Cut && f != cloudtest.Unheard {
			t.Errorf("fault %d: %v after %d questions", f, err, asks)
		}
	}
}

func TestHyperstackAddress(t *testing.T) {
	d := cloudtest.Hyperstack(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if cloudtest.Seg(r, 3) == d.IDs[0] {
			vm := s.JSON(s.Boxes[d.IDs[0]])
			vm["port_randomization"] = true
			cloudtest.SendJSON(w, 200, map[string]any{"status": true, "message": "ok", "instance": vm})
			return true
		}
		return false
	})
	p := cloudtest.New(t, d).InMemory().(provider.Addresser)
	if a, err := p.Address(t.Context(), d.IDs[0]); !errors.Is(err, provider.ErrNoAddress) || !strings.Contains(err.Error(), "random") {
		t.Errorf("%+v, %v: port 22 would be a guess", a, err)
	}
	if a, err := p.Address(t.Context(), d.IDs[1]); err != nil || a.SSH() != "ssh ubuntu@38.80.1.4" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestHyperstackPricesAndLeftovers(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Hyperstack(t))
	p := s.InMemory()
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || list[0].PerHour != "2.7" || list[0].GPUs != 2 {
		t.Errorf("%+v, %v: want 2 cards at $1.35", list, err)
	}
	left, err := p.Leftovers(t.Context(), s.IDs[0], provider.Stopped)
	if err != nil || len(left) != 3 || left[2].Kind != "volume" || left[2].PerMonth != "7.3" {
		t.Errorf("%+v, %v: want root disk, address, and the volume at $0.01 an hour", left, err)
	}
}
