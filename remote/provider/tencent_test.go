package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"rentop/remote/provider"
)

// tencentDialect says everything with HTTP 200, its refusals too.
func tencentDialect() *dialect {
	codes := map[int]string{401: "AuthFailure.SecretIdNotFound", 404: "InvalidInstanceId.NotFound", 409: "InvalidInstanceState", 500: "InternalError", 503: "RequestLimitExceeded", 507: "ResourceInsufficient.SpecifiedInstanceType"}
	refuse := func(w http.ResponseWriter, status int, say string) {
		sendJSON(w, 200, map[string]any{"Response": map[string]any{"Error": map[string]any{"Code": codes[status], "Message": say}, "RequestId": "r-1"}})
	}
	d := &dialect{
		kind: "tencent", ids: [3]string{"ap-beijing/ins-aaaa1111", "ap-beijing/ins-bbbb2222", "ap-beijing/ins-zzzz9999"}, refuse: refuse, key: cloudID + ":" + theKey, hosts: true, stories: cloudStories,
		acts: func(r *http.Request) bool {
			a := r.Header.Get("X-TC-Action")
			return !strings.HasPrefix(a, "Describe") && !strings.HasPrefix(a, "Inquiry")
		},
		auth: func(r *http.Request) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "TC3-HMAC-SHA256 Credential="+cloudID+"/")
		},
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		var in struct {
			InstanceIds, ImageIds []string
			InstanceId, ImageName string
			StopType, StoppedMode string
			ForcePoweroff         string
			DataDiskIds           []string
			Offset, Limit         int
			Filters               []struct {
				Name   string
				Values []string
			}
		}
		if err := json.Unmarshal(body, &in); err != nil {
			s.t.Errorf("%s: %v", body, err)
		}
		action, region := r.Header.Get("X-TC-Action"), r.Header.Get("X-TC-Region")
		service := "cvm"
		switch action {
		case "DescribeDisks":
			service = "cbs"
		case "DescribeAddresses":
			service = "vpc"
		case "DescribeAccountBalance":
			service = "billing"
		}
		if r.URL.Host != "" && r.URL.Host != service+".tencentcloudapi.com" {
			s.t.Errorf("%s was sent to %s", action, r.URL.Host)
		}
		if region != "ap-beijing" && action != "DescribeRegions" && action != "DescribeAccountBalance" {
			s.t.Errorf("%s in %q", action, region)
		}
		answer := func(v map[string]any) {
			v["RequestId"] = "r-1"
			sendJSON(w, 200, map[string]any{"Response": v})
		}
		filter := ""
		if len(in.Filters) > 0 {
			filter = in.Filters[0].Name
		}
		switch action {
		case "DescribeRegions":
			answer(map[string]any{"TotalCount": 1, "RegionSet": []any{map[string]any{"Region": "ap-beijing", "RegionName": "Beijing", "RegionState": "AVAILABLE"}, map[string]any{"Region": "ap-old", "RegionState": "UNAVAILABLE"}}})
		case "DescribeAccountBalance":
			answer(map[string]any{"Balance": 12345, "RealBalance": 12345.5, "Uin": 1})
		case "DescribeInstances":
			all := s.live()
			if len(in.InstanceIds) == 1 {
				if all = nil; s.find(region+"/"+in.InstanceIds[0]) == nil {
					refuse(w, 404, "not found")
					return
				}
				all = append(all, s.find(region+"/"+in.InstanceIds[0]))
			}
			page := []any{}
			for i, b := range all { // one a page, whatever is asked for
				if i == in.Offset {
					page = append(page, tencentJSON(b))
				}
			}
			answer(map[string]any{"TotalCount": len(all), "InstanceSet": page})
		case "InquiryPriceRunInstances":
			answer(map[string]any{"Price": map[string]any{"InstancePrice": map[string]any{"ChargeUnit": "HOUR", "UnitPrice": 20, "UnitPriceDiscount": 8.68, "UnitPriceDiscountSecondStep": 0, "UnitPriceDiscountThirdStep": 0}}})
		case "DescribeImages":
			list := []any{}
			for _, im := range s.images {
				if len(in.ImageIds) == 0 || in.ImageIds[0] == im.id {
					list = append(list, map[string]any{"ImageId": im.id, "ImageName": im.name, "ImageState": "NORMAL", "ImageSize": 50, "SnapshotSet": []any{map[string]any{"SnapshotId": "snap-1", "DiskUsage": "SYSTEM_DISK"}}})
				}
			}
			answer(map[string]any{"TotalCount": len(list), "ImageSet": list[min(in.Offset, len(list)):]})
		case "DescribeDisks":
			list := []any{map[string]any{"DiskId": "disk-1", "DiskUsage": "SYSTEM_DISK", "DiskSize": 50, "DiskType": "CLOUD_BSSD", "DeleteWithInstance": true}, map[string]any{"DiskId": "disk-2", "DiskUsage": "DATA_DISK", "DiskSize": 500, "DiskType": "CLOUD_HSSD", "DeleteWithInstance": nil}}
			if filter == "disk-state" {
				list = list[1:]
			}
			answer(map[string]any{"TotalCount": len(list), "DiskSet": list})
		case "DescribeAddresses":
			one := map[string]any{"AddressId": "eip-1", "AddressIp": "43.1.1.1"}
			if filter == "address-status" {
				one["AddressId"] = "eip-2"
			}
			answer(map[string]any{"TotalCount": 1, "AddressSet": []any{one}})
		case "CreateImage":
			if in.ForcePoweroff != "FALSE" || len(in.DataDiskIds) != 1 || len(in.ImageName) > 60 {
				s.t.Errorf("image %s", body)
			}
			im := &image{fmt.Sprintf("img-%d", len(s.images)+1), in.ImageName, region + "/" + in.InstanceId}
			if !s.drop {
				s.images[im.id] = im
			}
			answer(map[string]any{"ImageId": im.id})
		default:
			id := region + "/" + in.InstanceIds[0]
			do := map[string]string{"StartInstances": "start", "StopInstances": "off", "TerminateInstances": "destroy"}[action]
			b := s.find(id)
			switch {
			case b == nil:
				refuse(w, 404, "not found")
				return
			case action == "StopInstances" && in.StoppedMode == "STOP_CHARGING" && b.volume != "keeps": // else as by default
				do = "stop"
			}
			if action == "StopInstances" && in.StopType != "SOFT" {
				s.t.Error("the power is cut")
			}
			if s.act(id, do) == 409 {
				refuse(w, 409, "The current status does not support this operation")
				return
			}
			answer(map[string]any{})
		}
	}
	return d
}

