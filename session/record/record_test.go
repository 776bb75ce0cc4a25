package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/session/usage"
	"rentop/sync"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func cny(cents int64) *billing.Amount {
	return &billing.Amount{Value: big.NewRat(cents, 100), Currency: "CNY"}
}

// view is a fleet as it is n seconds after noon: everything that a screen may show.
func view(n int) *session.FleetView {
	at := noon.Add(time.Duration(n) * time.Second)
	code := 137
	steps := n/2 + 5
	h := session.History{Step: 2 * time.Second, Util: [][]float64{{}, {}}, Mem: [][]float64{{}, {}}}
	for i := range steps {
		v := float64(i%1000) / 10
		if i%7 == 3 {
			v = math.NaN()
		}
		h.CPU, h.Mean = append(h.CPU, v), append(h.Mean, v)
		for g := range 2 {
			h.Util[g], h.Mem[g] = append(h.Util[g], v), append(h.Mem[g], v)
		}
	}
	if over := steps - 600; over > 0 { // as session keeps it
		h.CPU, h.Mean = h.CPU[over:], h.Mean[over:]
		for g := range 2 {
			h.Util[g], h.Mem[g] = h.Util[g][over:], h.Mem[g][over:]
		}
	}
	a := session.View{
		Name: "a100-tune", Provider: "autodl", Address: "root@connect.example:41237", State: session.Live, Since: noon.Add(-time.Hour), RTT: 24 * time.Millisecond,
		Facts: &remote.Facts{User: "root", Home: "/root", OS: "Ubuntu 22.04", Container: "docker", GPUs: []string{"A100-SXM4-80GB"}},
		Sample: &gpu.Sample{TakenAt: at, Source: "nvml", Driver: "550.54.15", GPUs: []gpu.GPU{
			{Index: 0, UUID: "GPU-aaaa", Name: "A100-SXM4-80GB", Util: gpu.Of(float64(n % 100)), MemUsed: gpu.Of(70 << 30), MemTotal: gpu.Of(80 << 30), Throttle: []string{"power cap"}, ThrottleKnown: true},
			{Index: 1, UUID: "GPU-bbbb", Name: "A100-SXM4-80GB", Problem: "fell off the bus"}},
			Processes: []gpu.Process{{GPUIndex: 0, PID: 4711, User: "alice", Command: "python train.py --key k", Mem: gpu.Of(70 << 30)}},
			Host:      gpu.Host{CPUs: 16, CPU: gpu.Of(34), Disks: []gpu.Disk{{Mount: "/data", Used: gpu.Of(61 << 30), Total: gpu.Of(100 << 30)}}}},
		History: h,
		Meter: session.Meter{Cost: &billing.Amount{Value: big.NewRat(int64(800*n+7), 360000), Currency: "CNY"}, PerHour: cny(800), Budget: cny(5000), BudgetLeft: cny(2439),
			Since: noon.Add(-3 * time.Hour), Note: phrase.Say("note.contact", "2026-11-30 08:48")},
		Jobs: []tmux.Job{{ID: "j3", Name: "train", Command: "python train.py --key k", Dir: "/root/project", State: tmux.Running, StartedAt: noon.Add(-time.Hour), LogSize: int64(n), LastLine: fmt.Sprintf("step %d", n), Tmux: true},
			{ID: "j1", Name: "eval", State: tmux.Done, ExitCode: &code, EndedAt: noon}},
		Running: 1, Saved: session.Saved{Known: true, Files: 12, Bytes: 3 << 30, At: noon},
		Transfer: []session.TransferView{{ID: 2, Direction: sync.Pull, Local: "./out", Remote: "~/project/out", Progress: sync.Progress{Stage: "send", Files: int64(n), FilesAll: 40, Rate: 84e6, Left: -1, Current: "ckpt/step.bin"}},
			{ID: 1, Direction: sync.Push, Local: ".", Remote: "~/project", Result: &sync.Result{Files: 412, Bytes: 88 << 20, Took: 9 * time.Second, Verified: true}}},
		Syncs:      []session.SyncPair{{Local: ".", Remote: "~/project"}},
		Alerts:     []session.Alert{{ID: "disk /data", Level: session.Warn, Since: noon, Text: phrase.Say("alert.disk", "/data", 96)}},
		PastAlerts: []session.PastAlert{{Alert: session.Alert{ID: "hot", Level: session.Warn, Since: noon.Add(-time.Hour), Text: phrase.Say("alert.hot", 0)}, Ended: noon}},
		CanStop:    true,
		Day:        session.History{Step: time.Minute, CPU: []float64{1, 2}, Mean: []float64{3, math.NaN()}},
		Artifacts:  1, Saving: &session.SavingView{Since: noon, Files: 3, Bytes: 7 << 30, Failed: 1, At: noon, Last: "/root/project/ckpt/best.pt", Err: "10.0.0.7 refused"},
		Guard: &session.Guard{ID: "g", Phase: "watching", Armed: true, Then: "sudo poweroff", Save: "cp -r ckpt /mnt", Text: phrase.Plain("armed: sudo poweroff"),
			Rules: []session.GuardRule{{Kind: "idle", Text: phrase.Plain("idle for 20 min"), Due: noon}}},
	}
	mean := 91.0
	a.Receipts = map[string]session.Receipt{"j3": {Receipt: usage.Receipt{From: noon, To: at, Watched: 0.62, Mean: &mean, Peak: &mean, GPUs: 1, Mem: []*float64{&mean, nil}}, Cost: cny(2559)}}
	b := session.View{Name: "4090-data", State: session.Waiting, Reason: phrase.Say("fault.cut", "read tcp 10.0.0.7: connection reset"), RetryAt: at.Add(5 * time.Second),
		Meter: session.Meter{AtLeast: cny(12), Missing: []string{"disk price"}}, History: session.History{},
		Release: &release.View{ID: "r1", Instance: "4090-data", Goal: release.Destroy, Phase: release.Waiting, StartedAt: noon, Lost: []release.Evidence{{What: "/root/x", Size: 5, Lost: true}},
			Checks: []release.Check{{ID: release.CheckUnsaved, State: release.Failed, Summary: phrase.Count("unsaved.files", 12, "2.9 GB"), Evidence: []release.Evidence{{What: "/root/x", Size: 5, Lost: true}}}},
			GoesOn: []release.GoesOn{{What: phrase.Plain("disk, 100 GB"), PerMonth: "35.00 CNY"}}}}
	v := &session.FleetView{At: at, Sessions: []session.View{a, b}, PerHour: session.Sums{Amounts: []billing.Amount{*cny(1298)}, Unknown: 1},
		Notices: []session.Notice{{At: noon, Instance: "a100-tune", Level: session.Warn, Text: phrase.Say("job.failed", "train", 1)}}}
	if n%90 > 60 { // one comes and goes
		v.Sessions = append(v.Sessions, session.View{Name: "new", State: session.Connecting, Reason: phrase.Say("state.login")})
	}
	return v
}

