package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
)

func autoDLDialect(t testing.TB) *dialect {
	refuse := func(w http.ResponseWriter, status int, say string) {
		if status >= 500 {
			sendJSON(w, status, map[string]any{"message": say})
			return
		}
		sendJSON(w, 200, map[string]any{"code": "Refused", "msg": say}) // as all its errors
	}
	shapes := autoDLShapes(t)
	d := &dialect{
		kind: "autodl", ids: [3]string{"pro-76419909953e", "pro-76419909953f", "pro-000000000000"}, refuse: refuse,
		acts: func(r *http.Request) bool {
			switch seg(r, 5) {
			case "power_on", "power_off", "release":
				return true
			}
			return seg(r, 6) == "save"
		},
		auth: func(r *http.Request) bool { return r.Header.Get("Authorization") == theKey },
		shaped: func(r *http.Request, answer []byte) error {
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
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		ok := func(data any) { sendJSON(w, 200, map[string]any{"code": "Success", "data": data}) }
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
			live := s.live() // one a page
			list := []any{}
			if b.Page >= 1 && b.Page <= len(live) {
				list = append(list, autoDLJSON(live[b.Page-1]))
			}
			ok(map[string]any{"list": list, "page_index": b.Page, "page_size": 1, "max_page": len(live), "result_total": len(live)})
		case "instance/pro/snapshot":
			box := s.find(r.URL.Query().Get("instance_uuid"))
			if box == nil || box.state != "running" {
				refuse(w, 200, "实例未开机")
				return
			}
			ok(map[string]any{"payg_price": 1970, "origin_pay_price": 1970, "snapshot_gpu_alias_name": "RTX 4090D", "ssh_command": "ssh -p x",
				"proxy_host": "connect.westDC3.seetacloud.com", "ssh_port": 12345 + box.power, "root_password": fmt.Sprintf("p4ss-%d-word", box.power), "jupyter_token": "j"})
		case "instance/pro/image/private/list":
			list := []any{}
			for _, im := range s.images {
				list = append(list, map[string]any{"image_uuid": im.id, "name": im.name, "status": "finished", "image_size": 1 << 30})
			}
			ok(map[string]any{"list": list, "page_index": 1, "page_size": 50, "max_page": 1, "result_total": len(list)})
		case "instance/pro/image/save":
			if s.find(b.ID) == nil {
				refuse(w, 200, "实例不存在")
				return
			}
			id := fmt.Sprintf("image-%d", len(s.images)+1)
			if !s.drop {
				s.images[id] = &image{id, b.Image, b.ID}
			}
			ok(map[string]any{"image_uuid": id})
		default:
			autoDLPower(s, w, what, b.ID, refuse, ok)
		}
	}
	return d
}

func autoDLPower(s *standIn, w http.ResponseWriter, what, id string, refuse func(http.ResponseWriter, int, string), ok func(any)) {
	action := map[string]string{"instance/pro/power_on": "start", "instance/pro/power_off": "stop", "instance/pro/release": "destroy"}[what]
	if box := s.find(id); action == "destroy" && box != nil && box.state != "stopped" {
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

func autoDLJSON(b *box) map[string]any {
	none := map[string]any{"Time": "0001-01-01T00:00:00Z", "Valid": false}
	one := map[string]any{"uuid": b.id, "name": b.name, "status": "shutdown", "sub_status": "", "machine_id": "", "region_sign": "westDC3", "region_name": "", "charge_type": "payg",
		"start_mode": "gpu", "req_gpu_amount": 1, "gpu_spec_uuid": "v-48g", "created_at": "2026-08-23T10:00:00+08:00", "started_at": none,
		"stopped_at": map[string]any{"Time": "2026-11-30T11:00:00Z", "Valid": true}, "expired_at": none, "timed_shutdown_at": none}
	if b.state == "running" {
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

func TestAutoDLConforms(t *testing.T) { conforms(t, autoDLDialect(t)) }
func TestAutoDLFaults(t *testing.T)   { chaos(t, autoDLDialect(t)) }

// Money is in thousandths of a yuan.
func TestAutoDLThousandths(t *testing.T) {
	s := newStandIn(t, autoDLDialect(t))
	p := s.inMemory()
	b, err := p.(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "12.345" || b.Credit != "2" || b.Currency != "CNY" {
		t.Errorf("%+v, %v", b, err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 || list[0].PerHour != "1.97" || list[0].GPU != "RTX 4090D" {
		t.Errorf("%+v, %v", list, err)
	}
}

// An error comes with HTTP 200: it is an error, and what was asked is not done.
func TestAutoDLErrorInside200(t *testing.T) {
	for _, body := range []string{`{"code":"NoStock","msg":"库存不足"}`, `{"data":{}}`, `[]`, `ok`} {
		d := autoDLDialect(t)
		serve := d.serve
		d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
			if seg(r, 5) == "power_on" {
				w.Write([]byte(body))
				return
			}
			serve(s, w, r, b)
		}
		s := newStandIn(t, d)
		s.boxes[d.ids[0]].state = "stopped"
		err := s.inMemory().Start(t.Context(), d.ids[0])
		if err == nil || strings.Contains(body, "NoStock") && !strings.Contains(err.Error(), "NoStock 库存不足") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Port and password are new after each power cycle, and the password is nowhere.
func TestAutoDLPowerCycle(t *testing.T) {
	s := newStandIn(t, autoDLDialect(t))
	p := s.inMemory()
	id := s.d.ids[0]
	ask := func() provider.Address {
		a, err := p.(provider.Addresser).Address(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := ask()
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.(provider.Addresser).Address(t.Context(), id); !errors.Is(err, provider.ErrNoAddress) {
		t.Errorf("stopped: %v", err)
	}
	if err := p.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	second := ask()
	if first.Port == second.Port || first.Password == second.Password || second.Password.Reveal() != "p4ss-1-word" {
		t.Errorf("%+v, then %+v", first, second)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", second, second, second), "p4ss") {
		t.Error("the password is shown")
	}
}

// A release needs a shutdown, never a start; one that is not done is no release.
func TestAutoDLReleaseShutsDownFirst(t *testing.T) {
	s := newStandIn(t, autoDLDialect(t))
	p := s.inMemory()
	if err := p.Destroy(t.Context(), s.d.ids[0]); err != nil || s.truth(s.d.ids[0]) != "gone" {
		t.Errorf("%v, it is %s", err, s.truth(s.d.ids[0]))
	}
	for _, line := range s.requests {
		if strings.Contains(line, "power_on") {
			t.Errorf("it was started: %s", line)
		}
	}
	s.lag = true // accepted and not done, as by an instance that still boots
	if err := p.Destroy(t.Context(), s.d.ids[1]); err == nil || !strings.Contains(err.Error(), "was not released") {
		t.Errorf("%v", err)
	}
	if s.truth(s.d.ids[1]) != "running" {
		t.Errorf("it is %s", s.truth(s.d.ids[1]))
	}
}

// Fifteen days after its shutdown an instance goes with its data.
func TestAutoDLStoppedIsReleased(t *testing.T) {
	s := newStandIn(t, autoDLDialect(t))
	s.boxes[s.d.ids[0]].state = "stopped"
	list, err := s.inMemory().(provider.Importer).Import(t.Context())
	if err != nil || !list[0].Ends.Equal(time.Date(2026, 12, 15, 11, 0, 0, 0, time.UTC)) || list[0].PerHour != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
