package cloudtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Tencent says everything with HTTP 200, its refusals too.
func Tencent(testing.TB) *Dialect {
	codes := map[int]string{401: "AuthFailure.SecretIdNotFound", 404: "InvalidInstanceId.NotFound", 409: "InvalidInstanceState", 500: "InternalError", 503: "RequestLimitExceeded", 507: "ResourceInsufficient.SpecifiedInstanceType"}
	refuse := func(w http.ResponseWriter, status int, say string) {
		SendJSON(w, 200, map[string]any{"Response": map[string]any{"Error": map[string]any{"Code": codes[status], "Message": say}, "RequestId": "r-1"}})
	}
	d := &Dialect{
		Kind: "tencent", IDs: [3]string{"ap-beijing/ins-aaaa1111", "ap-beijing/ins-bbbb2222", "ap-beijing/ins-zzzz9999"}, Refuse: refuse, JSON: tencentJSON, key: CloudID + ":" + Key, hosts: true,
		Acts: func(r *http.Request) bool {
			a := r.Header.Get("X-TC-Action")
			return !strings.HasPrefix(a, "Describe") && !strings.HasPrefix(a, "Inquiry")
		},
		Auth: func(r *http.Request) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "TC3-HMAC-SHA256 Credential="+CloudID+"/")
		},
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
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
			SendJSON(w, 200, map[string]any{"Response": v})
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
			all := s.Live()
			if len(in.InstanceIds) == 1 {
				if all = nil; s.find(region+"/"+in.InstanceIds[0]) == nil {
					refuse(w, 404, "not found")
					return
				}
				all = append(all, s.find(region+"/"+in.InstanceIds[0]))
			}
			Page := []any{}
			for i, b := range all { // one a page, whatever is asked for
				if i == in.Offset {
					Page = append(Page, tencentJSON(b))
				}
			}
			answer(map[string]any{"TotalCount": len(all), "InstanceSet": Page})
		case "InquiryPriceRunInstances":
			answer(map[string]any{"Price": map[string]any{"InstancePrice": map[string]any{"ChargeUnit": "HOUR", "UnitPrice": 20, "UnitPriceDiscount": 8.68, "UnitPriceDiscountSecondStep": 0, "UnitPriceDiscountThirdStep": 0}}})
		case "DescribeImages":
			list := []any{}
			for _, im := range s.Images {
				if len(in.ImageIds) == 0 || in.ImageIds[0] == im.ID {
					list = append(list, map[string]any{"ImageId": im.ID, "ImageName": im.Name, "ImageState": "NORMAL", "ImageSize": 50, "SnapshotSet": []any{map[string]any{"SnapshotId": "snap-1", "DiskUsage": "SYSTEM_DISK"}}})
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
			if in.ForcePoweroff != "false" || len(in.DataDiskIds) != 1 || len(in.ImageName) > 60 {
				s.t.Errorf("image %s", body)
			}
			im := &Image{fmt.Sprintf("img-%d", len(s.Images)+1), in.ImageName, region + "/" + in.InstanceId}
			if !s.drop {
				s.Images[im.ID] = im
			}
			answer(map[string]any{"ImageId": im.ID})
		default:
			id := region + "/" + in.InstanceIds[0]
			do := map[string]string{"StartInstances": "start", "StopInstances": "off", "TerminateInstances": "destroy"}[action]
			b := s.find(id)
			switch {
			case b == nil:
				refuse(w, 404, "not found")
				return
			case action == "StopInstances" && in.StoppedMode == "STOP_CHARGING" && b.Volume != "keeps": // else as by default
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

func tencentJSON(b *Box) map[string]any {
	_, own, _ := strings.Cut(b.ID, "/")
	v := map[string]any{"InstanceId": own, "InstanceName": b.Name, "InstanceState": "RUNNING", "StopChargingMode": "NOT_APPLICABLE", "RestrictState": "NORMAL", "InstanceChargeType": "POSTPAID_BY_HOUR", "InstanceType": "GN7.2XLARGE32",
		"ImageId": "img-487zeit5", "OsName": "Ubuntu Server 22.04 LTS 64bit", "CreatedTime": "2026-11-20T02:43:51Z", "ExpiredTime": nil, "PublicIpAddresses": nil, "Placement": map[string]any{"Zone": "ap-beijing-6"},
		"GPUInfo": map[string]any{"GPUCount": 1.0, "GPUId": []string{"x"}, "GPUType": "NVIDIA T4"}, "SystemDisk": map[string]any{"DiskType": "CLOUD_BSSD", "DiskId": "disk-1", "DiskSize": 50}}
	switch b.State {
	case "running":
		v["PublicIpAddresses"] = []string{fmt.Sprintf("43.1.2.%d", 10+b.power)}
	case "stopped":
		v["InstanceState"], v["StopChargingMode"] = "STOPPED", "STOP_CHARGING"
	case "off":
		v["InstanceState"], v["StopChargingMode"] = "STOPPED", "KEEP_CHARGING"
	}
	return v
}
