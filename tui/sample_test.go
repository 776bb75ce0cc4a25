package tui

// A hand-made fleet for the tests: fixed in time, with everything that a screen
// may have to draw, hostile text included.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"

	"strconv"
	"strings"
	"sync"
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/session/usage"
	treesync "rentop/sync"
	"rentop/themes"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)

func real(v float64) *float64 { return &v }

func cny(cents int64) *billing.Amount {
	return &billing.Amount{Value: big.NewRat(cents, 100), Currency: "CNY"}
}

func usd(cents int64) *billing.Amount {
	return &billing.Amount{Value: big.NewRat(cents, 100), Currency: "USD"}
}

func wave(n int, mid, amp float64, phase int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Min(100, math.Max(0, mid+amp*math.Sin(float64(i+phase)/3)))
	}
	return out
}

func a100() gpu.GPU {
	return gpu.GPU{
		Index: 0, UUID: "GPU-1", Name: "A100-SXM4-80GB", PCIBus: "00000000:07:00.0", Util: gpu.Of(97), MemUtil: gpu.Of(61),
		MemUsed: gpu.Of(71.2 * (1 << 30)), MemTotal: gpu.Of(80 << 30), Power: gpu.Of(312.4), PowerLimit: gpu.Of(400),
		Temp: gpu.Of(64), Fan: gpu.Value{State: gpu.NA, Why: "[N/A]"}, ClockSM: gpu.Of(1410), ClockSMMax: gpu.Of(1410),
		ClockMem: gpu.Of(1593), PState: "P0", Throttle: []string{"power cap"},
	}
}

func rtx(i int) gpu.GPU {
	return gpu.GPU{
		Index: i, Name: "GeForce RTX 4090", Util: gpu.Of(float64(2 * i)), MemUtil: gpu.Of(0), MemUsed: gpu.Of(float64(i+1) * 0.5 * (1 << 30)), MemTotal: gpu.Of(24 << 30),
		Power: gpu.Of(22), PowerLimit: gpu.Of(450), Temp: gpu.Of(38), Fan: gpu.Of(30), ClockSM: gpu.Of(210), ClockSMMax: gpu.Of(3105), ClockMem: gpu.Of(405), PState: "P8",
	}
}

func code(n int) *int { return &n }

