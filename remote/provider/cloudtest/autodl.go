package cloudtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// AutoDL says its errors inside HTTP 200, and is checked against recorded answers.
func AutoDL(t testing.TB) *Dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		if status >= 500 {
			SendJSON(w, status, map[string]any{"message": say})
			return
		}
		SendJSON(w, 200, map[string]any{"code": "Refused", "msg": say}) // as all its errors
	}
	shapes := autoDLShapes(t)
	d := &Dialect{
		Kind: "autodl", IDs: [3]string{"pro-76419909953e", "pro-76419909953f", "pro-000000000000"}, Refuse: refuse,
		Acts: func(r *http.Request) bool {
			switch Seg(r, 5) {
			case "power_on", "power_off", "release":
				return true
			}
			return Seg(r, 6) == "save"
		},
		Auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == Key },
		Shaped: func(r *http.Request, answer []byte) error {
			want, ok := shapes[r.Method+" "+r.URL.Path]
			if !ok {
				return nil // not recorded: images and power
			}
			var got any
			if err := json.Unmarshal(answer, &got); err != nil {
				return err
			}
			return sameShape(want, got, "")
		},
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
		ok := func(data any) { SendJSON(w, 200, map[string]any{"code": "Success", "data": data}) }
		var b struct {
			ID    string `json:"instance_uuid"`
			Image string `json:"image_name"`
			Page  int    `json:"page_index"`
		}
		json.Unmarshal(body, &b)
		switch what := strings.TrimPrefix(r.URL.Path, "/api/v1/dev/"); what {
		case "wallet/balance":
			ok(map[string]any{"assets": 12345, "voucher_balance": 2000, "accumulate": 3000})
		case "instance/pro/list":
			live := s.Live() // one a page
			list := []any{}
			if b.Page >= 1 && b.Page <= len(live) {
				list = append(list, autoDLJSON(live[b.Page-1]))
			}
			ok(map[string]any{"list": list, "page_index": b.Page, "page_size": 1, "max_page": len(live), "result_total": len(live)})
		case "instance/pro/snapshot":
			box := s.find(r.URL.Query().Get("instance_uuid"))
			if box == nil || box.State != "running" {
				refuse(w, 200, "实例未开机")
				return
			}
			ok(map[string]any{"payg_price": 1970, "origin_pay_price": 1970, "snapshot_gpu_alias_name": "RTX 4090D", "ssh_command": "ssh -p x",
				"proxy_host": "connect.westDC3.seetacloud.com", "ssh_port": 12345 + box.power, "root_password": fmt.Sprintf("p4ss-%d-word", box.power), "jupyter_token": "j"})
		case "instance/pro/image/private/list":
			list := []any{}
			for _, im := range s.Images {
				list = append(list, map[string]any{"image_uuid": im.ID, "name": im.Name, "status": "finished", "image_size": 1 << 30})
			}
			ok(map[string]any{"list": list, "page_index": 1, "page_size": 50, "max_page": 1, "result_total": len(list)})
		case "instance/pro/image/save":
			if s.find(b.ID) == nil {
				refuse(w, 200, "实例不存在")
				return
			}
			id := fmt.Sprintf("image-%d", len(s.Images)+1)
			if !s.drop {
				s.Images[id] = &Image{id, b.Image, b.ID}
			}
			ok(map[string]any{"image_uuid": id})
		default:
			autoDLPower(s, w, what, b.ID, refuse, ok)
		}
	}
	return d
}

func autoDLPower(s *StandIn, w http.ResponseWriter, what, id string, refuse func(http.ResponseWriter, int, string), ok func(any)) {
	action := map[string]string{"instance/pro/power_on": "start", "instance/pro/power_off": "stop", "instance/pro/release": "destroy"}[what]
	if box := s.find(id); action == "destroy" && box != nil && box.State != "stopped" {
		refuse(w, 200, "请先关机")
		return
	}
	switch s.act(id, action) {
	case 200:
		ok(nil)
	case 404:
		refuse(w, 200, "实例不存在")
	default:
		refuse(w, 200, "实例状态不支持该操作")
	}
}

func autoDLJSON(b *Box) map[string]any {
	none := map[string]any{"Time": "0001-01-01T00:00:00Z", "Valid": false}
	one := map[string]any{"uuid": b.ID, "name": b.Name, "status": "shutdown", "sub_status": "", "machine_id": "", "region_sign": "westDC3", "region_name": "", "charge_type": "payg",
		"start_mode": "gpu", "req_gpu_amount": 1, "gpu_spec_uuid": "v-48g", "created_at": "2026-08-23T10:00:00+08:00", "started_at": none,
		"stopped_at": map[string]any{"Time": "2026-11-30T11:00:00Z", "Valid": true}, "expired_at": none, "timed_shutdown_at": none}
	if b.State == "running" {
		one["status"], one["started_at"], one["stopped_at"] = "running", map[string]any{"Time": b.started, "Valid": true}, none
	}
	return one
}

func autoDLShapes(t testing.TB) map[string]any {
	t.Helper()
	text, err := os.ReadFile(sharedSpec(t, "autodl-pro-shapes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all, out = map[string]any{}, map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, shape := range all {
		method, path, _ := strings.Cut(name, " ")
		path, _, _ = strings.Cut(path, "?")
		out[method+" "+path] = shape
	}
	return out
}

// sameShape says where got has a field or a kind that the recorded answer has not.
func sameShape(want, got any, at string) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		for name, v := range g {
			if _, ok := w[name]; !ok {
				return fmt.Errorf("%s.%s is not in the recorded answer", at, name)
			}
			if err := sameShape(w[name], v, at+"."+name); err != nil {
				return err
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			return fmt.Errorf("%s is no list", at)
		}
		for _, v := range g {
			if err := sameShape(w[0], v, at+"[]"); err != nil {
				return err
			}
		}
	case nil:
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			return fmt.Errorf("%s is a %T, recorded as %T", at, got, want)
		}
	}
	return nil
}
