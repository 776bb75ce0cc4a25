package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
)

func lambdaDialect() *dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		sendJSON(w, status, map[string]any{"error": map[string]any{"code": "global/error", "message": say}})
	}
	d := &dialect{
		kind: "lambda", spec: "lambda-openapi-thirdparty.yml", prefix: "/api/v1", refuse: refuse,
		ids:  [3]string{"0920582c7ff041399e34823a0be62549", "0920582c7ff041399e34823a0be62550", "0920582c7ff041399e34823a0be60000"},
		acts: func(r *http.Request) bool { return r.Method != "GET" },
		auth: func(r *http.Request) bool {
			user, pass, ok := r.BasicAuth()
			return ok && user == theKey && pass == ""
		},
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := seg(r, 3)
		switch seg(r, 2) {
		case "instance-types":
			sendJSON(w, 200, map[string]any{"data": map[string]any{"gpu_2x_a100_sxm4": map[string]any{
				"instance_type":                   map[string]any{"name": "gpu_2x_a100_sxm4", "description": "2x A100 SXM4 (40 GB)", "price_cents_per_hour": 258, "specs": map[string]any{"vcpus": 24, "memory_gib": 85, "storage_gib": 512}},
				"regions_with_capacity_available": []any{},
			}}})
		case "file-systems":
			sendJSON(w, 200, map[string]any{"data": []any{
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
			sendJSON(w, 200, map[string]any{"data": map[string]any{"terminated_instances": []any{map[string]any{"id": b.IDs[0], "status": "terminated"}}}})
		default:
			if id == "" {
				all := []any{}
				for _, b := range s.live() {
					all = append(all, lambdaJSON(s, b))
				}
				sendJSON(w, 200, map[string]any{"data": all})
			} else if b := s.find(id); b == nil {
				refuse(w, 404, "Specified instance does not exist.")
			} else {
				sendJSON(w, 200, map[string]any{"data": lambdaJSON(s, b)})
			}
		}
	}
	return d
}

func lambdaJSON(s *standIn, b *box) map[string]any {
	n := 0
	if b.id == s.d.ids[1] {
		n = 1
	}
	return map[string]any{
		"id": b.id, "name": b.name, "ip": "10.10.10.1", "status": "active", "ssh_key_names": []string{"k"}, "file_system_names": []string{"data-" + string(rune('0'+n))},
		"region": map[string]any{"name": "us-tx-3", "description": "Austin, Texas"}, "instance_type": map[string]any{"name": "gpu_2x_a100_sxm4", "description": "2x A100 SXM4 (40 GB)"},
		"hostname": "h", "jupyter_token": "t", "jupyter_url": "https://j",
	}
}

func TestLambdaConforms(t *testing.T) { conforms(t, lambdaDialect()) }
func TestLambdaFaults(t *testing.T)   { chaos(t, lambdaDialect()) }

// There is no stop: it is refused here, and nothing is sent.
func TestLambdaHasNoStop(t *testing.T) {
	s := newStandIn(t, lambdaDialect())
	p := s.inMemory()
	if can := p.Can(); can.Stop || can.Start || can.Snapshot || !can.Destroy {
		t.Errorf("%+v", can)
	}
	if err := p.Stop(t.Context(), s.d.ids[0]); !errors.Is(err, provider.ErrUnsupported) || len(s.requests) > 0 {
		t.Errorf("%v, and %d requests were made", err, len(s.requests))
	}
}

// A file system goes on costing, at $0.20 a GiB and month.
func TestLambdaFileSystemsGoOn(t *testing.T) {
	s := newStandIn(t, lambdaDialect())
	p := s.inMemory()
	left, err := p.Leftovers(t.Context(), s.d.ids[0], provider.Gone)
	if err != nil || len(left) != 1 || left[0].Name != "data-0" || left[0].PerMonth != "200" {
		t.Errorf("%+v, %v", left, err)
	}
	if err := p.Destroy(t.Context(), s.d.ids[0]); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), s.d.ids[0], provider.Gone)
	if err != nil || len(left) != 2 || left[0].Name != "data-0" || left[1].Name != "forgotten" || left[1].PerMonth != "" {
		t.Errorf("%+v, %v: its own and the forgotten one, not the other instance's", left, err)
	}
}

func TestLambdaImport(t *testing.T) {
	list, err := newStandIn(t, lambdaDialect()).inMemory().(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if in := list[0]; in.PerHour != "2.58" || in.GPU != "A100 SXM4 (40 GB)" || in.GPUs != 2 || in.Address.SSH() != "ssh ubuntu@10.10.10.1" {
		t.Errorf("%+v", in)
	}
}

// A termination that names another instance, or none, was not accepted.
func TestLambdaTerminationOfAnother(t *testing.T) {
	d := lambdaDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method == "POST" {
			sendJSON(w, 200, map[string]any{"data": map[string]any{"terminated_instances": []any{}}})
			return
		}
		serve(s, w, r, body)
	}
	if err := newStandIn(t, d).inMemory().Destroy(t.Context(), d.ids[0]); err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("%v", err)
	}
}