// sample is the fleet of DESIGN.md's sketch, and some trouble.
func sample() *session.FleetView {
	host := gpu.Host{
		CPUs: 16, CPU: gpu.Of(34), Load1: gpu.Of(5.2), MemUsed: gpu.Of(41.2 * (1 << 30)), MemTotal: gpu.Of(125 << 30),
		Disks: []gpu.Disk{{Mount: "/", Used: gpu.Of(61 << 30), Total: gpu.Of(100 << 30)}, {Mount: "/root/data", Used: gpu.Of(930 << 30), Total: gpu.Of(1000 << 30)}},
		NetRx: gpu.Of(12.4e6), NetTx: gpu.Of(31e3), UptimeSec: gpu.Of(11800),
	}
	tune := session.View{
		Name: "a100-tune", Provider: "command", Address: "root@connect.example:41237", State: session.Live, Since: noon.Add(-3 * time.Hour), RTT: 24 * time.Millisecond,
		Facts: &remote.Facts{OS: "Ubuntu 22.04.3 LTS", Container: "docker", Tmux: "3.3a", GPUs: []string{"A100-SXM4-80GB"}},
		Sample: &gpu.Sample{TakenAt: noon, Source: "nvidia-smi", Driver: "550.54.15", GPUs: []gpu.GPU{a100()}, Host: host, Processes: []gpu.Process{
			{GPUIndex: 0, PID: 4711, User: "root", Command: "python train.py --model llama --lr 3e-4 --out ckpt/run-7 --resume", Mem: gpu.Of(70.1 * (1 << 30)), StartedAt: noon.Add(-192 * time.Minute)},
			{GPUIndex: 0, PID: 4800, User: "root", Command: "python -m torch.utils.tensorboard", Mem: gpu.Of(512 << 20), StartedAt: noon.Add(-190 * time.Minute)},
		}},
		History: session.History{Step: 5 * time.Second, Util: [][]float64{wave(120, 80, 30, 0)}, Mean: wave(120, 80, 30, 0), CPU: wave(120, 30, 20, 3)},
		Meter: session.Meter{Cost: cny(2561), Today: cny(2561), PerHour: cny(800), ByMidnight: cny(12161), Budget: cny(5000), BudgetLeft: cny(2439),
			Since: noon.Add(-192 * time.Minute), Note: phrase.Say("note.contact", "2026-11-30 08:48")},
		Receipts: map[string]session.Receipt{"j3": {Receipt: usage.Receipt{Watched: 0.62, Partial: true, GPUs: 1, GPUHours: real(3.2), Mean: real(91), Peak: real(100),
			Mem: []*float64{real(71.2 * (1 << 30))}, Energy: real(3.6e6)}, Cost: cny(2560), AtLeast: cny(2560), Running: true}},
		Jobs: []tmux.Job{
			{ID: "j3", Name: "train", Command: "python train.py --model llama --lr 3e-4 --out ckpt/run-7 --resume", Dir: "/root/project", State: tmux.Running, StartedAt: noon.Add(-192 * time.Minute), PID: 4711, LogSize: 48213, LastLine: "step 18211/40000  loss 1.8342  lr 2.41e-04  1.32 it/s", Tmux: true},
			{ID: "j2", Name: "tokenize", Command: "python prep.py 数据/全部", Dir: "/root/project", State: tmux.Done, ExitCode: code(0), StartedAt: noon.Add(-240 * time.Minute), EndedAt: noon.Add(-200 * time.Minute), LogSize: 9213, LastLine: "已处理 120000 条记录，写入 data/tokens.bin"},
			{ID: "j1", Name: "eval-中文", Command: "python eval.py", State: tmux.Done, ExitCode: code(137), StartedAt: noon.Add(-26 * time.Hour), EndedAt: noon.Add(-25 * time.Hour), LogSize: 120, LastLine: "Killed"},
			{ID: "j0", Name: "old", Command: "sleep 1", State: tmux.Lost, Why: "the instance restarted at 09:12", StartedAt: noon.Add(-50 * time.Hour), LogSize: 0},
		},
		Running: 1, Saved: session.Saved{Known: true, At: noon},
		Artifacts: 2, Saving: &session.SavingView{Since: noon.Add(-3 * time.Hour), Files: 14, Bytes: 31 << 30, At: noon.Add(-4 * time.Minute), Last: "/root/project/out/checkpoint-4200/trainer_state.json"},
		Limit: 4 << 20, Syncs: []session.SyncPair{{Local: ".", Remote: "~/project"}, {Local: "./结果", Remote: "~/project/out"}},
		Transfer: []session.TransferView{
			{ID: 1, Direction: treesync.Push, Local: ".", Remote: "~/project", Result: &treesync.Result{Files: 412, Bytes: 88 << 20, Wire: 21 << 20, Reused: 40 << 20, Took: 9 * time.Second, Verified: true}},
			{ID: 2, Direction: treesync.Pull, Local: "./out", Remote: "~/project/out", Progress: treesync.Progress{Stage: "send", Files: 12, FilesAll: 40, Bytes: 3 << 30, BytesAll: 8 << 30, Rate: 84e6, Left: 61 * time.Second, Wire: 2 << 30, Reused: 512 << 20,
				Transport: "sftp", WhySlower: "commands cannot run as needed: nothing is compressed", Current: "ckpt/step-18000.safetensors"}},
			{ID: 3, Direction: treesync.Push, Local: "./data", Remote: "~/data", Paused: true, Progress: treesync.Progress{Stage: "send", Files: 1, FilesAll: 9, Bytes: 1 << 30, BytesAll: 4 << 30, Left: -1}},
			{ID: 4, Direction: treesync.Push, Local: ".", Remote: "~/project", Progress: treesync.Progress{Stage: "queued", Left: -1}},
		},
		CanStop: true, CanStart: true, CanDestroy: true, CanSnapshot: true,
	}
	data := session.View{
		Name: "4090-data", Address: "ubuntu@10.0.0.7:22", State: session.Live, Since: noon.Add(-2 * time.Hour), RTT: 180 * time.Millisecond,
		Sample:  &gpu.Sample{TakenAt: noon, Source: "nvidia-smi", Driver: "535.98", GPUs: []gpu.GPU{rtx(0), rtx(1)}, Host: host, Hidden: true},
		History: session.History{Step: 5 * time.Second, Util: [][]float64{wave(60, 1, 1, 0), wave(60, 2, 2, 0)}, Mean: wave(60, 1, 2, 0)},
		Meter:   session.Meter{Cost: cny(610), Today: cny(610), PerHour: cny(498), ByMidnight: cny(6586)},
		Saved:   session.Saved{Known: true, Files: 12, Bytes: 3 << 30, At: noon},
		Alerts: []session.Alert{
			{ID: "idle", Level: session.Urgent, Since: noon.Add(-24 * time.Minute),
				Text: phrase.Say("alert.idle", "24 min").Then(phrase.Say("alert.idle.rate", "¥4.98"), phrase.Count("alert.idle.files", 12))},
		},
	}
	data.History.Mean = append(make([]float64, 288), data.History.Mean[:0]...)
	h20 := session.View{
		Name: "h20-infer", Provider: "command", Address: "root@h20.example:22", State: session.Stopped, Reason: phrase.Say("state.provider"), Since: noon.Add(-20 * time.Hour),
		Meter: session.Meter{Cost: cny(336), Today: cny(24), PerHour: cny(2), Running: cny(350), ByMidnight: cny(48)}, Saved: session.Saved{Known: true}, CanStart: true, CanDestroy: true,
	}
	return &session.FleetView{
		At: noon, Sessions: []session.View{tune, data, h20},
		PerHour: session.Sums{Amounts: []billing.Amount{*cny(1298)}}, Today: session.Sums{Amounts: []billing.Amount{*cny(3171)}},
		BudgetLeft: session.Sums{Amounts: []billing.Amount{*cny(1829)}},
		Balances:   []session.Balance{{Provider: "autodl", Left: *cny(12345), At: noon, Lasts: 9*time.Hour + 30*time.Minute}},
	}
}