func tencentJSON(b *box) map[string]any {
	_, own, _ := strings.Cut(b.id, "/")
	v := map[string]any{"InstanceId": own, "InstanceName": b.name, "InstanceState": "RUNNING", "StopChargingMode": "NOT_APPLICABLE", "RestrictState": "NORMAL", "InstanceChargeType": "POSTPAID_BY_HOUR", "InstanceType": "GN7.2XLARGE32",
		"ImageId": "img-487zeit5", "OsName": "Ubuntu Server 22.04 LTS 64bit", "CreatedTime": "2026-11-20T02:43:51Z", "ExpiredTime": nil, "PublicIpAddresses": nil, "Placement": map[string]any{"Zone": "ap-beijing-6"},
		"GPUInfo": map[string]any{"GPUCount": 1.0, "GPUId": []string{"x"}, "GPUType": "NVIDIA T4"}, "SystemDisk": map[string]any{"DiskType": "CLOUD_BSSD", "DiskId": "disk-1", "DiskSize": 50}}
	switch b.state {
	case "running":
		v["PublicIpAddresses"] = []string{fmt.Sprintf("43.1.2.%d", 10+b.power)}
	case "stopped":
		v["InstanceState"], v["StopChargingMode"] = "STOPPED", "STOP_CHARGING"
	case "off":
		v["InstanceState"], v["StopChargingMode"] = "STOPPED", "KEEP_CHARGING"
	}
	return v
}

