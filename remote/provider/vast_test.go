package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
)

func vastDialect() *dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		sendJSON(w, status, map[string]any{"success": false, "error": "not_ok", "msg": say})
	}
	d := &dialect{
		kind: "vast", spec: "vast-openapi.yaml", ids: [3]string{"1234567", "1234568", "999"}, refuse: refuse,
		acts: func(r *http.Request) bool { return r.Method != "GET" },
		auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+theKey },
		// What the service says of an instance that does not exist is not in its document.
		unchecked: func(r *http.Request, status int) bool {
			return r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/api/v0/instances/") && r.Header.Get("X-Absent") != ""
		},
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := seg(r, 3)
		switch {
		case seg(r, 2) == "charges": // two pages
			row := func(id string, amount float64) any {
				return map[string]any{"start": 1780272000, "end": 1780358400, "type": "instance", "source": "instance-" + id, "amount": amount}
			}
			page := map[string]any{"success": true, "count": 2, "total": 3, "next_token": "t2", "results": []any{row(s.d.ids[0], 1.125), row(s.d.ids[1], 99)}}
			if r.URL.Query().Get("after_token") != "" {
				page["results"], page["next_token"] = []any{row(s.d.ids[0], 2)}, nil
			}
			sendJSON(w, 200, page)
		case seg(r, 2) == "users":
			sendJSON(w, 200, map[string]any{"id": 7, "balance": -1.25, "credit": 12.5, "email": "a@example.com"})
		case seg(r, 2) == "volumes":
			sendJSON(w, 200, map[string]any{"volumes": []any{
				map[string]any{"id": 31, "disk_space": 50, "instances": []any{map[string]any{"id": atoi(s.d.ids[0])}}, "storage_total_cost": 0.01},
				map[string]any{"id": 32, "disk_space": 60, "instances": []any{map[string]any{"id": atoi(s.d.ids[1])}}},
				map[string]any{"id": 33, "disk_space": 70, "instances": []any{}},
			}})
		case seg(r, 1) == "v1":
			vastPage(s, w, r)
		case r.Method == "GET":
			b := s.find(id)
			if b == nil {
				r.Header.Set("X-Absent", "1")
				sendJSON(w, 200, map[string]any{"instances": nil})
				return
			}
			one := vastJSON(b)
			one["ports"] = []int{22}
			sendJSON(w, 200, map[string]any{"instances": one})
		case s.find(id) == nil:
			refuse(w, 404, "Instance not found")
		case r.Method == "DELETE":
			s.act(id, "destroy")
			sendJSON(w, 200, map[string]any{"success": true})
		default:
			var b struct{ State string }
			json.Unmarshal(body, &b)
			s.act(id, map[string]string{"running": "start", "stopped": "stop"}[b.State]) // what is so already is accepted
			sendJSON(w, 200, map[string]any{"success": true})
		}
	}
	return d
}

// vastPage has one instance a page: the list is only whole when all are read.
func vastPage(s *standIn, w http.ResponseWriter, r *http.Request) {
	live := s.live()
	n := atoi(strings.TrimPrefix(r.URL.Query().Get("after_token"), "t"))
	page := map[string]any{"success": true, "instances_found": 1, "total_instances": len(live), "next_token": nil, "instances": []any{}}
	if n < len(live) {
		page["instances"] = []any{vastJSON(live[n])}
	}
	if n+1 < len(live) {
		page["next_token"] = "t" + string(rune('1'+n))
	}
	sendJSON(w, 200, page)
}

func vastJSON(b *box) map[string]any {
	one := map[string]any{
		"id": atoi(b.id), "label": b.name, "actual_status": "exited", "cur_state": "stopped", "next_state": "stopped", "intended_status": "stopped",
		"gpu_name": "RTX 4090", "num_gpus": 2, "geolocation": "Sweden, SE", "dph_total": 0.81, "is_bid": true, "start_date": float64(b.started.Unix()), "end_date": 1.8e9,
		"public_ipaddr": "79.117.1.2", "ssh_host": "ssh4.vast.ai", "ssh_port": 12000 + b.power, "ports": nil,
		"storage_cost": 0.2, "storage_total_cost": 0.0123, "credit_balance": nil,
	}
	if b.state == "running" {
		one["actual_status"], one["cur_state"], one["next_state"], one["intended_status"] = "running", "running", "running", "running"
		one["ports"] = map[string]any{"22/tcp": []any{map[string]any{"HostIp": "0.0.0.0", "HostPort": "4" + string(rune('1'+b.power)) + "022"}}}
		if b.wanted == "stopped" {
			one["next_state"], one["intended_status"] = "stopped", "stopped"
		}
	}
	return one
}

