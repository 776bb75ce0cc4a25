package cloudtest

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"
)

// YAML reads a piece of DigitalOcean's document as JSON values.
func YAML(t testing.TB, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(sharedSpec(t, "digitalocean/"+name))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// withoutRefs empties what points into files that were not recorded.
func withoutRefs(v any) any {
	switch x := v.(type) {
	case map[string]any:
		if _, ok := x["$ref"]; ok {
			return map[string]any{"nullable": true}
		}
		for k := range x {
			x[k] = withoutRefs(x[k])
		}
		if nested, ok := x["allOf"].([]any); ok && len(nested) > 0 {
			return map[string]any{"nullable": true}
		}
	case []any:
		for i := range x {
			x[i] = withoutRefs(x[i])
		}
	}
	return v
}

// DigitalOcean speaks with the droplets of the recorded examples.
func DigitalOcean(t testing.TB) *Dialect {
	text, err := json.Marshal(withoutRefs(YAML(t, "resources_droplets_models_droplet.yml")))
	if err != nil {
		t.Fatal(err)
	}
	schema := &openapi3.Schema{}
	if err := schema.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	examples := YAML(t, "resources_droplets_responses_examples.yml")
	recorded := examples["gpu_droplets"].(map[string]any)["value"].(map[string]any)["droplets"].([]any)[0]
	refuse := func(w http.ResponseWriter, status int, say string) {
		SendJSON(w, status, map[string]any{"id": "no", "message": say, "request_id": "r-1"})
	}
	d := &Dialect{
		Kind: "digitalocean", IDs: [3]string{"448543583", "448543584", "999"}, Refuse: refuse,
		Acts: func(r *http.Request) bool { return r.Method != "GET" },
		Auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+Key },
		Shaped: func(r *http.Request, answer []byte) error {
			var v struct {
				Droplet  map[string]any
				Droplets []map[string]any
			}
			if len(answer) > 0 {
				if err := json.Unmarshal(answer, &v); err != nil {
					return err
				}
			}
			if v.Droplet != nil {
				v.Droplets = append(v.Droplets, v.Droplet)
			}
			for _, one := range v.Droplets {
				if err := schema.VisitJSON(map[string]any(one)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	droplet := func(b *Box) map[string]any {
		var v map[string]any
		text, _ := json.Marshal(recorded)
		json.Unmarshal(text, &v)
		v["id"], v["name"], v["status"] = atoi(b.ID), b.Name, map[string]string{"running": "active", "off": "off"}[b.State]
		v["networks"] = map[string]any{"v4": []any{
			map[string]any{"ip_address": "10.128.192.124", "netmask": "255.255.0.0", "type": "private"},
			map[string]any{"ip_address": "192.241.165.154", "netmask": "255.255.255.0", "type": "public"},
		}, "v6": []any{}}
		return v
	}
	list := func(w http.ResponseWriter, name string, all []any) {
		SendJSON(w, 200, map[string]any{name: all, "links": map[string]any{}, "meta": map[string]any{"total": len(all)}})
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := Seg(r, 2)
		switch {
		case Seg(r, 1) == "customers":
			SendJSON(w, 200, map[string]any{"month_to_date_balance": "23.44", "account_balance": "12.23", "month_to_date_usage": "11.21", "generated_at": "2026-11-30T10:00:00Z"})
		case Seg(r, 1) == "snapshots":
			all := []any{}
			for _, im := range s.Images {
				all = append(all, map[string]any{"id": im.ID, "name": im.Name, "resource_id": im.Box, "resource_type": "droplet", "size_gigabytes": 2.3})
			}
			list(w, "snapshots", all)
		case Seg(r, 1) == "images":
			SendJSON(w, 200, map[string]any{"image": map[string]any{"id": atoi(id), "status": "available"}})
		case Seg(r, 1) == "volumes":
			list(w, "volumes", []any{map[string]any{"id": "v-1", "name": "data", "size_gigabytes": 100, "droplet_ids": []int{atoi(d.IDs[1])}}, map[string]any{"id": "v-2", "name": "old", "size_gigabytes": 50, "droplet_ids": []int{}}})
		case Seg(r, 1) == "reserved_ips":
			list(w, "reserved_ips", []any{map[string]any{"ip": "45.55.96.47", "droplet": nil}})
		case id == "":
			all := []any{}
			for _, b := range s.Live() {
				if r.URL.Query().Get("type") == "gpus" { // without it, droplets with a GPU are left out
					all = append(all, droplet(b))
				}
			}
			list(w, "droplets", all)
		case s.find(id) == nil:
			refuse(w, 404, "The resource you were accessing could not be found.")
		case Seg(r, 3) == "destroy_with_associated_resources":
			snaps := []any{}
			for _, im := range s.Images {
				snaps = append(snaps, map[string]any{"id": im.ID, "name": im.Name, "cost": "0.05"})
			}
			SendJSON(w, 200, map[string]any{"reserved_ips": []any{map[string]any{"id": "6186", "name": "45.55.96.47", "cost": "4.00"}},
				"floating_ips": []any{map[string]any{"id": "6186", "name": "45.55.96.47", "cost": "4.00"}}, "snapshots": snaps,
				"volumes": []any{map[string]any{"id": "v-1", "name": "data", "cost": "10.00"}}, "volume_snapshots": []any{}})
		case Seg(r, 3) == "actions" && r.Method == "GET":
			list(w, "actions", []any{})
		case Seg(r, 3) == "actions":
			var b struct{ Type, Name string }
			json.Unmarshal(body, &b)
			if b.Type == "snapshot" {
				n := strconv.Itoa(600 + len(s.Images))
				if !s.drop {
					s.Images[n] = &Image{n, b.Name, id}
				}
			} else if s.act(id, map[string]string{"power_on": "start", "shutdown": "off", "power_off": "off"}[b.Type]) != 200 {
				refuse(w, 422, "Droplet already has a pending event.")
				return
			}
			SendJSON(w, 201, map[string]any{"action": map[string]any{"id": 1, "status": "in-progress", "type": b.Type}})
		case r.Method == "DELETE":
			s.act(id, "destroy")
			w.WriteHeader(204)
		default:
			SendJSON(w, 200, map[string]any{"droplet": droplet(s.find(id))})
		}
	}
	return d
}