func TestTencentConforms(t *testing.T) { t.Parallel(); conforms(t, tencentDialect()) }
func TestTencentFaults(t *testing.T)   { t.Parallel(); chaos(t, tencentDialect()) }

// By default a stop keeps charging. STOP_CHARGING is asked for, and read back: where
// it was not done, "stopped, and charged" is told.
func TestTencentStoppedAndCharged(t *testing.T) {
	s := newStandIn(t, tencentDialect())
	p, id := s.inMemory(), s.d.ids[0]
	s.boxes[id].volume = "keeps"
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
		s.boxes[id].volume = ""
	}
}

// Hundredths of a yuan; a price that falls after some hours is no single price.
func TestTencentMoney(t *testing.T) {
	s := newStandIn(t, tencentDialect())
	p := s.inMemory()
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
	text, err := os.ReadFile(sharedSpec(t, "tencent-inquiry-price-example.json"))
	if err != nil {
		t.Fatal(err)
	}
	without := regexp.MustCompile(`("UnitPriceDiscount(Second|Third)Step"):[0-9.]+`).ReplaceAll(text, []byte("$1:0"))
	for _, c := range []struct {
		recorded []byte
		want     string
	}{{text, ""}, {without, "0.08"}, {bytes.Replace(without, []byte("HOUR"), []byte("MONTH"), 1), ""}} {
		d := tencentDialect()
		serve := d.serve
		d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
			if r.Header.Get("X-TC-Action") == "InquiryPriceRunInstances" {
				w.Write(c.recorded)
				return
			}
			serve(s, w, r, b)
		}
		list, err := newStandIn(t, d).inMemory().(provider.Importer).Import(t.Context())
		if err != nil || len(list) != 2 || list[0].PerHour != c.want {
			t.Errorf("%+v, %v: want %q", list, err, c.want)
		}
	}
}

// A subscription ends on its day, has no price an hour, and after its destroy lies
// in the recycle bin: that is not gone.
func TestTencentSubscription(t *testing.T) {
	d := tencentDialect()
	serve, state := d.serve, "RUNNING"
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
		if r.Header.Get("X-TC-Action") != "DescribeInstances" {
			serve(s, w, r, b)
			return
		}
		v := tencentJSON(s.boxes[d.ids[0]])
		v["InstanceChargeType"], v["ExpiredTime"], v["InstanceState"] = "PREPAID", "2026-12-10T02:47:36Z", state
		sendJSON(w, 200, map[string]any{"Response": map[string]any{"RequestId": "r", "TotalCount": 1, "InstanceSet": []any{v}}})
	}
	p := newStandIn(t, d).inMemory()
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 1 || list[0].PerHour != "" || list[0].Ends.Day() != 10 {
		t.Errorf("%+v, %v", list, err)
	}
	state = "SHUTDOWN"
	if st, err := p.Status(t.Context(), d.ids[0]); err != nil || st.State != provider.Changing || !strings.Contains(st.Detail, "recycle bin") {
		t.Errorf("%+v, %v", st, err)
	}
}

// A no inside HTTP 200 is a no, and a start without a free machine says what to do.
func TestTencentErrorInside200(t *testing.T) {
	d := tencentDialect()
	serve := d.serve
	body := ""
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
		if r.Header.Get("X-TC-Action") == "StartInstances" {
			w.Write([]byte(body))
			return
		}
		serve(s, w, r, b)
	}
	s := newStandIn(t, d)
	s.boxes[d.ids[0]].state = "stopped"
	p := s.inMemory()
	for _, body = range []string{`{"Response":{"Error":{"Code":"ResourceInsufficient.SpecifiedInstanceType","Message":"no stock"},"RequestId":"r"}}`, `{"Response":{}}`, `{}`, `[]`, `ok`, ``} {
		err := p.Start(t.Context(), d.ids[0])
		if err == nil || strings.Contains(body, "stock") && !strings.Contains(err.Error(), "no such machine is free") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
