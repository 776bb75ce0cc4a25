package cloudtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Alibaba knows each nonce once, as the service does.
func Alibaba(testing.TB) *Dialect {
	codes := map[int][2]any{401: {404, "InvalidAccessKeyId.NotFound"}, 404: {404, "InvalidInstanceId.NotFound"}, 409: {403, "IncorrectInstanceStatus"}, 500: {500, "InternalError"}, 503: {400, "Throttling.User"}}
	refuse := func(w http.ResponseWriter, status int, say string) {
		SendJSON(w, codes[status][0].(int), map[string]any{"RequestId": "R-1", "HostId": "ecs", "Code": codes[status][1], "Message": say})
	}
	seen := map[string]bool{}
	d := &Dialect{
		Kind: "alibaba", IDs: [3]string{"cn-beijing/i-bp1aaaa", "cn-beijing/i-bp1bbbb", "cn-beijing/i-bp1zzzz"}, Refuse: refuse, key: CloudID + ":" + Key, hosts: true,
		Acts: func(r *http.Request) bool {
			a := r.Header.Get("x-acs-action")
			return !strings.HasPrefix(a, "Describe") && !strings.HasPrefix(a, "Query")
		},
		Auth: func(r *http.Request) bool {
			n := r.Header.Get("x-acs-signature-nonce")
			fresh := n != "" && !seen[n]
			seen[n] = true
			return fresh && strings.HasPrefix(r.Header.Get("Authorization"), "ACS3-HMAC-SHA256 Credential="+CloudID+",SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=")
		},
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, _ []byte) {
		q := r.URL.Query()
		action, region := r.Header.Get("x-acs-action"), "cn-beijing"
		at := func(host string) {
			if r.URL.Host != "" && r.URL.Host != host {
				s.t.Errorf("%s was sent to %s, not to %s", action, r.URL.Host, host)
			}
		}
		answer := func(v map[string]any) {
			v["RequestId"] = "R-1"
			SendJSON(w, 200, v)
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
			_, own, _ := strings.Cut(d.IDs[0], "/")
			answer(map[string]any{"TotalCount": 2, "EipAddresses": map[string]any{"EipAddress": []any{
				map[string]any{"AllocationId": "eip-1", "IpAddress": "47.1.1.1", "InstanceId": own}, map[string]any{"AllocationId": "eip-2", "IpAddress": "47.1.1.2", "InstanceId": ""}}}})
			return
		}
		at("ecs.cn-beijing.aliyuncs.com")
		switch action {
		case "DescribeInstances":
			list, next := []any{}, ""
			live := s.Live()
			for i, b := range live {
				_, own, _ := strings.Cut(b.ID, "/")
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
			for _, im := range s.Images {
				if (!q.Has("ImageName") || q.Get("ImageName") == im.Name) && (!q.Has("ImageId") || q.Get("ImageId") == im.ID) && strings.Contains(q.Get("Status"), "Creating") {
					list = append(list, map[string]any{"ImageId": im.ID, "ImageName": im.Name, "Status": "Available", "Progress": "100%", "Size": 100, "DiskDeviceMappings": map[string]any{"DiskDeviceMapping": []any{map[string]any{"SnapshotId": "s-1"}}}})
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
			for _, im := range s.Images {
				if im.Name == q.Get("ImageName") {
					s.t.Error("an image of a name that is taken")
				}
			}
			im := &Image{fmt.Sprintf("m-%d", len(s.Images)+1), q.Get("ImageName"), id}
			if !s.drop {
				s.Images[im.ID] = im
			}
			answer(map[string]any{"ImageId": im.ID})
		default:
			do := map[string]string{"StartInstance": "start", "StopInstance": "off", "DeleteInstance": "destroy"}[action]
			b := s.find(id)
			switch {
			case b == nil:
				refuse(w, 404, "The specified InstanceId does not exist.")
				return
			case action == "StopInstance" && q.Get("StoppedMode") == "StopCharging" && b.Volume != "keeps": // else silently not
				do = "stop"
			case action == "DeleteInstance" && b.State == "running" && q.Get("Force") != "true":
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

func alibabaJSON(b *Box) map[string]any {
	_, own, _ := strings.Cut(b.ID, "/")
	v := map[string]any{"InstanceId": own, "InstanceName": b.Name, "RegionId": "cn-beijing", "ZoneId": "cn-beijing-h", "InstanceType": "ecs.gn7i-c8g1.2xlarge", "GPUAmount": 1, "GPUSpec": "NVIDIA A10", "InstanceChargeType": "PostPaid",
		"SpotStrategy": "NoSpot", "CreationTime": "2026-11-20T10:00Z", "StartTime": "2026-11-30T09:59Z", "ExpiredTime": "2099-12-31T15:59Z", "AutoReleaseTime": "", "StoppedMode": "Not-applicable",
		"PublicIpAddress": map[string]any{"IpAddress": []string{}}, "EipAddress": map[string]any{"IpAddress": "", "AllocationId": ""}}
	switch b.State {
	case "running":
		v["Status"], v["PublicIpAddress"] = "Running", map[string]any{"IpAddress": []string{fmt.Sprintf("39.1.1.%d", 10+b.power)}}
	case "stopped":
		v["Status"], v["StoppedMode"] = "Stopped", "StopCharging"
	case "off":
		v["Status"], v["StoppedMode"] = "Stopped", "KeepCharging"
	}
	return v
}
