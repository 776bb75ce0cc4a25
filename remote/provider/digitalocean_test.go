package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"rentop/remote/provider"
)

// yamlFile reads a piece of DigitalOcean's document as JSON values.
func yamlFile(t testing.TB, name string) map[string]any {
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

// oceanDialect speaks with the droplets of the recorded examples.
func oceanDialect(t testing.TB) *dialect {
	text, err := json.Marshal(withoutRefs(yamlFile(t, "resources_droplets_models_droplet.yml")))
	if err != nil {
		t.Fatal(err)
	}
	schema := &openapi3.Schema{}
	if err := schema.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	examples := yamlFile(t, "resources_droplets_responses_examples.yml")
	recorded := examples["gpu_droplets"].(map[string]any)["value"].(map[string]any)["droplets"].([]any)[0]
	refuse := func(w http.ResponseWriter, status int, say string) {
		sendJSON(w, status, map[string]any{"id": "no", "message": say, "request_id": "r-1"})
	}
	d := &dialect{
		kind: "digitalocean", ids: [3]string{"448543583", "448543584", "999"}, refuse: refuse,
		acts: func(r *http.Request) bool { return r.Method != "GET" },
		auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+theKey },
		shaped: func(r *http.Request, answer []byte) error {
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
	droplet := func(b *box) map[string]any {
		var v map[string]any
		text, _ := json.Marshal(recorded)
		json.Unmarshal(text, &v)
		v["id"], v["name"], v["status"] = atoi(b.id), b.name, map[string]string{"running": "active", "off": "off"}[b.state]
		v["networks"] = map[string]any{"v4": []any{
			map[string]any{"ip_address": "10.128.192.124", "netmask": "255.255.0.0", "type": "private"},
			map[string]any{"ip_address": "192.241.165.154", "netmask": "255.255.255.0", "type": "public"},
		}, "v6": []any{}}
		return v
	}
	list := func(w http.ResponseWriter, name string, all []any) {
		sendJSON(w, 200, map[string]any{name: all, "links": map[string]any{}, "meta": map[string]any{"total": len(all)}})
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := seg(r, 2)
		switch {
		case seg(r, 1) == "customers":
			sendJSON(w, 200, map[string]any{"month_to_date_balance": "23.44", "account_balance": "12.23", "month_to_date_usage": "11.21", "generated_at": "2026-11-30T10:00:00Z"})
		case seg(r, 1) == "snapshots":
			all := []any{}
			for _, im := range s.images {
				all = append(all, map[string]any{"id": im.id, "name": im.name, "resource_id": im.box, "resource_type": "droplet", "size_gigabytes": 2.3})
			}
			list(w, "snapshots", all)
		case seg(r, 1) == "images":
			sendJSON(w, 200, map[string]any{"image": map[string]any{"id": atoi(id), "status": "available"}})
		case seg(r, 1) == "volumes":
			list(w, "volumes", []any{map[string]any{"id": "v-1", "name": "data", "size_gigabytes": 100, "droplet_ids": []int{atoi(d.ids[1])}}, map[string]any{"id": "v-2", "name": "old", "size_gigabytes": 50, "droplet_ids": []int{}}})
		case seg(r, 1) == "reserved_ips":
			list(w, "reserved_ips", []any{map[string]any{"ip": "45.55.96.47", "droplet": nil}})
		case id == "":
			all := []any{}
			for _, b := range s.live() {
				if r.URL.Query().Get("type") == "gpus" { // without it, droplets with a GPU are left out
					all = append(all, droplet(b))
				}
			}
			list(w, "droplets", all)
		case s.find(id) == nil:
			refuse(w, 404, "The resource you were accessing could not be found.")
		case seg(r, 3) == "destroy_with_associated_resources":
			snaps := []any{}
			for _, im := range s.images {
				snaps = append(snaps, map[string]any{"id": im.id, "name": im.name, "cost": "0.05"})
			}
			sendJSON(w, 200, map[string]any{"reserved_ips": []any{map[string]any{"id": "6186", "name": "45.55.96.47", "cost": "4.00"}},
				"floating_ips": []any{map[string]any{"id": "6186", "name": "45.55.96.47", "cost": "4.00"}}, "snapshots": snaps,
				"volumes": []any{map[string]any{"id": "v-1", "name": "data", "cost": "10.00"}}, "volume_snapshots": []any{}})
		case seg(r, 3) == "actions" && r.Method == "GET":
			list(w, "actions", []any{})
		case seg(r, 3) == "actions":
			var b struct{ Type, Name string }
			json.Unmarshal(body, &b)
			if b.Type == "snapshot" {
				n := strconv.Itoa(600 + len(s.images))
				if !s.drop {
					s.images[n] = &image{n, b.Name, id}
				}
			} else if s.act(id, map[string]string{"power_on": "start", "shutdown": "off", "power_off": "off"}[b.Type]) != 200 {
				refuse(w, 422, "Droplet already has a pending event.")
				return
			}
			sendJSON(w, 201, map[string]any{"action": map[string]any{"id": 1, "status": "in-progress", "type": b.Type}})
		case r.Method == "DELETE":
			s.act(id, "destroy")
			w.WriteHeader(204)
		default:
			sendJSON(w, 200, map[string]any{"droplet": droplet(s.find(id))})
		}
	}
	return d
}

func TestDigitalOceanConforms(t *testing.T) { conforms(t, oceanDialect(t)) }
func TestDigitalOceanFaults(t *testing.T)   { chaos(t, oceanDialect(t)) }

// Off costs as much as running: in the state, in the price, before the choice.
func TestDigitalOceanOffIsCharged(t *testing.T) {
	s := newStandIn(t, oceanDialect(t))
	p := s.inMemory()
	id := s.d.ids[0]
	left, err := p.Leftovers(t.Context(), id, provider.Stopped)
	if err != nil || len(left) != 3 || left[0].Kind != "instance" || left[0].PerMonth != "4920.2" {
		t.Errorf("%+v, %v: want the droplet at 730 h of $6.74, its address and volume", left, err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	st, err := p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || !*st.Billed {
		t.Errorf("%+v, %v: want stopped and billed", st, err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || list[0].PerHour != "6.74" || list[0].WhileStopped != "6.74" || list[0].GPU != "nvidia_h100" {
		t.Errorf("%+v, %v", list, err)
	}
	if !strings.Contains(p.Can().StopKeepsCharging, "as much") {
		t.Error(p.Can().StopKeepsCharging)
	}
}

// What stays is told with its price before the end, and looked for after it.
func TestDigitalOceanLeftovers(t *testing.T) {
	s := newStandIn(t, oceanDialect(t))
	p := s.inMemory()
	id := s.d.ids[0]
	left, err := p.Leftovers(t.Context(), id, provider.Gone)
	if got := fmt.Sprint(left); err != nil || got != "[{ip 6186 45.55.96.47 4 USD } {volume v-1 data 10 USD }]" {
		t.Errorf("%v, %v", got, err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), id, provider.Gone)
	if got := fmt.Sprint(left); err != nil || got != "[{volume v-2 old  USD 50 GB, on no droplet} {ip 45.55.96.47   USD on no droplet}]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDigitalOceanBalanceIsOwed(t *testing.T) {
	b, err := newStandIn(t, oceanDialect(t)).inMemory().(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-23.44" {
		t.Errorf("%+v, %v", b, err)
	}
}

// The recorded examples themselves are as the recorded model says.
func TestDigitalOceanExamples(t *testing.T) {
	d := oceanDialect(t)
	for name, ex := range yamlFile(t, "resources_droplets_responses_examples.yml") {
		text, err := json.Marshal(ex.(map[string]any)["value"])
		if err != nil {
			t.Fatal(err)
		}
		if name == "droplet_create_response" || name == "droplet_multi_create_response" {
			continue
		}
		if err := d.shaped(nil, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
