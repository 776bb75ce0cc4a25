package cloudtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Vast accepts what is so already, and lists one instance a page.
func Vast(testing.TB) *Dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		SendJSON(w, status, map[string]any{"success": false, "error": "not_ok", "msg": say})
	}
	d := &Dialect{
		Kind: "vast", spec: "vast-openapi.yaml", IDs: [3]string{"1234567", "1234568", "999"}, Refuse: refuse, JSON: vastJSON,
		Acts: func(r *http.Request) bool { return r.Method != "GET" },
		Auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+Key },
		// What the service says of an instance that does not exist is not in its document.
		unchecked: func(r *http.Request, status int) bool {
			return r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/api/v0/instances/") && r.Header.Get("X-Absent") != ""
		},
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := Seg(r, 3)
		switch {
		case Seg(r, 2) == "charges": // two pages
			row := func(id string, amount float64) any {
				return map[string]any{"start": 1780272000, "end": 1780358400, "type": "instance", "source": "instance-" + id, "amount": amount}
			}
			page := map[string]any{"success": true, "count": 2, "total": 3, "next_token": "t2", "results": []any{row(s.IDs[0], 1.125), row(s.IDs[1], 99)}}
			if r.URL.Query().Get("after_token") != "" {
				page["results"], page["next_token"] = []any{row(s.IDs[0], 2)}, nil
			}
			SendJSON(w, 200, page)
		case Seg(r, 2) == "users":
			SendJSON(w, 200, map[string]any{"id": 7, "balance": -1.25, "credit": 12.5, "email": "a@example.com"})
		case Seg(r, 2) == "volumes":
			SendJSON(w, 200, map[string]any{"volumes": []any{
				map[string]any{"id": 31, "disk_space": 50, "instances": []any{map[string]any{"id": atoi(s.IDs[0])}}, "storage_total_cost": 0.01},
				map[string]any{"id": 32, "disk_space": 60, "instances": []any{map[string]any{"id": atoi(s.IDs[1])}}},
				map[string]any{"id": 33, "disk_space": 70, "instances": []any{}},
			}})
		case Seg(r, 1) == "v1":
			vastPage(s, w, r)
		case r.Method == "GET":
			b := s.find(id)
			if b == nil {
				r.Header.Set("X-Absent", "1")
				SendJSON(w, 200, map[string]any{"instances": nil})
				return
			}
			one := vastJSON(b)
			one["ports"] = []int{22}
			SendJSON(w, 200, map[string]any{"instances": one})
		case s.find(id) == nil:
			refuse(w, 404, "Instance not found")
		case r.Method == "DELETE":
			s.act(id, "destroy")
			SendJSON(w, 200, map[string]any{"success": true})
		default:
			var b struct{ State string }
			json.Unmarshal(body, &b)
			s.act(id, map[string]string{"running": "start", "stopped": "stop"}[b.State]) // what is so already is accepted
			SendJSON(w, 200, map[string]any{"success": true})
		}
	}
	return d
}

// vastPage has one instance a page: the list is only whole when all are read.
func vastPage(s *StandIn, w http.ResponseWriter, r *http.Request) {
	live := s.Live()
	n := atoi(strings.TrimPrefix(r.URL.Query().Get("after_token"), "t"))
	page := map[string]any{"success": true, "instances_found": 1, "total_instances": len(live), "next_token": nil, "instances": []any{}}
	if n < len(live) {
		page["instances"] = []any{vastJSON(live[n])}
	}
	if n+1 < len(live) {
		page["next_token"] = "t" + string(rune('1'+n))
	}
	SendJSON(w, 200, page)
}

func vastJSON(b *Box) map[string]any {
	one := map[string]any{
		"id": atoi(b.ID), "label": b.Name, "actual_status": "exited", "cur_state": "stopped", "next_state": "stopped", "intended_status": "stopped",
		"gpu_name": "RTX 4090", "num_gpus": 2, "geolocation": "Sweden, SE", "dph_total": 0.81, "is_bid": true, "start_date": float64(b.started.Unix()), "end_date": 1.8e9,
		"public_ipaddr": "79.117.1.2", "ssh_host": "ssh4.vast.ai", "ssh_port": 12000 + b.power, "ports": nil,
		"storage_cost": 0.2, "storage_total_cost": 0.0123, "credit_balance": nil,
	}
	if b.State == "running" {
		one["actual_status"], one["cur_state"], one["next_state"], one["intended_status"] = "running", "running", "running", "running"
		one["ports"] = map[string]any{"22/tcp": []any{map[string]any{"HostIp": "0.0.0.0", "HostPort": "4" + string(rune('1'+b.power)) + "022"}}}
		if b.wanted == "stopped" {
			one["next_state"], one["intended_status"] = "stopped", "stopped"
		}
	}
	return one
}
