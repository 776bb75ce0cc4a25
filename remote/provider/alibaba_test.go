package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
)

// alibabaDialect knows each nonce once, as the service does.
func alibabaDialect() *dialect {
	codes := map[int][2]any{401: {404, "InvalidAccessKeyId.NotFound"}, 404: {404, "InvalidInstanceId.NotFound"}, 409: {403, "IncorrectInstanceStatus"}, 500: {500, "InternalError"}, 503: {400, "Throttling.User"}}
	refuse := func(w http.ResponseWriter, status int, say string) {
		sendJSON(w, codes[status][0].(int), map[string]any{"RequestId": "R-1", "HostId": "ecs", "Code": codes[status][1], "Message": say})
	}
	seen := map[string]bool{}
	d := &dialect{
		kind: "alibaba", ids: [3]string{"cn-beijing/i-bp1aaaa", "cn-beijing/i-bp1bbbb", "cn-beijing/i-bp1zzzz"}, refuse: refuse, key: cloudID + ":" + theKey, hosts: true, stories: cloudStories,
		acts: func(r *http.Request) bool {
			a := r.Header.Get("x-acs-action")
			return !strings.HasPrefix(a, "Describe") && !strings.HasPrefix(a, "Query")
		},
		auth: func(r *http.Request) bool {
			n := r.Header.Get("x-acs-signature-nonce")
			fresh := n != "" && !seen[n]
			seen[n] = true
			return fresh && strings.HasPrefix(r.Header.Get("Authorization"), "ACS3-HMAC-SHA256 Credential="+cloudID+",SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=")
		},
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		q := r.URL.Query()
		action, region := r.Header.Get("x-acs-action"), "cn-beijing"
		at := func(host string) {
			if r.URL.Host != "" && r.URL.Host != host {
				s.t.Errorf("%s was sent to %s, not to %s", action, r.URL.Host, host)
			}
		}
		answer := func(v map[string]any) {
			v["RequestId"] = "R-1"
			sendJSON(w, 200, v)
		}
		id := region + "/" + q.Get("InstanceId")
		switch action {
		case "DescribeRegions":
			at("ecs.cn-hangzhou.aliyuncs.com")
			answer(map[string]any{"Regions": map[string]any{"Region": []any{map[string]any{"RegionId": region, "RegionEndpoint": "ecs.cn-beijing.aliyuncs.com"}}}})
			return
		case "QueryAccountBalance":
			at("business.aliyuncs.com")
			answer(map[string]any{"Code": "200", "Success": true, "Message": "success", "Data": map[string]any{"AvailableAmount": "10,000.00", "AvailableCashAmount": "9,950.50", "CreditAmount": "0.00", "Currency": "CNY"}})
			return
		case "DescribeEipAddresses":
			at("vpc.cn-beijing.aliyuncs.com")
			_, own, _ := strings.Cut(d.ids[0], "/")
			answer(map[string]any{"TotalCount": 2, "EipAddresses": map[string]any{"EipAddress": []any{
				map[string]any{"AllocationId": "eip-1", "IpAddress": "47.1.1.1", "InstanceId": own}, map[string]any{"AllocationId": "eip-2", "IpAddress": "47.1.1.2", "InstanceId": ""}}}})
			return
		}
		at("ecs.cn-beijing.aliyuncs.com")
		switch action {
		case "DescribeInstances":
			list, next := []any{}, ""
			live := s.live()
			for i, b := range live {
				_, own, _ := strings.Cut(b.id, "/")
				if q.Has("InstanceIds") && q.Get("InstanceIds") != `["`+own+`"]` {
					continue
				}
				if !q.Has("InstanceIds") && len(live) == 2 && (i == 1) != q.Has("NextToken") {
					next = "more" // a page each
					continue
				}
				list = append(list, alibabaJSON(b))
			}
			if q.Has("NextToken") {
				next = ""
			}
			answer(map[string]any{"TotalCount": 0, "NextToken": next, "Instances": map[string]any{"Instance": list}})
		case "DescribePrice":
			answer(map[string]any{"PriceInfo": map[string]any{"Price": map[string]any{"Currency": "CNY", "TradePrice": 12.05, "DetailInfos": map[string]any{"DetailInfo": []any{
				map[string]any{"Resource": "instanceType", "TradePrice": 11.97}, map[string]any{"Resource": "systemDisk", "TradePrice": 0.08}}}}}})
		case "DescribeImages":
			list := []any{}
			for _, im := range s.images {
				if (!q.Has("ImageName") || q.Get("ImageName") == im.name) && (!q.Has("ImageId") || q.Get("ImageId") == im.id) && strings.Contains(q.Get("Status"), "Creating") {
					list = append(list, map[string]any{"ImageId": im.id, "ImageName": im.name, "Status": "Available", "Progress": "100%", "Size": 100, "DiskDeviceMappings": map[string]any{"DiskDeviceMapping": []any{map[string]any{"SnapshotId": "s-1"}}}})
				}
			}
			answer(map[string]any{"TotalCount": len(list), "Images": map[string]any{"Image": list}})
		case "DescribeDisks":
			list := []any{map[string]any{"DiskId": "d-1", "Size": 100, "Category": "cloud_essd", "DeleteWithInstance": true}, map[string]any{"DiskId": "d-2", "Size": 500, "Category": "cloud_essd", "DeleteWithInstance": false}}
			if q.Get("Status") == "Available" {
				list = list[1:]
			}
			answer(map[string]any{"NextToken": "", "Disks": map[string]any{"Disk": list}})
		case "DescribeSnapshots":
			answer(map[string]any{"NextToken": "", "Snapshots": map[string]any{"Snapshot": []any{map[string]any{"SnapshotId": "s-9", "SnapshotName": "auto", "SourceDiskId": "d-1", "SourceDiskSize": "100"}}}})
		case "CreateImage":
			for _, im := range s.images {
				if im.name == q.Get("ImageName") {
					s.t.Error("an image of a name that is taken")
				}
			}
			im := &image{fmt.Sprintf("m-%d", len(s.images)+1), q.Get("ImageName"), id}
			if !s.drop {
				s.images[im.id] = im
			}
			answer(map[string]any{"ImageId": im.id})
		default:
			do := map[string]string{"StartInstance": "start", "StopInstance": "off", "DeleteInstance": "destroy"}[action]
			b := s.find(id)
			switch {
			case b == nil:
				refuse(w, 404, "The specified InstanceId does not exist.")
				return
			case action == "StopInstance" && q.Get("StoppedMode") == "StopCharging" && b.volume != "keeps": // else silently not
				do = "stop"
			case action == "DeleteInstance" && b.state == "running" && q.Get("Force") != "true":
				refuse(w, 409, "running")
				return
			}
			if s.act(id, do) == 409 {
				refuse(w, 409, "The current status of the resource does not support this operation.")
				return
			}
			answer(map[string]any{})
		}
	}
	return d
}