// What was charged is added up over pages, and only for the instance that was asked for.
func TestVastCharges(t *testing.T) {
	s := newStandIn(t, vastDialect())
	p := s.inMemory().(provider.Charger)
	c, err := p.Charges(t.Context(), s.d.ids[0], time.Date(2026, 6, 1, 10, 30, 0, 0, time.UTC), time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC))
	if err != nil || c.Amount != "3.125" || c.To.Sub(c.From) != 24*time.Hour || c.From.Hour() != 0 {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := p.Charges(t.Context(), s.d.ids[2], time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 2, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Errorf("it names no charge, and that is %+v", c)
	}
}

func TestVastConforms(t *testing.T) { conforms(t, vastDialect()) }
func TestVastFaults(t *testing.T)   { chaos(t, vastDialect()) }

// Where the contract and the container do not say the same, nothing is guessed.
func TestVastStates(t *testing.T) {
	for _, c := range []struct {
		actual              any
		cur, next, intended string
		want                provider.State
	}{
		{"running", "running", "running", "running", provider.Running},
		{"exited", "stopped", "stopped", "stopped", provider.Stopped},
		{"running", "running", "stopped", "stopped", provider.Changing},
		{"exited", "running", "running", "stopped", provider.Changing},
		{"exited", "running", "running", "running", provider.Unknown}, // and it pays
		{"running", "stopped", "stopped", "stopped", provider.Unknown},
		{"loading", "running", "running", "running", provider.Changing},
		{nil, "running", "running", "running", provider.Changing},
		{"offline", "running", "running", "running", provider.Unknown},
		{"unknown", "unloaded", "unloaded", "unloaded", provider.Unknown},
		{"", "", "", "", provider.Unknown},
	} {
		d := vastDialect()
		d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, _ []byte) {
			one := vastJSON(s.boxes[d.ids[0]])
			one["ports"] = []int{}
			one["actual_status"], one["cur_state"], one["next_state"], one["intended_status"] = c.actual, c.cur, c.next, c.intended
			sendJSON(w, 200, map[string]any{"instances": one})
		}
		st, err := newStandIn(t, d).inMemory().Status(t.Context(), d.ids[0])
		if err != nil || st.State != c.want {
			t.Errorf("%+v: %q, %v", c, st.State, err)
		}
		if st.State == provider.Unknown && st.Billed != nil {
			t.Errorf("%+v: unknown, but billed %v", c, *st.Billed)
		}
	}
}

// An error inside a 200 is an error: a destroy that was swallowed costs money.
func TestVastErrorInside200(t *testing.T) {
	d := vastDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method == "DELETE" {
			sendJSON(w, 200, map[string]any{"success": false, "msg": "contract is locked"})
			return
		}
		serve(s, w, r, body)
	}
	if err := newStandIn(t, d).inMemory().Destroy(t.Context(), d.ids[0]); err == nil || !strings.Contains(err.Error(), "contract is locked") {
		t.Errorf("%v", err)
	}
}

// A refusal for the rate is plain text; the request is made again, and told.
func TestVastRateLimitInPlainText(t *testing.T) {
	s := newStandIn(t, vastDialect())
	p := s.inMemory()
	n := 0
	s.next = func(r *http.Request) fault {
		if n++; r.Method == "DELETE" && n <= 3 {
			return limited
		}
		return fine
	}
	if err := p.Destroy(t.Context(), s.d.ids[0]); err != nil || s.truth(s.d.ids[0]) != "gone" {
		t.Errorf("%v, it is %s", err, s.truth(s.d.ids[0]))
	}
	s.next = func(*http.Request) fault { return limited }
	if _, err := p.Status(t.Context(), s.d.ids[1]); err == nil || !strings.Contains(err.Error(), "too many requests") || !strings.Contains(err.Error(), "endpoint threshold") {
		t.Errorf("%v", err)
	}
}

// A list that lacks a page is no list.
func TestVastShortListIsAnError(t *testing.T) {
	d := vastDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if seg(r, 1) == "v1" {
			sendJSON(w, 200, map[string]any{"success": true, "total_instances": 2, "next_token": nil, "instances": []any{vastJSON(s.boxes[d.ids[1]])}})
			return
		}
		serve(s, w, r, body)
	}
	if list, err := newStandIn(t, d).inMemory().(provider.Importer).Import(t.Context()); err == nil {
		t.Errorf("%+v", list)
	}
}

func TestVastPricesAndBalance(t *testing.T) {
	s := newStandIn(t, vastDialect())
	p := s.inMemory()
	if err := p.Stop(t.Context(), s.d.ids[0]); err != nil {
		t.Fatal(err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if list[0].PerHour != "" || list[0].WhileStopped != "" || list[1].PerHour != "0.81" || !list[1].Spot {
		t.Errorf("%+v: a stopped one's price is not known", list)
	}
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-1.25" || b.Credit != "12.5" {
		t.Errorf("%+v, %v", b, err)
	}
	left, err := p.Leftovers(t.Context(), s.d.ids[0], provider.Stopped)
	if err != nil || len(left) != 2 || left[0].Kind != "disk" || left[1].ID != "31" {
		t.Errorf("%+v, %v", left, err)
	}
}
