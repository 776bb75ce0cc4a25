package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// StopCharging is silently ignored where it is not supported: read back, it is told.
func TestAlibabaStoppedAndCharged(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Alibaba(t))
	p, id := s.InMemory(), s.IDs[0]
	s.Boxes[id].Volume = "keeps"
	for _, charged := range []bool{true, false} {
		if err := p.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		st, err := p.Status(t.Context(), id)
		if err != nil || st.State != provider.Stopped || st.Billed == nil || *st.Billed != charged {
			t.Errorf("%+v, %v: want stopped, charged %t", st, err, charged)
		}
		left := strings.Join(leftOf(t, p, id, provider.Stopped), ", ")
		if strings.Contains(left, "instance") != charged || !strings.Contains(left, "disk cn-beijing/d-1") || !strings.Contains(left, "volume cn-beijing/d-2") || !strings.Contains(left, "ip cn-beijing/eip-1") {
			t.Errorf("charged %t: it leaves %s", charged, left)
		}
		if err := p.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.Boxes[id].Volume = ""
	}
}

// The price is the machine's without its disk; 2099 is no end; both pages are read.
func TestAlibabaImport(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Alibaba(t))
	p := s.InMemory()
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v: want both pages", list, err)
	}
	in := list[0]
	if in.PerHour != "11.97" || in.Currency != "CNY" || in.GPU != "NVIDIA A10" || in.GPUs != 1 || !in.Ends.IsZero() || in.Status.StartedAt.IsZero() || in.Address.SSH() != "ssh root@39.1.1.10" {
		t.Errorf("%+v", in)
	}
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "9950.5" || b.Currency != "CNY" {
		t.Errorf("%+v, %v", b, err)
	}
}

// A refusal of the billing service comes inside HTTP 200, and accounts of other
// countries are known at another host.
func TestAlibabaBalanceElsewhere(t *testing.T) {
	d := cloudtest.Alibaba(t)
	d.Serve = func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.URL.Host == "business.aliyuncs.com" {
			cloudtest.SendJSON(w, 200, map[string]any{"RequestId": "R", "Success": false, "Code": "NotApplicable", "Message": "This API is not applicable for caller."})
			return
		}
		cloudtest.SendJSON(w, 200, map[string]any{"RequestId": "R", "Success": true, "Data": map[string]any{"AvailableAmount": "-3.20", "Currency": "USD"}})
	}
	b, err := cloudtest.New(t, d).InMemory().(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-3.2" || b.Currency != "USD" {
		t.Errorf("%+v, %v", b, err)
	}
	d.Serve = func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		cloudtest.SendJSON(w, 200, map[string]any{"RequestId": "R", "Success": false, "Code": "NotAuthorized", "Message": "no"})
	}
	if b, err := cloudtest.New(t, d).InMemory().(provider.Balancer).Balance(t.Context()); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("%+v, %v", b, err)
	}
}
