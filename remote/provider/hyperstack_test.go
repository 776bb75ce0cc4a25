package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"rentop/remote/provider"
)

func hyperstackDialect() *dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		if status == 500 { // its document has no body for it
			http.Error(w, say, status)
			return
		}
		sendJSON(w, status, map[string]any{"status": false, "message": say, "error_reason": "no"})
	}
	d := &dialect{
		kind: "hyperstack", spec: "hyperstack-openapi.yaml", prefix: "/v1", ids: [3]string{"4001", "4002", "9999"}, refuse: refuse,
		acts: func(r *http.Request) bool {
			switch seg(r, 4) {
			case "start", "stop", "hibernate", "hibernate-restore", "hard-reboot":
				return true
			}
			return r.Method != "GET"
		},
		auth: func(r *http.Request) bool { return r.Header.Get("api_key") == theKey },
	}
	done := func(w http.ResponseWriter) { sendJSON(w, 200, map[string]any{"status": true, "message": "ok"}) }
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		page := func(name string, list []any) {
			sendJSON(w, 200, map[string]any{"status": true, "message": "ok", "count": len(list), "page": 1, "page_size": 100, name: list})
		}
		id, action := seg(r, 3), seg(r, 4)
		switch {
		case seg(r, 1) == "billing":
			sendJSON(w, 200, map[string]any{"status": true, "message": "ok", "data": map[string]any{"credit": 42.5, "threshold": 0, "can_create_instance": true}})
		case seg(r, 1) == "pricebook" && seg(r, 2) == "":
			sendJSON(w, 200, []any{map[string]any{"id": 1, "name": "A100-80G-PCIe", "value": 1.35, "original_value": 1.35, "discount_applied": false}})
		case seg(r, 1) == "pricebook":
			sendJSON(w, 200, map[string]any{"status": true, "message": "ok", "calculated_resource_bills": map[string]any{"org_id": 1, "resource": map[string]any{"price": 0.01, "actual_price": 0.01}}})
		case seg(r, 2) == "volumes":
			vol := func(id int, vms ...int) any {
				at := []any{}
				for _, vm := range vms {
					at = append(at, map[string]any{"instance_id": vm})
				}
				return map[string]any{"id": id, "name": "vol", "size": 100, "attachments": at}
			}
			page("volumes", []any{vol(71, atoi(d.ids[0])), vol(72, atoi(d.ids[1])), vol(73)})
		case seg(r, 2) == "snapshots":
			list := []any{}
			for _, im := range s.images {
				list = append(list, hyperstackSnapJSON(im))
			}
			page("snapshots", list)
		case id == "":
			list := []any{}
			for _, b := range s.live() {
				list = append(list, hyperstackJSON(b))
			}
			page("instances", list)
		case s.find(id) == nil:
			refuse(w, 404, "VM not found")
		case action == "" && r.Method == "GET":
			sendJSON(w, 200, map[string]any{"status": true, "message": "ok", "instance": hyperstackJSON(s.find(id))})
		case action == "snapshots":
			var b struct{ Name string }
			json.Unmarshal(body, &b)
			im := &image{strconv.Itoa(500 + len(s.images)), b.Name, id}
			if !s.drop {
				s.images[im.id] = im
			}
			sendJSON(w, 201, map[string]any{"status": true, "message": "ok", "snapshot": hyperstackSnapJSON(im)})
		default:
			do := map[string]string{"": "destroy", "start": "start", "hibernate-restore": "start", "stop": "off", "hibernate": "stop"}[action]
			if action == "start" && s.find(id).state == "stopped" {
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

func hyperstackSnapJSON(im *image) map[string]any {
	return map[string]any{"id": atoi(im.id), "name": im.name, "vm_id": atoi(im.box), "size": 100, "status": "SUCCESS", "description": "d", "is_image": false, "region_id": 1,
		"created_at": "2026-11-30T10:00:00Z", "updated_at": "2026-11-30T10:00:00Z"}
}

func hyperstackJSON(b *box) map[string]any {
	status := map[string]string{"running": "ACTIVE", "stopped": "HIBERNATED", "off": "SHUTOFF"}[b.state]
	return map[string]any{
		"id": atoi(b.id), "name": b.name, "status": status, "created_at": "2026-11-30T10:00:00Z", "floating_ip": "38.80.1." + strconv.Itoa(4+b.power), "floating_ip_status": "ATTACHED",
		"port_randomization": false, "environment": map[string]any{"id": 1, "name": "e", "org_id": 1, "region": "CANADA-1"},
		"flavor":  map[string]any{"id": 1, "name": "n3-A100x2", "gpu": "A100-80G-PCIe", "gpu_count": 2, "cpu": 56, "ram": 240.0, "disk": 100, "features": map[string]any{"no_hibernation": b.volume == "none"}},
		"keypair": map[string]any{"name": "k"}, "image": map[string]any{"name": "Ubuntu"}, "labels": []string{}, "locked": false, "volume_attachments": []any{},
	}
}

func TestHyperstackConforms(t *testing.T) { conforms(t, hyperstackDialect()) }
func TestHyperstackFaults(t *testing.T)   { chaos(t, hyperstackDialect()) }

// Shut off is charged in full: it is told, and a stop still has something to do.
func TestHyperstackShutOffIsCharged(t *testing.T) {
	s := newStandIn(t, hyperstackDialect())
	id := s.d.ids[0]
	s.boxes[id].state = "off"
	p := s.inMemory()
	st, err := p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || !*st.Billed {
		t.Fatalf("%+v, %v: want stopped and billed", st, err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	st, err = p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || *st.Billed {
		t.Errorf("%+v, %v: want hibernated and not billed", st, err)
	}
	for _, line := range s.requests {
		if strings.Contains(line, id+"/stop") {
			t.Errorf("it was shut off: %s", line)
		}
	}
}

// What cannot hibernate is not shut off in its place.
func TestHyperstackNoHibernation(t *testing.T) {
	s := newStandIn(t, hyperstackDialect())
	s.boxes[s.d.ids[0]].volume = "none"
	err := s.inMemory().Stop(t.Context(), s.d.ids[0])
	if err == nil || !strings.Contains(err.Error(), "charged in full") || s.truth(s.d.ids[0]) != "running" {
		t.Errorf("%v, it is %s", err, s.truth(s.d.ids[0]))
	}
}

// GETs that act are made once, whatever the answer is; GETs that ask are repeated.
func TestHyperstackActsOnce(t *testing.T) {
	for _, f := range []fault{failed, timedOut, lost, unheard, cut, page} {
		s := newStandIn(t, hyperstackDialect())
		p := s.inMemory()
		acts, asks := 0, 0
		s.next = func(r *http.Request) fault {
			if s.d.acts(r) {
				acts++
				return f
			}
			asks++
			return fine
		}
		if err := p.Stop(t.Context(), s.d.ids[0]); err == nil || acts != 1 {
			t.Errorf("fault %d: %v after %d requests", f, err, acts)
		}
		s.next = func(*http.Request) fault { asks++; return f }
		asks = 0
		if _, err := p.Status(t.Context(), s.d.ids[0]); err == nil || asks != 3 && f != cut && f != unheard {
			t.Errorf("fault %d: %v after %d questions", f, err, asks)
		}
	}
}

func TestHyperstackAddress(t *testing.T) {
	d := hyperstackDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if seg(r, 3) == d.ids[0] {
			vm := hyperstackJSON(s.boxes[d.ids[0]])
			vm["port_randomization"] = true
			sendJSON(w, 200, map[string]any{"status": true, "message": "ok", "instance": vm})
			return
		}
		serve(s, w, r, body)
	}
	p := newStandIn(t, d).inMemory().(provider.Addresser)
	if a, err := p.Address(t.Context(), d.ids[0]); !errors.Is(err, provider.ErrNoAddress) || !strings.Contains(err.Error(), "random") {
		t.Errorf("%+v, %v: port 22 would be a guess", a, err)
	}
	if a, err := p.Address(t.Context(), d.ids[1]); err != nil || a.SSH() != "ssh ubuntu@38.80.1.4" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestHyperstackPricesAndLeftovers(t *testing.T) {
	s := newStandIn(t, hyperstackDialect())
	p := s.inMemory()
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || list[0].PerHour != "2.7" || list[0].GPUs != 2 {
		t.Errorf("%+v, %v: want 2 cards at $1.35", list, err)
	}
	left, err := p.Leftovers(t.Context(), s.d.ids[0], provider.Stopped)
	if err != nil || len(left) != 3 || left[2].Kind != "volume" || left[2].PerMonth != "7.3" {
		t.Errorf("%+v, %v: want root disk, address, and the volume at $0.01 an hour", left, err)
	}
}