// trouble is sample with instances in every other state, and unknown money.
func trouble() *session.FleetView {
	v := sample()
	v.Sessions = append(v.Sessions,
		session.View{Name: "训练-机器-一号", Address: "root@gpu.example.cn:30022", State: session.Waiting, Reason: phrase.Say("fault.cut", "connection reset by peer"), RetryAt: noon.Add(12 * time.Second), Meter: session.Meter{AtLeast: cny(12), Missing: []string{"disk price"}}},
		session.View{Name: "h100\x1b[2Jevil", Address: "root@\x1b]0;pwned\x07host:22", State: session.Refused, Reason: phrase.Text{{ID: "fault.hostkey", Args: []string{"the host key changed: \x1b[31mSHA256:abc\x1b[0m"}}}, Meter: session.Meter{}},
		session.View{Name: "t4", Address: "me@t4:22", State: session.Connecting, Reason: phrase.Say("state.login.as", "me"), Meter: session.Meter{Cost: usd(158), PerHour: usd(35)}},
		session.View{Name: "l40", Address: "me@l40:22", State: session.Stalled, Reason: phrase.Say("state.silent"), Meter: session.Meter{PerHour: usd(99)}},
		session.View{Name: "broken", Address: "me@broken:22", State: session.Live, Meter: session.Meter{}, Sample: &gpu.Sample{TakenAt: noon, Problem: &gpu.Problem{What: "the NVIDIA driver is not loaded", Cure: "reboot the instance, or ask the provider"}}},
		session.View{Name: "lost-card", Address: "me@lost:22", State: session.Live, Meter: session.Meter{PerHour: usd(120)}, JobsErr: "the job folder cannot be read: permission denied",
			Sample: &gpu.Sample{TakenAt: noon, GPUs: []gpu.GPU{{Index: 0, Name: "H100 80GB HBM3", Problem: "fell off the bus", Util: gpu.Value{State: gpu.Failed, Why: "ERR!"}}, {Index: 1, Name: "H100 80GB HBM3", Util: gpu.Of(100), MemUsed: gpu.Of(79 << 30), MemTotal: gpu.Of(80 << 30), Temp: gpu.Of(91), Throttle: []string{"too hot (hardware)"}, ThrottleHot: true}}}},
	)
	v.PerHour.Amounts = append(v.PerHour.Amounts, *usd(254))
	v.PerHour.Unknown = 2
	v.ConfigErr = "config.toml:12: unknown key \"prize\""
	return v
}

