package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// Money is in thousandths of a yuan.
func TestAutoDLThousandths(t *testing.T) {
	s := cloudtest.New(t, cloudtest.AutoDL(t))
	p := s.InMemory()
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "12.345" || b.Credit != "2" || b.Currency != "CNY" {
		t.Errorf("%+v, %v", b, err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 || list[0].PerHour != "1.97" || list[0].GPU != "RTX 4090D" {
		t.Errorf("%+v, %v", list, err)
	}
}

// An error comes with HTTP 200: it is an error, and what was asked is not done.
func TestAutoDLErrorInside200(t *testing.T) {
	for _, body := range []string{`{"code":"NoStock","msg":"库存不足"}`, `{"data":{}}`, `[]`, `ok`} {
		d := cloudtest.AutoDL(t)
		d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
			if cloudtest.Seg(r, 5) == "power_on" {
				w.Write([]byte(body))
				return true
			}
			return false
		})
		s := cloudtest.New(t, d)
		s.Boxes[d.IDs[0]].State = "stopped"
		err := s.InMemory().Start(t.Context(), d.IDs[0])
		if err == nil || strings.Contains(body, "NoStock") && !strings.Contains(err.Error(), "NoStock 库存不足") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Port and password are new after each power cycle, and the password is nowhere.
func TestAutoDLPowerCycle(t *testing.T) {
	s := cloudtest.New(t, cloudtest.AutoDL(t))
	p := s.InMemory()
	id := s.IDs[0]
	ask := func() provider.Address {
		a, err := p.(provider.Addresser).Address(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := ask()
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.(provider.Addresser).Address(t.Context(), id); !errors.Is(err, provider.ErrNoAddress) {
		t.Errorf("stopped: %v", err)
	}
	if err := p.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	second := ask()
	if first.Port == second.Port || first.Password == second.Password || second.Password.Reveal() != "p4ss-1-word" {
		t.Errorf("%+v, then %+v", first, second)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", second, second, second), "p4ss") {
		t.Error("the password is shown")
	}
}

// A release needs a shutdown, never a start; one that is not done is no release.
func TestAutoDLReleaseShutsDownFirst(t *testing.T) {
	s := cloudtest.New(t, cloudtest.AutoDL(t))
	p := s.InMemory()
	if err := p.Destroy(t.Context(), s.IDs[0]); err != nil || s.Truth(s.IDs[0]) != "gone" {
		t.Errorf("%v, it is %s", err, s.Truth(s.IDs[0]))
	}
	for _, line := range s.Requests {
		if strings.Contains(line, "power_on") {
			t.Errorf("it was started: %s", line)
		}
	}
	s.Lag() // accepted and not done, as by an instance that still boots
	if err := p.Destroy(t.Context(), s.IDs[1]); err == nil || !strings.Contains(err.Error(), "was not released") {
		t.Errorf("%v", err)
	}
	if s.Truth(s.IDs[1]) != "running" {
		t.Errorf("it is %s", s.Truth(s.IDs[1]))
	}
}

// Fifteen days after its shutdown an instance goes with its data.
func TestAutoDLStoppedIsReleased(t *testing.T) {
	s := cloudtest.New(t, cloudtest.AutoDL(t))
	s.Boxes[s.IDs[0]].State = "stopped"
	list, err := s.InMemory().(provider.Importer).Import(t.Context())
	if err != nil || !list[0].Ends.Equal(time.Date(2026, 12, 15, 11, 0, 0, 0, time.UTC)) || list[0].PerHour != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
