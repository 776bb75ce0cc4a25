package provider_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// What was charged is told for whole hours, and says for which.
func TestRunPodCharges(t *testing.T) {
	s := cloudtest.New(t, cloudtest.RunPod(t))
	c, err := s.InMemory().(provider.Charger).Charges(t.Context(), s.IDs[0], time.Date(2026, 6, 1, 10, 30, 0, 0, time.UTC), time.Date(2026, 6, 2, 10, 0, 1, 0, time.UTC))
	if err != nil || c.Amount != "12.345" || c.Currency != "USD" || c.From.Hour() != 10 || c.From.Minute() != 0 || c.To.Hour() != 11 {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := cloudtest.New(t, cloudtest.Lambda(t)).InMemory().(provider.Charger).Charges(t.Context(), "0920582c7ff041399e34823a0be62549", time.Time{}, time.Time{}); !errors.Is(err, provider.ErrUnsupported) {
		t.Errorf("Lambda does not tell: %v", err)
	}
}

// A stopped pod says cost 0: that is no price, and its volume bills.
func TestRunPodStoppedIsNotFree(t *testing.T) {
	s := cloudtest.New(t, cloudtest.RunPod(t))
	p := s.InMemory()
	id := s.IDs[0]
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if in := list[0]; in.PerHour != "" || in.WhileStopped != "0.005479" || in.Status.Billed == nil || *in.Status.Billed {
		t.Errorf("%+v (billed %v): want no price, and 20 GB at $0.20 a month", in, in.Status.Billed)
	}
	left, err := p.Leftovers(t.Context(), id, provider.Stopped)
	if err != nil || len(left) != 1 || left[0].PerMonth != "4" || left[0].Kind != "volume" {
		t.Errorf("leftovers %+v, %v: want the volume at $4 a month", left, err)
	}
}

// A network volume outlives its pod: before the end it is told because the pod
// has it, afterwards because no pod does.
func TestRunPodNetworkVolumesOutlive(t *testing.T) {
	s := cloudtest.New(t, cloudtest.RunPod(t))
	p := s.InMemory()
	id := s.IDs[1]
	left, err := p.Leftovers(t.Context(), id, provider.Gone)
	if err != nil || len(left) != 1 || left[0].ID != "2001" || left[0].PerMonth != "" {
		t.Fatalf("before: %+v, %v", left, err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), id, provider.Gone)
	if err != nil || len(left) != 3 { // all three hang on no pod now
		t.Errorf("after: %+v, %v", left, err)
	}
}

// A pod without a published port has the proxy, which carries a shell only.
func TestRunPodProxyIsShellOnly(t *testing.T) {
	d := cloudtest.RunPod(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == "GET" && cloudtest.Seg(r, 2) == d.IDs[0] {
			pod := s.JSON(s.Boxes[d.IDs[0]])
			pod["ssh"].(map[string]any)["direct"] = nil
			cloudtest.SendJSON(w, 200, pod)
			return true
		}
		return false
	})
	a, err := cloudtest.New(t, d).InMemory().(provider.Addresser).Address(t.Context(), d.IDs[0])
	if err != nil || !a.ShellOnly || a.Host != "ssh.runpod.io" {
		t.Errorf("%+v, %v", a, err)
	}
}
