package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"rentop/remote/provider"
)

// runPodDialect speaks REST v2 as ../shared/specs has it.
func runPodDialect() *dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": say})
	}
	d := &dialect{
		kind: "runpod", spec: "runpod-rest-v2-openapi.json", ids: [3]string{"7h9k2m4n6p", "8h9k2m4n6q", "0h9k2m4n6z"},
		refuse: refuse,
		acts:   func(r *http.Request) bool { return r.Method != "GET" },
		auth:   func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+theKey },
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := seg(r, 2)
		switch {
		case seg(r, 1) == "network-volumes":
			list := []any{}
			for i, vol := range []string{"1000", "2001", "9999"} {
				list = append(list, map[string]any{"id": vol, "name": "data", "size": 100 * (i + 1), "dataCenter": "US-KS-2", "type": "STANDARD"})
			}
			sendJSON(w, 200, map[string]any{"networkVolumes": list})
		case seg(r, 1) == "billing":
			q := r.URL.Query()
			sums := map[string]any{"totalAmount": 12.345, "gpuAmount": 11.1, "cpuAmount": 0, "diskAmount": 1.245}
			record := map[string]any{"startTime": q.Get("startTime"), "endTime": q.Get("endTime"), "podId": q.Get("podId")}
			for k, v := range sums {
				record[k] = v
			}
			sendJSON(w, 200, map[string]any{"records": []any{record}, "metadata": map[string]any{
				"query":       map[string]any{"startTime": q.Get("startTime"), "endTime": q.Get("endTime"), "bucketSize": q.Get("bucketSize"), "podId": q.Get("podId")},
				"recordCount": 1, "totals": sums, "uniquePodCount": 1}})
		case id == "":
			pods := []any{}
			for _, b := range s.live() {
				pods = append(pods, runPodJSON(b))
			}
			sendJSON(w, 200, map[string]any{"pods": pods})
		case s.find(id) == nil:
			refuse(w, 404, "pod not found")
		case r.Method == "GET":
			sendJSON(w, 200, runPodJSON(s.find(id)))
		case r.Method == "DELETE":
			s.act(id, "destroy")
			w.WriteHeader(204)
		default:
			var b struct{ Action string }
			json.Unmarshal(body, &b)
			if s.act(id, b.Action) == http.StatusConflict {
				refuse(w, 409, "action not valid for the pod's status")
				return
			}
			sendJSON(w, 200, runPodJSON(s.find(id)))
		}
	}
	return d
}

func runPodJSON(b *box) map[string]any {
	proxy := map[string]any{"host": "ssh.runpod.io", "port": 22, "username": b.id + "-64411eb2", "command": "ssh x"}
	pod := map[string]any{
		"id": b.id, "name": b.name, "image": "runpod/pytorch", "args": "", "disk": 50, "ports": []string{"22/tcp"}, "env": map[string]string{}, "registry": nil,
		"status": "EXITED", "actions": []string{"start", "terminate"},
		"mounts": map[string]any{"persistent": map[string]any{"size": 20, "path": "/workspace"}},
		"gpu":    map[string]any{"id": "NVIDIA GeForce RTX 4090", "count": 2}, "cloud": "SECURE", "dataCenterId": "US-KS-2", "cudaVersion": "12.8",
		"ssh": map[string]any{"proxy": proxy, "direct": nil}, "template": nil, "cost": 0, "locked": false,
		"globalNetworking": map[string]any{"enabled": false}, "runtime": nil, "createdAt": "2026-06-01T12:00:00Z", "startedAt": nil,
	}
	if b.id == "8h9k2m4n6q" {
		pod["mounts"] = map[string]any{"network": []any{map[string]any{"volumeId": b.volume, "path": "/workspace"}}}
	}
	if b.state == "running" {
		pod["status"], pod["actions"], pod["cost"], pod["startedAt"] = "RUNNING", []string{"stop", "restart", "terminate"}, 0.44, b.started
		pod["ssh"] = map[string]any{"proxy": proxy, "direct": map[string]any{"host": "195.26.233.3", "port": 34446 + b.power, "username": "root", "command": "ssh x"}}
	}
	return pod
}

func TestRunPodConforms(t *testing.T) { conforms(t, runPodDialect()) }
func TestRunPodFaults(t *testing.T)   { chaos(t, runPodDialect()) }

// What was charged is told for whole hours, and says for which.
func TestRunPodCharges(t *testing.T) {
	s := newStandIn(t, runPodDialect())
	c, err := s.inMemory().(provider.Charger).Charges(t.Context(), s.d.ids[0], time.Date(2026, 6, 1, 10, 30, 0, 0, time.UTC), time.Date(2026, 6, 2, 10, 0, 1, 0, time.UTC))
	if err != nil || c.Amount != "12.345" || c.Currency != "USD" || c.From.Hour() != 10 || c.From.Minute() != 0 || c.To.Hour() != 11 {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := newStandIn(t, lambdaDialect()).inMemory().(provider.Charger).Charges(t.Context(), "0920582c7ff041399e34823a0be62549", time.Time{}, time.Time{}); !errors.Is(err, provider.ErrUnsupported) {
		t.Errorf("Lambda does not tell: %v", err)
	}
}

// A stopped pod says cost 0: that is no price, and its volume bills.
func TestRunPodStoppedIsNotFree(t *testing.T) {
	s := newStandIn(t, runPodDialect())
	p := s.inMemory()
	id := s.d.ids[0]
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if in := list[0]; in.PerHour != "" || in.WhileStopped != "0.005479" || in.Status.Billed == nil || *in.Status.Billed {
		t.Errorf("%+v (billed %v): want no price, and 20 GB at $0.20 a month", in, in.Status.Billed)
	}
	left, err := p.Leftovers(t.Context(), id, provider.Stopped)
	if err != nil || len(left) != 1 || left[0].PerMonth != "4" || left[0].Kind != "volume" {
		t.Errorf("leftovers %+v, %v: want the volume at $4 a month", left, err)
	}
}

// A network volume outlives its pod: before the end it is told because the pod
// has it, afterwards because no pod does.
func TestRunPodNetworkVolumesOutlive(t *testing.T) {
	s := newStandIn(t, runPodDialect())
	p := s.inMemory()
	id := s.d.ids[1]
	left, err := p.Leftovers(t.Context(), id, provider.Gone)
	if err != nil || len(left) != 1 || left[0].ID != "2001" || left[0].PerMonth != "" {
		t.Fatalf("before: %+v, %v", left, err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), id, provider.Gone)
	if err != nil || len(left) != 3 { // all three hang on no pod now
		t.Errorf("after: %+v, %v", left, err)
	}
}

// A pod without a published port has the proxy, which carries a shell only.
func TestRunPodProxyIsShellOnly(t *testing.T) {
	d := runPodDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method == "GET" && seg(r, 2) == d.ids[0] {
			pod := runPodJSON(s.boxes[d.ids[0]])
			pod["ssh"].(map[string]any)["direct"] = nil
			sendJSON(w, 200, pod)
			return
		}
		serve(s, w, r, body)
	}
	a, err := newStandIn(t, d).inMemory().(provider.Addresser).Address(t.Context(), d.ids[0])
	if err != nil || !a.ShellOnly || a.Host != "ssh.runpod.io" {
		t.Errorf("%+v, %v", a, err)
	}
}