// recorded is a file of views at the given seconds.
func recorded(t testing.TB, o Options, seconds ...int) []byte {
	t.Helper()
	var out bytes.Buffer
	r, err := New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range seconds {
		if err := r.Add(view(n)); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func opened(t testing.TB, file []byte) *Recording {
	t.Helper()
	r, err := Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// plain makes views comparable: money by its text, samples by their JSON, NaN by -1.
func plain(t testing.TB, v *session.FleetView) string {
	t.Helper()
	c := *v
	c.Sessions = nil
	var b strings.Builder
	for _, s := range v.Sessions {
		js, err := json.Marshal(s.Sample)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\nsample %s\nhistory %v\n", s.Name, js, s.History)
		for _, a := range []*billing.Amount{s.Meter.Cost, s.Meter.AtLeast, s.Meter.PerHour, s.Meter.BudgetLeft} {
			if a != nil {
				fmt.Fprintf(&b, "%s %s ", a.Value.RatString(), a.Currency)
			}
		}
		s.Sample, s.History, s.Meter.Cost, s.Meter.AtLeast, s.Meter.PerHour, s.Meter.Budget, s.Meter.BudgetLeft = nil, session.History{}, nil, nil, nil, nil, nil
		if s.Facts != nil {
			fmt.Fprintf(&b, "%+v", *s.Facts)
			s.Facts = nil
		}
		for i := range s.Jobs {
			j := s.Jobs[i]
			fmt.Fprintf(&b, "exit %v", j.ExitCode != nil && *j.ExitCode == 137)
			j.ExitCode = nil
			fmt.Fprintf(&b, "%+v\n", j)
		}
		s.Jobs = nil
		if r, ok := s.Receipts["j3"]; ok {
			fmt.Fprintf(&b, "%v %v %v %v %v", *r.Mean, *r.Peak, r.Watched, r.Cost.Value.RatString(), *r.Mem[0])
		}
		if s.Guard != nil {
			fmt.Fprintf(&b, "%+v", *s.Guard)
		}
		if s.Saving != nil {
			fmt.Fprintf(&b, "%+v", *s.Saving)
		}
		s.Receipts, s.Guard, s.Saving = nil, nil, nil
		for i := range s.Transfer {
			fmt.Fprintf(&b, "%+v", s.Transfer[i].Result)
		}
		s.Transfer = nil
		if s.Release != nil {
			fmt.Fprintf(&b, "%+v", *s.Release)
			s.Release = nil
		}
		fmt.Fprintf(&b, "%+v\n", s)
	}
	fmt.Fprintf(&b, "%v %v %v", c.PerHour.Unknown, c.PerHour.Amounts[0], c.Notices)
	return strings.NewReplacer("+0000 UTC", "UTC", " UTC", "", "[]", "<nil>").Replace(b.String())
}

// What was shown is shown again, whichever way one comes to it.
func TestSameViews(t *testing.T) {
	t.Parallel()
	r := opened(t, recorded(t, Options{Rentop: "1.2.3"}, upTo(200)...))
	if r.Len() != 200 || r.About().Rentop != "1.2.3" || r.Cut() != 0 {
		t.Fatalf("%d views, about %+v, cut %d", r.Len(), r.About(), r.Cut())
	}
	for _, i := range []int{0, 1, 2, 61, 60, 59, 199, 100, 101, 120, 119, 0} {
		v, err := r.At(i)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := plain(t, v), plain(t, view(i)); got != want {
			t.Fatalf("view %d:\n got %s\nwant %s", i, got, want)
		}
		if !v.At.Equal(view(i).At) {
			t.Errorf("view %d is of %v", i, v.At)
		}
	}
	if i := r.Find(noon.Add(90500 * time.Millisecond)); i != 90 {
		t.Errorf("found view %d, want 90", i)
	}
	if r.Find(noon.Add(-time.Hour)) != 0 || r.Find(noon.Add(time.Hour)) != 199 {
		t.Error("what is beyond the ends is not found at them")
	}
}

// A recording that was cut anywhere is read up to its last whole chunk.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	file := recorded(t, Options{}, upTo(65)...)
	whole := opened(t, file)
	for size := 0; size < len(file); size += 97 {
		r, err := Read(bytes.NewReader(file[:size]), int64(size))
		if err != nil {
			if size > int(whole.views[0].offset)+whole.views[0].packed {
				t.Fatalf("cut at %d: %v", size, err)
			}
			continue
		}
		n := r.Len()
		if end := whole.views[n-1].offset + int64(whole.views[n-1].packed); int64(size)-end != r.Cut() {
			t.Fatalf("cut at %d: %d views and %d bytes cut", size, n, r.Cut())
		}
		v, err := r.At(n - 1)
		if err != nil || plain(t, v) != plain(t, view(n-1)) {
			t.Fatalf("cut at %d: view %d: %v", size, n-1, err)
		}
		r.Close()
	}
}

// A clock that was set back does not end the recording.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	r := opened(t, recorded(t, Options{}, 0, 1, 500, 2, 3, 4))
	for i := range r.Len() {
		if _, err := r.At(i); err != nil {
			t.Error(err)
		}
		if i > 0 && r.Time(i).Before(r.Time(i-1)) {
			t.Errorf("view %d is before the one before it", i)
		}
	}
}

// No word of the person's is in a redacted file, and equal words are equal.
func TestRedact(t *testing.T) {
	t.Parallel()
	r := opened(t, recorded(t, Options{Redact: true}, upTo(130)...))
	var all strings.Builder
	dec := opened(t, recorded(t, Options{Redact: true}, upTo(130)...))
	for i := range dec.views { // all that the file holds, not only what is shown
		if err := dec.step(i); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s ", dec.fleet, dec.order)
		for _, s := range dec.by {
			js, _ := json.Marshal(s.sample)
			fmt.Fprintf(&all, "%s %s", s.fields, js)
		}
	}
	for _, secret := range []string{"a100-tune", "4090", "connect.example", "41237", "train", "python", "alice", "/data", "/root", "project", "ckpt", "10.0.0.7", "step 1", "poweroff", "/mnt", "GPU-aaaa", `"root"`, "eval"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
	v, err := r.At(129)
	if err != nil {
		t.Fatal(err)
	}
	s := v.Sessions[0]
	if s.Name != "instance-1" || s.Address != "user-1@host-1" || s.Jobs[0].Command != s.Sample.Processes[0].Command || s.Alerts[0].Text.String() != "the disk at "+s.Sample.Host.Disks[0].Mount+" is 96 % full: a checkpoint may not fit" {
		t.Errorf("%s %s %s %s %q", s.Name, s.Address, s.Jobs[0].Command, s.Sample.Processes[0].Command, s.Alerts[0].Text)
	}
	if s.Alerts[0].ID != "disk "+s.Sample.Host.Disks[0].Mount || !strings.HasPrefix(s.Sample.Host.Disks[0].Mount, "path-") || v.Notices[0].Text.String() != "job job-1 failed with exit code 1" || v.Notices[0].Instance != "instance-1" {
		t.Errorf("%s %s %s %s", s.Alerts[0].ID, s.Sample.Host.Disks[0].Mount, v.Notices[0].Text, v.Notices[0].Instance)
	}
	if !r.About().Redacted {
		t.Error("the file does not say that words are hidden")
	}
}

// Every text of a view that is not known to be harmless is hidden: also one that
// somebody adds to session's types tomorrow and to the format after that.
func TestRedactsEveryText(t *testing.T) {
	t.Parallel()
	v := view(5)
	for i := range v.Sessions {
		mark(reflect.ValueOf(&v.Sessions[i]).Elem(), "")
	}
	mark(reflect.ValueOf(&v.Notices).Elem(), "")
	var out bytes.Buffer
	r, err := New(&out, Options{Redact: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(v); err != nil {
		t.Fatal(err)
	}
	rec := opened(t, out.Bytes())
	if err := rec.step(0); err != nil {
		t.Fatal(err)
	}
	for _, s := range rec.by {
		js, _ := json.Marshal(s.sample)
		for name, text := range map[string]string{"fields": fmt.Sprintf("%s", s.fields), "sample": string(js), "fleet": fmt.Sprintf("%s", rec.fleet)} {
			if i := strings.Index(text, "SECRET"); i >= 0 {
				t.Errorf("%s hold %s", name, text[max(i-60, 0):min(i+40, len(text))])
			}
		}
	}
}

// kept are texts of rentop's own, which no instance writes: what a state is, what money is.
var kept = map[string]bool{"Provider": true, "State": true, "Currency": true, "ID": true,
	"Stage": true, "Direction": true, "Transport": true, "Goal": true, "Phase": true, "Ended": true, "Cost": true, "PerMonth": true, "Kind": true}

// mark writes a secret into every text but those kept.
func mark(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*big.Rat]() {
			mark(v.Elem(), field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				name := v.Type().Field(i).Name
				if v.Type() == reflect.TypeFor[session.Guard]() { // from a file there
					name += " there"
				}
				if v.Type() == reflect.TypeFor[release.Evidence]() && name == "What" || v.Type() == reflect.TypeFor[tmux.Job]() && name == "Why" {
					name = "hidden"
				}
				mark(v.Field(i), name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			mark(v.Index(i), field)
		}
	case reflect.String:
		if !kept[field] && v.String() != "" {
			v.SetString("SECRET " + v.String())
		}
	}
}

// What a machine tells of itself is known word by word: an instance that puts a name
// or an address there gives nothing away.
func TestMachineWords(t *testing.T) {
	t.Parallel()
	h := newStands()
	for _, s := range []string{"H100 80GB HBM3", "GeForce RTX 4060 Ti", "RTX 6000 Ada Generation", "A100-SXM4-80GB", "Tesla V100-SXM2-16GB", "AMD Instinct MI300X OAM", "Ascend910", "910B4",
		"GRID A10-24Q", "L40S", "GB10", "590.48.01", "24.1.2", "3.3a", "P0", "Enabled", "1g.10gb", "3g.40gb+me", "00000000:0A:00.0", "Debian GNU/Linux 12 (bookworm)", "Ubuntu 22.04.4 LTS", "x86_64", "docker"} {
		if got := h.machine(s); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	}
	for s, want := range map[string]string{"RTX 4090 of alice": "RTX 4090 …", "10.0.0.7": "…", "root@gpu.example:41237": "…", "13800138000": "…", "Debian 12 for ACME Corp": "Debian 12 …", "H100\x1b[31m": "…", "/root/secret": "…"} {
		if got := h.machine(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
	if h.source("nvml") != "nvml" || h.source("alice@host") == "alice@host" || h.guardWord("watching") != "watching" {
		t.Error("sources and phases")
	}
	g := gpu.GPU{Throttle: []string{"power cap", "reason 0x200", "ask alice"}}
	if h.card(&g); g.Throttle[0] != "power cap" || g.Throttle[1] != "reason 0x200" || strings.Contains(g.Throttle[2], "alice") {
		t.Errorf("throttled: %q", g.Throttle)
	}
}

func TestDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.rec")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name, Options{}); err == nil || !strings.Contains(err.Error(), "choose another name") {
		t.Errorf("Create over a file: %v", err)
	}
}

type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	r, err := New(&full{n: 2}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := r.Add(view(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Add(view(2)); err == nil || !strings.Contains(err.Error(), "stays readable") {
		t.Errorf("on a full disk: %v", err)
	}
}

// An hour of a fleet is small.
func TestSize(t *testing.T) {
	t.Parallel()
	file := recorded(t, Options{}, upTo(600)...)
	if perSecond := len(file) / 600; perSecond > 700 {
		t.Errorf("%d bytes a second", perSecond)
	} else {
		t.Logf("%d bytes a second", perSecond)
	}
}

// Hostile files are refused or shown, and never more than bounded.
func FuzzRead(f *testing.F) {
	file := recorded(f, Options{}, 0, 1, 2, 61, 62)
	f.Add(file, uint16(100), byte(1))
	f.Add(recorded(f, Options{Redact: true}, 0), uint16(60), byte(255))
	f.Add([]byte(magic+"\x01"), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, file []byte, at uint16, with byte) {
		if int(at) < len(file) {
			file = bytes.Clone(file)
			file[at] ^= with
		}
		r, err := Read(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		defer r.Close()
		for i := range min(r.Len(), 5) {
			if v, err := r.At(i); err == nil {
				checkClean(t, v)
			}
		}
	})
}

// FuzzFrame is FuzzRead behind the checksums: a file that was made with care.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{`{"order":["a"],"sessions":[{"name":"a","fields":{"state":"live","meter":{"cost":{"value":"1/0","currency":"CNY"}}}}]}`,
		`{"order":["a","a"],"sessions":[{"name":"b"}]}`, `{"fleet":{"notices":[{"at":"2026-01-01T00:00:00Z","level":99,"text":[{"id":"x%s","args":["\u001b"]}]}]}}`,
		`{"order":["a"],"sessions":[{"name":"a","history":{"step":1,"gpus":2,"drop":-1,"rows":[[1,2,3,4,5,6],[1]]}}]}`,
		`{"order":["a"],"sessions":[{"name":"a","fields":{"jobs":[{"name":"\u001b[2J","log_size":-5}],"release":{"checks":[{}]},"transfers":[{"files":-1}]}}]}`} {
		f.Add([]byte(s), []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := &Recording{fleet: fields{}, by: map[string]*read{}}
		for _, plain := range [][]byte{a, b} {
			var x frame
			if json.Unmarshal(plain, &x) != nil || r.take(x) != nil {
				return
			}
			if v, err := r.view(noon); err == nil {
				checkClean(t, v)
			}
		}
	})
}

// checkClean looks for control characters in every text of a view.
func checkClean(t *testing.T, v *session.FleetView) {
	t.Helper()
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && v.Type() != reflect.TypeFor[*big.Rat]() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.String:
			if s := v.String(); s != remote.Clean(s) {
				t.Fatalf("not clean: %q", s)
			}
		}
	}
	walk(reflect.ValueOf(v))
}

// A player stops at the end, and goes where it is told.
func TestPlayer(t *testing.T) {
	t.Parallel()
	p, err := NewPlayer(opened(t, recorded(t, Options{}, upTo(121)...)))
	if err != nil {
		t.Fatal(err)
	}
	at := func(want int, paused bool) {
		t.Helper()
		if got := p.Playing(); !got.At.Equal(noon.Add(time.Duration(want)*time.Second)) || got.Paused != paused || !p.View().At.Equal(got.At.Truncate(time.Second)) {
			t.Errorf("at %v (view %v, paused %v), want %d s, paused %v", got.At, p.View().At, got.Paused, want, paused)
		}
	}
	at(0, false)
	p.advance(3 * time.Second)
	at(3, false)
	p.Faster()
	p.Faster()
	p.advance(10 * time.Second)
	at(43, false)
	p.Toggle()
	p.advance(time.Hour)
	at(43, true)
	p.Seek(-time.Minute)
	p.advance(0)
	at(0, true)
	p.Seek(100 * time.Second)
	p.advance(0)
	at(100, true)
	p.Toggle()
	p.Slower()
	p.Slower()
	p.Slower()
	p.advance(20 * time.Second)
	at(120, true) // the end
	p.Toggle()
	p.advance(0)
	at(0, false)
	if p.Playing().Speed != 1 || !p.Now().Equal(noon) {
		t.Errorf("speed %d at %v", p.Playing().Speed, p.Now())
	}
}