// inRelease is sample with a release that waits for the person.
func inRelease(phase release.Phase) *session.FleetView {
	v := sample()
	v.Sessions[1].Release = &release.View{
		ID: "r1", Instance: "4090-data", Goal: release.Destroy, Phase: phase, StartedAt: noon.Add(-90 * time.Second), Shown: "shown-1", CanDestroy: true,
		Snapshots: []release.SnapshotKind{release.PortableSnapshot},
		Checks: []release.Check{
			{ID: release.CheckJobs, State: release.Passed, Summary: phrase.Say("jobs.none", 2)},
			{ID: release.CheckArtifacts, State: release.Passed, Summary: phrase.Count("artifacts.equal", 40, "8.1 GB")},
			{ID: release.CheckUnsaved, State: release.Failed, Summary: phrase.Count("unsaved.files", 12, "2.9 GB"), Cure: phrase.Say("unsaved.cure"), Evidence: []release.Evidence{
				{What: "/root/ckpt/step-9000.safetensors", Size: 2 << 30, Lost: true, Detail: phrase.Say("unsaved.moving")},
				{What: "/root/数据/清洗后.parquet", Size: 700 << 20, Lost: true},
				{What: "/root/notes\x1b[31m.md", Size: 2048, Lost: true}, {What: "/root/a", Size: 1, Lost: true}, {What: "/root/b", Size: 1, Lost: true},
				{What: "/root/c", Size: 1, Lost: true}, {What: "/root/d", Size: 1, Lost: true}, {What: "/root/e", Size: 0, Lost: true},
			}},
			{ID: release.CheckGit, State: release.Unknown, Summary: phrase.Say("release.unchecked").Then(phrase.Plain("git is not installed there")), Cure: phrase.Say("git.cure.type")},
			{ID: release.CheckEnv, State: release.Passed, Summary: phrase.Count("env.files", 9, "~/.local/state/rentop/environments/4090-data")},
			{ID: release.CheckSnapshot, State: release.Offered, Summary: phrase.Say("snapshot.offered")},
			{ID: release.CheckCosts, State: release.Passed, Summary: phrase.Count("costs.some", 1)},
		},
		Lost: []release.Evidence{{What: "/root/ckpt/step-9000.safetensors", Size: 2 << 30, Lost: true}}, LostSize: 3 << 30, PullTraffic: "0.97 CNY",
		GoesOn: []release.GoesOn{{What: phrase.Plain("disk, 100 GB"), PerMonth: "35.00 CNY"}},
	}
	if phase == release.Review {
		r := v.Sessions[1].Release
		r.Proof, r.Cost = phrase.Say("proof.gone", "runpod").Then(phrase.Say("proof.detail", "404")), "¥6.10"
		r.Review = session.Review{GPUs: []string{"A100"}, Ran: 6 * time.Hour, Lay: 4 * time.Hour, Bill: billing.Bill{Compute: cny(4800), Disk: cny(100)},
			Watched: 0.67, Util: real(22), PerBusy: cny(3556), Idle: 3 * time.Hour, Wasted: cny(2400), Saving: session.Saving{What: session.SaveIdle, Amount: *cny(2400)}}.Lines()
	}
	return v
}

// fake is a Fleet that records what it is asked.
type fake struct {
	mu      sync.Mutex
	v       *session.FleetView
	changed chan struct{}
	asked   []string
	fail    error
	log     string
	plan    *treesync.Plan
}

func newFake(v *session.FleetView) *fake {
	return &fake{v: v, changed: make(chan struct{}, 1), plan: &treesync.Plan{
		Unchanged: 412, Ignored: 3, Bytes: 5 << 20,
		Actions: []treesync.Action{
			{Op: treesync.Mkdir, Entry: treesync.Entry{Path: "src", Mode: fs.ModeDir | 0o755}, Why: "new"},
			{Op: treesync.Send, Entry: treesync.Entry{Path: "src/train.py", Size: 4211}, Why: "new"},
			{Op: treesync.Send, Entry: treesync.Entry{Path: "src/模型.py", Size: 5 << 20}, Why: "size differs"},
			{Op: treesync.Skip, Entry: treesync.Entry{Path: "sock\x1b[2J"}, Why: "a socket is not sent"},
		},
		Deletes: []treesync.Action{{Op: treesync.Delete, Entry: treesync.Entry{Path: "old/run-1.log"}, Why: "not in the source"}},
	}}
}

