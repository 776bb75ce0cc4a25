package cloudtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
)

// Hyperstack has GETs that act; what is shut off it charges.
func Hyperstack(testing.TB) *Dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		if status == 500 { // its document has no body for it
			http.Error(w, say, status)
			return
		}
		SendJSON(w, status, map[string]any{"status": false, "message": say, "error_reason": "no"})
	}
	d := &Dialect{
		Kind: "hyperstack", spec: "hyperstack-openapi.yaml", prefix: "/v1", IDs: [3]string{"4001", "4002", "9999"}, Refuse: refuse, JSON: hyperstackJSON,
		Acts: func(r *http.Request) bool {
			switch Seg(r, 4) {
			case "start", "stop", "hibernate", "hibernate-restore", "hard-reboot":
				return true
			}
			return r.Method != "GET"
		},
		Auth: func(r *http.Request) bool { return r.Header.Get("api_key") == Key },
	}
	done := func(w http.ResponseWriter) { SendJSON(w, 200, map[string]any{"status": true, "message": "ok"}) }
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		page := func(name string, list []any) {
			SendJSON(w, 200, map[string]any{"status": true, "message": "ok", "count": len(list), "page": 1, "page_size": 100, name: list})
		}
		id, action := Seg(r, 3), Seg(r, 4)
		switch {
		case Seg(r, 1) == "billing":
			SendJSON(w, 200, map[string]any{"status": true, "message": "ok", "data": map[string]any{"credit": 42.5, "threshold": 0, "can_create_instance": true}})
		case Seg(r, 1) == "pricebook" && Seg(r, 2) == "":
			SendJSON(w, 200, []any{map[string]any{"id": 1, "name": "A100-80G-PCIe", "value": 1.35, "original_value": 1.35, "discount_applied": false}})
		case Seg(r, 1) == "pricebook":
			SendJSON(w, 200, map[string]any{"status": true, "message": "ok", "calculated_resource_bills": map[string]any{"org_id": 1, "resource": map[string]any{"price": 0.01, "actual_price": 0.01}}})
		case Seg(r, 2) == "volumes":
			vol := func(id int, vms ...int) any {
				at := []any{}
				for _, vm := range vms {
					at = append(at, map[string]any{"instance_id": vm})
				}
				return map[string]any{"id": id, "name": "vol", "size": 100, "attachments": at}
			}
			page("volumes", []any{vol(71, atoi(d.IDs[0])), vol(72, atoi(d.IDs[1])), vol(73)})
		case Seg(r, 2) == "snapshots":
			list := []any{}
			for _, im := range s.Images {
				list = append(list, hyperstackSnapJSON(im))
			}
			page("snapshots", list)
		case id == "":
			list := []any{}
			for _, b := range s.Live() {
				list = append(list, hyperstackJSON(b))
			}
			page("instances", list)
		case s.find(id) == nil:
			refuse(w, 404, "VM not found")
		case action == "" && r.Method == "GET":
			SendJSON(w, 200, map[string]any{"status": true, "message": "ok", "instance": hyperstackJSON(s.find(id))})
		case action == "snapshots":
			var b struct{ Name string }
			json.Unmarshal(body, &b)
			im := &Image{strconv.Itoa(500 + len(s.Images)), b.Name, id}
			if !s.drop {
				s.Images[im.ID] = im
			}
			SendJSON(w, 201, map[string]any{"status": true, "message": "ok", "snapshot": hyperstackSnapJSON(im)})
		default:
			do := map[string]string{"": "destroy", "start": "start", "hibernate-restore": "start", "stop": "off", "hibernate": "stop"}[action]
			if action == "start" && s.find(id).State == "stopped" {
				refuse(w, 400, "a hibernated VM is restored, not started")
				return
			}
			if s.act(id, do) == 409 {
				refuse(w, 400, "not possible in its state")
				return
			}
			done(w)
		}
	}
	return d
}

func hyperstackSnapJSON(im *Image) map[string]any {
	return map[string]any{"id": atoi(im.ID), "name": im.Name, "vm_id": atoi(im.Box), "size": 100, "status": "SUCCESS", "description": "d", "is_image": false, "region_id": 1,
		"created_at": "2026-11-30T10:00:00Z", "updated_at": "2026-11-30T10:00:00Z"}
}

func hyperstackJSON(b *Box) map[string]any {
	status := map[string]string{"running": "ACTIVE", "stopped": "HIBERNATED", "off": "SHUTOFF"}[b.State]
	return map[string]any{
		"id": atoi(b.ID), "name": b.Name, "status": status, "created_at": "2026-11-30T10:00:00Z", "floating_ip": "38.80.1." + strconv.Itoa(4+b.power), "floating_ip_status": "ATTACHED",
		"port_randomization": false, "environment": map[string]any{"id": 1, "name": "e", "org_id": 1, "region": "CANADA-1"},
		"flavor":  map[string]any{"id": 1, "name": "n3-A100x2", "gpu": "A100-80G-PCIe", "gpu_count": 2, "cpu": 56, "ram": 240.0, "disk": 100, "features": map[string]any{"no_hibernation": b.Volume == "none"}},
		"keypair": map[string]any{"name": "k"}, "image": map[string]any{"name": "Ubuntu"}, "labels": []string{}, "locked": false, "volume_attachments": []any{},
	}
}