func alibabaJSON(b *box) map[string]any {
	_, own, _ := strings.Cut(b.id, "/")
	v := map[string]any{"InstanceId": own, "InstanceName": b.name, "RegionId": "cn-beijing", "ZoneId": "cn-beijing-h", "InstanceType": "ecs.gn7i-c8g1.2xlarge", "GPUAmount": 1, "GPUSpec": "NVIDIA A10", "InstanceChargeType": "PostPaid",
		"SpotStrategy": "NoSpot", "CreationTime": "2026-11-20T10:00Z", "StartTime": "2026-11-30T09:59Z", "ExpiredTime": "2099-12-31T15:59Z", "AutoReleaseTime": "", "StoppedMode": "Not-applicable",
		"PublicIpAddress": map[string]any{"IpAddress": []string{}}, "EipAddress": map[string]any{"IpAddress": "", "AllocationId": ""}}
	switch b.state {
	case "running":
		v["Status"], v["PublicIpAddress"] = "Running", map[string]any{"IpAddress": []string{fmt.Sprintf("39.1.1.%d", 10+b.power)}}
	case "stopped":
		v["Status"], v["StoppedMode"] = "Stopped", "StopCharging"
	case "off":
		v["Status"], v["StoppedMode"] = "Stopped", "KeepCharging"
	}
	return v
}

func TestAlibabaConforms(t *testing.T) { t.Parallel(); conforms(t, alibabaDialect()) }
func TestAlibabaFaults(t *testing.T)   { t.Parallel(); chaos(t, alibabaDialect()) }

// StopCharging is silently ignored where it is not supported: read back, it is told.
func TestAlibabaStoppedAndCharged(t *testing.T) {
	s := newStandIn(t, alibabaDialect())
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
		if strings.Contains(left, "instance") != charged || !strings.Contains(left, "disk cn-beijing/d-1") || !strings.Contains(left, "volume cn-beijing/d-2") || !strings.Contains(left, "ip cn-beijing/eip-1") {
			t.Errorf("charged %t: it leaves %s", charged, left)
		}
		if err := p.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.boxes[id].volume = ""
	}
}

// The price is the machine's without its disk; 2099 is no end; both pages are read.
func TestAlibabaImport(t *testing.T) {
	s := newStandIn(t, alibabaDialect())
	p := s.inMemory()
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
	d := alibabaDialect()
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.URL.Host == "business.aliyuncs.com" {
			sendJSON(w, 200, map[string]any{"RequestId": "R", "Success": false, "Code": "NotApplicable", "Message": "This API is not applicable for caller."})
			return
		}
		sendJSON(w, 200, map[string]any{"RequestId": "R", "Success": true, "Data": map[string]any{"AvailableAmount": "-3.20", "Currency": "USD"}})
	}
	b, err := newStandIn(t, d).inMemory().(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-3.2" || b.Currency != "USD" {
		t.Errorf("%+v, %v", b, err)
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		sendJSON(w, 200, map[string]any{"RequestId": "R", "Success": false, "Code": "NotAuthorized", "Message": "no"})
	}
	if b, err := newStandIn(t, d).inMemory().(provider.Balancer).Balance(t.Context()); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("%+v, %v", b, err)
	}
}
