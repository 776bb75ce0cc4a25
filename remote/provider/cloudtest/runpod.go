package cloudtest

import (
	"encoding/json"
	"net/http"
	"testing"
)

// RunPod speaks REST v2 as ../shared/specs has it.
func RunPod(testing.TB) *Dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": say})
	}
	d := &Dialect{
		Kind: "runpod", spec: "runpod-rest-v2-openapi.json", IDs: [3]string{"7h9k2m4n6p", "8h9k2m4n6q", "0h9k2m4n6z"},
		Refuse: refuse, JSON: runPodJSON,
		Acts: func(r *http.Request) bool { return r.Method != "GET" },
		Auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+Key },
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		id := Seg(r, 2)
		switch {
		case Seg(r, 1) == "network-volumes":
			list := []any{}
			for i, vol := range []string{"1000", "2001", "9999"} {
				list = append(list, map[string]any{"id": vol, "name": "data", "size": 100 * (i + 1), "dataCenter": "US-KS-2", "type": "STANDARD"})
			}
			SendJSON(w, 200, map[string]any{"networkVolumes": list})
		case Seg(r, 1) == "billing":
			q := r.URL.Query()
			sums := map[string]any{"totalAmount": 12.345, "gpuAmount": 11.1, "cpuAmount": 0, "diskAmount": 1.245}
			record := map[string]any{"startTime": q.Get("startTime"), "endTime": q.Get("endTime"), "podId": q.Get("podId")}
			for k, v := range sums {
				record[k] = v
			}
			SendJSON(w, 200, map[string]any{"records": []any{record}, "metadata": map[string]any{
				"query":       map[string]any{"startTime": q.Get("startTime"), "endTime": q.Get("endTime"), "bucketSize": q.Get("bucketSize"), "podId": q.Get("podId")},
				"recordCount": 1, "totals": sums, "uniquePodCount": 1}})
		case id == "":
			pods := []any{}
			for _, b := range s.Live() {
				pods = append(pods, runPodJSON(b))
			}
			SendJSON(w, 200, map[string]any{"pods": pods})
		case s.find(id) == nil:
			refuse(w, 404, "pod not found")
		case r.Method == "GET":
			SendJSON(w, 200, runPodJSON(s.find(id)))
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
			SendJSON(w, 200, runPodJSON(s.find(id)))
		}
	}
	return d
}

func runPodJSON(b *Box) map[string]any {
	proxy := map[string]any{"host": "ssh.runpod.io", "port": 22, "username": b.ID + "-64411eb2", "command": "ssh x"}
	pod := map[string]any{
		"id": b.ID, "name": b.Name, "image": "runpod/pytorch", "args": "", "disk": 50, "ports": []string{"22/tcp"}, "env": map[string]string{}, "registry": nil,
		"status": "EXITED", "actions": []string{"start", "terminate"},
		"mounts": map[string]any{"persistent": map[string]any{"size": 20, "path": "/workspace"}},
		"gpu":    map[string]any{"id": "NVIDIA GeForce RTX 4090", "count": 2}, "cloud": "SECURE", "dataCenterId": "US-KS-2", "cudaVersion": "12.8",
		"ssh": map[string]any{"proxy": proxy, "direct": nil}, "template": nil, "cost": 0, "locked": false,
		"globalNetworking": map[string]any{"enabled": false}, "runtime": nil, "createdAt": "2026-06-01T12:00:00Z", "startedAt": nil,
	}
	if b.ID == "8h9k2m4n6q" {
		pod["mounts"] = map[string]any{"network": []any{map[string]any{"volumeId": b.Volume, "path": "/workspace"}}}
	}
	if b.State == "running" {
		pod["status"], pod["actions"], pod["cost"], pod["startedAt"] = "RUNNING", []string{"stop", "restart", "terminate"}, 0.44, b.started
		pod["ssh"] = map[string]any{"proxy": proxy, "direct": map[string]any{"host": "195.26.233.3", "port": 34446 + b.power, "username": "root", "command": "ssh x"}}
	}
	return pod
}