func (f *fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.fail
}

func (f *fake) heard() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "; ")
}

func (f *fake) set(v *session.FleetView) {
	f.mu.Lock()
	f.v = v
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fake) View() *session.FleetView {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.v
}

func (f *fake) Changed() <-chan struct{} { return f.changed }
func (f *fake) Answer(id int, a remote.Answer) {
	f.note("answer %d %v %q %v", id, a.OK, a.Text, a.Remember)
}
func (f *fake) Keep(i, al string, d time.Duration) {
	f.note("keep %s %s %v", i, al, d)
}
func (f *fake) Nudge(i string) {}
func (f *fake) Instance(name string) (config.Instance, error) {
	return config.Instance{Name: name, SSH: "ssh -p 41237 root@connect.example", Rate: &config.Rate{PerHour: "8.00", Currency: "CNY"}, Budget: "50"}, nil
}
func (f *fake) Add(in config.Instance) error {
	rate := config.Rate{}
	if in.Rate != nil {
		rate = *in.Rate
	}
	return f.note("add %s %q %s %s", in.Name, in.SSH, rate.PerHour, rate.Currency)
}
func (f *fake) Edit(name string, in config.Instance) error {
	return f.note("edit %s as %s budget %s", name, in.Name, in.Budget)
}
func (f *fake) Remove(name string) error                { return f.note("remove %s", name) }
func (f *fake) Start(_ context.Context, i string) error { return f.note("start %s", i) }
func (f *fake) Doctor(_ context.Context, i string) ([]session.Finding, error) {
	return []session.Finding{{OK: true, What: phrase.Plain("tmux 3.3a")}, {What: phrase.Plain("no rsync"), So: phrase.Plain("files go by \x1b[31msftp")}}, f.note("doctor %s", i)
}
func (f *fake) Terminal(ctx context.Context, i string, t remote.TerminalOptions) (int, error) {
	fmt.Fprintf(t.Out, "shell on %s\r\n$ ", i)
	// As remote does it: what copies the keys still waits for one when the shell ends.
	keys := make(chan byte)
	go func() {
		defer close(keys)
		b := make([]byte, 1)
		for {
			if n, err := t.In.Read(b); err != nil || n == 0 {
				return
			}
			select {
			case keys <- b[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	for k := range keys {
		if k == 4 {
			time.Sleep(50 * time.Millisecond) // until it waits
			break
		}
		t.Out.Write([]byte{k})
	}
	return 0, f.note("terminal %s", i)
}
func (f *fake) JobTerminal(_ context.Context, i, j string, t remote.TerminalOptions) (int, error) {
	return 0, f.note("attach %s %s", i, j)
}
func (f *fake) StartJob(_ context.Context, i string, s session.JobSpec) (tmux.Job, error) {
	return tmux.Job{Name: s.Command}, f.note("job %s %q in %q", i, s.Command, s.Dir)
}
func (f *fake) KillJob(_ context.Context, i, j string) (tmux.Job, error) {
	return tmux.Job{}, f.note("kill %s %s", i, j)
}
func (f *fake) RestartJob(_ context.Context, i, j string) (tmux.Job, error) {
	return tmux.Job{ID: "j9"}, f.note("restart %s %s", i, j)
}
func (f *fake) Arm(_ context.Context, i string, g session.GuardSpec) (session.Guard, error) {
	return session.Guard{Armed: true, Text: phrase.Say("guard.idle", g.Idle)}, f.note("arm %s %v %q %q", i, g.Idle, g.Then, g.Save)
}
func (f *fake) Disarm(_ context.Context, i string) (session.Guard, error) {
	return session.Guard{}, f.note("disarm %s", i)
}
func (f *fake) OpenPort(_ context.Context, i, port string) (session.Port, error) {
	n, _ := strconv.Atoi(port)
	return session.Port{There: n, Here: "127.0.0.1:" + port}, f.note("port %s %s", i, port)
}
func (f *fake) ClosePort(i, port string) bool {
	return port == "6006" && f.note("close port %s %s", i, port) == nil
}
func (f *fake) Snapshot(_ context.Context, i string) (session.Snapshot, error) {
	p := release.Portable{File: "/s/" + i + "-1.tar.zst", Files: 3, Size: 2048}
	return session.Snapshot{ID: p.Name(), Portable: &p}, f.note("snapshot %s", i)
}
func (f *fake) Follow(ctx context.Context, i, j string, from int64, w io.Writer) error {
	f.note("follow %s %s", i, j)
	io.WriteString(w, f.log)
	return f.fail
}
func (f *fake) PlanTransfer(_ context.Context, i string, s session.TransferSpec) (*treesync.Plan, error) {
	if err := f.note("plan %s %s %s %s delete=%v", i, s.Direction, s.Local, s.Remote, s.Delete); err != nil {
		return nil, err
	}
	p := *f.plan
	if !s.Delete {
		p.Deletes = nil
	}
	return &p, nil
}
func (f *fake) StartTransfer(i string, s session.TransferSpec) (int, error) {
	return 3, f.note("transfer %s %s delete=%v verify=%v shown=%v", i, s.Direction, s.Delete, s.Verify, s.Shown)
}
func (f *fake) KeepSaving(i string, on bool) error      { return f.note("save %s %v", i, on) }
func (f *fake) CancelTransfer(i string, id int)         { f.note("cancel %s %d", i, id) }
func (f *fake) PauseTransfer(i string, id int, on bool) { f.note("pause %s %d %v", i, id, on) }
func (f *fake) MoveTransfer(i string, id int, forward bool) bool {
	return f.note("move %s %d %v", i, id, forward) == nil
}
func (f *fake) LimitTransfers(i string, n int64) { f.note("limit %s %d", i, n) }
func (f *fake) Outline(_ string, d treesync.Direction, p *treesync.Plan) session.Outline {
	o := session.Outline{New: 1, Changed: 1, Skipped: 1, Deleted: len(p.Deletes), Bytes: p.Bytes, Unchanged: p.Unchanged}
	if d == treesync.Push {
		took := 5 * time.Second
		o.Estimate = session.Estimate{Rate: 1 << 20, Took: &took, Traffic: cny(12)}
	}
	return o
}
func (f *fake) StartRelease(i string, g release.Goal) error {
	return f.note("release %s %s", i, g)
}
func (f *fake) Decide(i string, d release.Decision) error {
	return f.note("decide %s %s name=%q shown=%q snapshot=%s", i, d.Kind, d.Name, d.Shown, d.Snapshot)
}
func (f *fake) PastRuns(context.Context, string) (*session.PastRuns, error) {
	return &session.PastRuns{}, nil
}
func (f *fake) Costs(_ context.Context, since time.Time) (Costs, error) {
	c := Costs{Since: since, Until: noon, Total: session.Sums{Amounts: []billing.Amount{*cny(21477), *usd(158)}, Unknown: 1}}
	for d := range 6 {
		day := noon.AddDate(0, 0, -d)
		c.Lines = append(c.Lines, CostLine{Instance: "a100-tune", Day: day, Amount: cny(2561 + int64(d)*300)}, CostLine{Instance: "4090-data", Day: day, Amount: cny(610)})
	}
	c.Lines = append(c.Lines, CostLine{Instance: "训练-机器-一号", Day: noon}, CostLine{Instance: "t4", Day: noon, Amount: usd(158)},
		CostLine{Instance: "a100-tune", Job: "train", Day: noon, Amount: cny(2559)}, CostLine{Instance: "a100-tune", Job: "tokenize", Day: noon, Amount: cny(533)})
	if f.fail != nil {
		return Costs{}, f.fail
	}
	c.Said = []CostSaid{{"a100-tune", phrase.Say("bill.budget", "a100-tune", cny(1829), cny(5000)).Then(phrase.Say("bill.lasts", "2 h 17 min", cny(800)))},
		{"a100-tune", phrase.Say("bill.charged", "a100-tune", "2026-11-28 00:00", "2026-11-29 00:00", cny(19400)).Then(phrase.Say("bill.charged.more", cny(19200), cny(200)))}}
	return c, nil
}

var errSample = errors.New("connection lost")

var _ Fleet = (*fake)(nil)

func getenvUTF8(k string) string {
	switch k {
	case "LANG":
		return "en_US.UTF-8"
	case "TERM":
		return "xterm-256color"
	}
	return ""
}

type ctxT = context.Context

func loadASCII() (themes.Glyphs, error) { return themes.LoadGlyphs("ascii", getenvUTF8) }
