package cloudtest

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Lambda can only be destroyed.
func Lambda(testing.TB) *Dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		SendJSON(w, status, map[string]any{"error": map[string]any{"code": "global/error", "message": say}})
	}
	d := &Dialect{
		Kind: "lambda", spec: "lambda-openapi-thirdparty.yml", prefix: "/api/v1", Refuse: refuse,
		IDs:  [3]string{"0920582c7ff041399e34823a0be62549", "0920582c7ff041399e34823a0be62550", "0920582c7ff041399e34823a0be60000"},
		Acts: func(r *http.Request) bool { return r.Method != "GET" },
		Auth: func(r *http.Request) bool {
			user, pass, ok := r.BasicAuth()
			return ok && user == Key && pass == ""
		},
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := Seg(r, 3)
		switch Seg(r, 2) {
		case "instance-types":
			SendJSON(w, 200, map[string]any{"data": map[string]any{"gpu_2x_a100_sxm4": map[string]any{
				"instance_type":                   map[string]any{"name": "gpu_2x_a100_sxm4", "description": "2x A100 SXM4 (40 GB)", "price_cents_per_hour": 258, "specs": map[string]any{"vcpus": 24, "memory_gib": 85, "storage_gib": 512}},
				"regions_with_capacity_available": []any{},
			}}})
		case "file-systems":
			SendJSON(w, 200, map[string]any{"data": []any{
				map[string]any{"id": "fs-1", "name": "data-0", "bytes_used": int64(1000) << 30},
				map[string]any{"id": "fs-2", "name": "data-1"},
				map[string]any{"id": "fs-3", "name": "forgotten"},
			}})
		case "instance-operations":
			var b struct {
				IDs []string `json:"instance_ids"`
			}
			json.Unmarshal(body, &b)
			if len(b.IDs) != 1 || s.find(b.IDs[0]) == nil {
				refuse(w, 404, "Specified instance does not exist.")
				return
			}
			s.act(b.IDs[0], "destroy")
			SendJSON(w, 200, map[string]any{"data": map[string]any{"terminated_instances": []any{map[string]any{"id": b.IDs[0], "status": "terminated"}}}})
		default:
			if id == "" {
				all := []any{}
				for _, b := range s.Live() {
					all = append(all, lambdaJSON(s, b))
				}
				SendJSON(w, 200, map[string]any{"data": all})
			} else if b := s.find(id); b == nil {
				refuse(w, 404, "Specified instance does not exist.")
			} else {
				SendJSON(w, 200, map[string]any{"data": lambdaJSON(s, b)})
			}
		}
	}
	return d
}

func lambdaJSON(s *StandIn, b *Box) map[string]any {
	n := 0
	if b.ID == s.IDs[1] {
		n = 1
	}
	return map[string]any{
		"id": b.ID, "name": b.Name, "ip": "10.10.10.1", "status": "active", "ssh_key_names": []string{"k"}, "file_system_names": []string{"data-" + string(rune('0'+n))},
		"region": map[string]any{"name": "us-tx-3", "description": "Austin, Texas"}, "instance_type": map[string]any{"name": "gpu_2x_a100_sxm4", "description": "2x A100 SXM4 (40 GB)"},
		"hostname": "h", "jupyter_token": "t", "jupyter_url": "https://j",
	}
}
