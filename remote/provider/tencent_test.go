package provider_test

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"rentop/remote/needtest"
	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// By default a stop keeps charging. STOP_CHARGING is asked for, and read back: where
// it was not done, "stopped, and charged" is told.
func TestTencentStoppedAndCharged(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Tencent(t))
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
		if strings.Contains(left, "instance") != charged || !strings.Contains(left, "disk ap-beijing/disk-1") || !strings.Contains(left, "volume ap-beijing/disk-2") || !strings.Contains(left, "ip ap-beijing/eip-1") {
			t.Errorf("charged %t: it leaves %s", charged, left)
		}
		if err := p.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.Boxes[id].Volume = ""
	}
}

// Hundredths of a yuan; a price that falls after some hours is no single price.
func TestTencentMoney(t *testing.T) {
	s := cloudtest.New(t, cloudtest.Tencent(t))
	p := s.InMemory()
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "123.455" || b.Currency != "CNY" {
		t.Errorf("%+v, %v", b, err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 || list[0].PerHour != "8.68" || list[0].GPU != "NVIDIA T4" || list[0].GPUs != 1 || list[0].Address.SSH() != "ssh ubuntu@43.1.2.10" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The recorded inquiry has steps: from some hour on another price holds, and none is
// told. Without its steps its first price is.
func TestTencentPriceSteps(t *testing.T) {
	text, err := os.ReadFile(needtest.Shared(t, "specs", "tencent-inquiry-price-example.json"))
	if err != nil {
		t.Fatal(err)
	}
	without := regexp.MustCompile(`("UnitPriceDiscount(Second|Third)Step"):[0-9.]+`).ReplaceAll(text, []byte("$1:0"))
	for _, c := range []struct {
		recorded []byte
		want     string
	}{{text, ""}, {without, "0.08"}, {bytes.Replace(without, []byte("HOUR"), []byte("MONTH"), 1), ""}} {
		d := cloudtest.Tencent(t)
		d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
			if r.Header.Get("X-TC-Action") == "InquiryPriceRunInstances" {
				w.Write(c.recorded)
				return true
			}
			return false
		})
		list, err := cloudtest.New(t, d).InMemory().(provider.Importer).Import(t.Context())
		if err != nil || len(list) != 2 || list[0].PerHour != c.want {
			t.Errorf("%+v, %v: want %q", list, err, c.want)
		}
	}
}

// A subscription ends on its day, has no price an hour, and after its destroy lies
// in the recycle bin: that is not gone.
func TestTencentSubscription(t *testing.T) {
	d := cloudtest.Tencent(t)
	state := "RUNNING"
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
		if r.Header.Get("X-TC-Action") != "DescribeInstances" {
			return false
		}
		v := s.JSON(s.Boxes[d.IDs[0]])
		v["InstanceChargeType"], v["ExpiredTime"], v["InstanceState"] = "PREPAID", "2026-12-10T02:47:36Z", state
		cloudtest.SendJSON(w, 200, map[string]any{"Response": map[string]any{"RequestId": "r", "TotalCount": 1, "InstanceSet": []any{v}}})
		return true
	})
	p := cloudtest.New(t, d).InMemory()
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 1 || list[0].PerHour != "" || list[0].Ends.Day() != 10 {
		t.Errorf("%+v, %v", list, err)
	}
	state = "SHUTDOWN"
	if st, err := p.Status(t.Context(), d.IDs[0]); err != nil || st.State != provider.Changing || !strings.Contains(st.Detail, "recycle bin") {
		t.Errorf("%+v, %v", st, err)
	}
}

// A no inside HTTP 200 is a no, and a start without a free machine says what to do.
func TestTencentErrorInside200(t *testing.T) {
	d := cloudtest.Tencent(t)
	body := ""
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
		if r.Header.Get("X-TC-Action") == "StartInstances" {
			w.Write([]byte(body))
			return true
		}
		return false
	})
	s := cloudtest.New(t, d)
	s.Boxes[d.IDs[0]].State = "stopped"
	p := s.InMemory()
	for _, body = range []string{`{"Response":{"Error":{"Code":"ResourceInsufficient.SpecifiedInstanceType","Message":"no stock"},"RequestId":"r"}}`, `{"Response":{}}`, `{}`, `[]`, `ok`, ``} {
		err := p.Start(t.Context(), d.IDs[0])
		if err == nil || strings.Contains(body, "stock") && !strings.Contains(err.Error(), "no such machine is free") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
