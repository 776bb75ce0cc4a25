package tui

// Any view, any size, any keys: nothing panics, no line is wider than the window,
// no control character of an instance reaches the terminal.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/phrase"
	"rentop/session/release"
	treesync "rentop/sync"
)

// chaos makes views of whatever the random source says, with hostile texts.
type chaos struct {
	*rand.Rand
	words []string
}

func (c chaos) word() string { return c.words[c.IntN(len(c.words))] }

func (c chaos) value() gpu.Value {
	switch c.IntN(6) {
	case 0:
		return gpu.Value{}
	case 1:
		return gpu.Value{State: gpu.Failed, Why: c.word()}
	case 2:
		return gpu.Of([]float64{math.NaN(), math.Inf(1), -1, 1e300, 0}[c.IntN(5)])
	}
	return gpu.Of(c.Float64() * float64(int64(1)<<c.IntN(45)))
}

func (c chaos) series() []float64 {
	out := make([]float64, c.IntN(200))
	for i := range out {
		out[i] = c.Float64() * 120
		if c.IntN(5) == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

func (c chaos) when() time.Time {
	if c.IntN(5) == 0 {
		return time.Time{}
	}
	return noon.Add(time.Duration(c.IntN(1<<30)-1<<29) * time.Second)
}

func (c chaos) session(i int) session.View {
	states := []session.State{session.Idle, session.Connecting, session.Asking, session.Live, session.Live, session.Live, session.Stalled, session.Waiting, session.Refused, session.Stopped, session.Gone, "new"}
	v := session.View{Name: fmt.Sprint(i, c.word()), Provider: c.word(), Address: c.word(), State: states[c.IntN(len(states))], Reason: phrase.Plain(c.word()), Since: c.when(), RetryAt: c.when(), RTT: time.Duration(c.Int64N(1 << 40))}
	if c.IntN(4) > 0 {
		s := &gpu.Sample{TakenAt: c.when(), Driver: c.word(), Hidden: c.IntN(2) == 0}
		for j := range c.IntN(9) {
			s.GPUs = append(s.GPUs, gpu.GPU{Index: j, Name: c.word(), Util: c.value(), MemUsed: c.value(), MemTotal: c.value(), Power: c.value(), PowerLimit: c.value(), Temp: c.value(), TempMargin: c.value(),
				Fan: c.value(), ClockSM: c.value(), ClockSMMax: c.value(), ClockMem: c.value(), ECCErrors: c.value(), PState: c.word(), Throttle: []string{c.word(), c.word()}[:c.IntN(3)], ThrottleHot: c.IntN(2) == 0, Problem: []string{"", c.word()}[c.IntN(2)]})
			v.History.Util = append(v.History.Util, c.series())
		}
		for range c.IntN(30) {
			s.Processes = append(s.Processes, gpu.Process{GPUIndex: c.IntN(10) - 1, PID: c.IntN(1 << 30), User: c.word(), Command: c.word(), Mem: c.value(), StartedAt: c.when()})
		}
		s.Host = gpu.Host{CPUs: c.IntN(300), CPU: c.value(), Load1: c.value(), MemUsed: c.value(), MemTotal: c.value(), NetRx: c.value(), NetTx: c.value(), UptimeSec: c.value(), Disks: []gpu.Disk{{Mount: c.word(), Used: c.value(), Total: c.value(), InodesUsed: c.value()}}}
		if c.IntN(4) == 0 {
			s.Problem = &gpu.Problem{What: c.word(), Cure: c.word()}
		}
		v.Sample, v.History.Mean, v.History.CPU = s, c.series(), c.series()
	}
	if c.IntN(2) == 0 {
		v.Meter = session.Meter{Cost: cny(c.Int64N(1 << 40)), Budget: cny(c.Int64N(1 << 20)), BudgetLeft: cny(c.Int64N(1<<20) - 1<<19), Note: phrase.Plain(c.word()), Missing: []string{c.word()}}
	}
	for j := range c.IntN(12) {
		job := tmux.Job{ID: fmt.Sprint(j), Name: c.word(), Command: c.word(), Dir: c.word(), State: []tmux.State{tmux.Starting, tmux.Running, tmux.Done, tmux.Killed, tmux.Lost, "odd"}[c.IntN(6)], StartedAt: c.when(), EndedAt: c.when(), LastLine: c.word(), Why: c.word(), LogSize: c.Int64N(1<<50) - 5}
		if c.IntN(2) == 0 {
			job.ExitCode = code(c.IntN(300))
		}
		v.Jobs = append(v.Jobs, job)
	}
	v.Running = c.IntN(3)
	v.Saved = session.Saved{Known: c.IntN(2) == 0, Files: c.IntN(1e6)}
	for j := range c.IntN(5) {
		t := session.TransferView{ID: j + 1, Direction: []treesync.Direction{treesync.Push, treesync.Pull}[c.IntN(2)], Local: c.word(), Remote: c.word(), Err: []string{"", c.word()}[c.IntN(2)], Cancelled: c.IntN(5) == 0,
			Progress: treesync.Progress{Stage: c.word(), Bytes: c.Int64N(1 << 50), BytesAll: c.Int64N(1 << 40), Rate: c.Float64() * 1e12, Left: time.Duration(c.Int64N(1<<60) - 1), Current: c.word(), Transport: c.word()}}
		if c.IntN(3) == 0 {
			t.Result = &treesync.Result{Failed: []treesync.Failure{{Path: c.word(), Err: errSample}, {Path: c.word()}}}
		}
		v.Transfer = append(v.Transfer, t)
	}
	for range c.IntN(3) {
		v.Syncs = append(v.Syncs, session.SyncPair{Local: c.word(), Remote: c.word()})
		v.Alerts = append(v.Alerts, session.Alert{ID: c.word(), Level: session.Level(c.IntN(3)), Text: phrase.Plain(c.word()), Since: c.when()})
	}
	if c.IntN(3) == 0 {
		r := &release.View{Goal: []release.Goal{release.CheckOnly, release.Stop, release.Destroy}[c.IntN(3)], Phase: []release.Phase{release.Checking, release.Waiting, release.Stuck, release.Review, release.Cancelled, release.Proving}[c.IntN(6)],
			Why: phrase.Plain(c.word()), StopNote: c.word(), Proof: phrase.Plain(c.word()), Cost: c.word(), Resumed: true, StartedAt: c.when(), GoesOn: []release.GoesOn{{What: phrase.Plain(c.word()), PerMonth: c.word()}}, Snapshots: []release.SnapshotKind{release.PortableSnapshot}}
		for range c.IntN(8) {
			ch := release.Check{ID: release.CheckID(c.word()), State: []release.CheckState{release.Pending, release.Failed, release.Unknown, release.Offered, release.Waived}[c.IntN(5)], Summary: phrase.Plain(c.word()), Cure: phrase.Plain(c.word())}
			for range c.IntN(12) {
				ch.Evidence = append(ch.Evidence, release.Evidence{What: c.word(), Size: c.Int64N(1<<50) - 1, Detail: phrase.Plain(c.word()), Lost: c.IntN(2) == 0})
			}
			r.Checks = append(r.Checks, ch)
		}
		v.Release = r
	}
	return v
}

func (c chaos) fleet() *session.FleetView {
	v := &session.FleetView{At: noon, Simulated: c.IntN(2) == 0, ConfigErr: []string{"", c.word()}[c.IntN(2)]}
	for i := range c.IntN(25) {
		v.Sessions = append(v.Sessions, c.session(i))
	}
	v.PerHour.Unknown = c.IntN(3)
	if c.IntN(6) == 0 {
		v.Questions = []session.Question{{ID: 1 + c.IntN(9), Question: remote.Question{Kind: remote.QuestionKind(c.IntN(4)), Instance: c.word(), Host: c.word(), Prompt: c.word(), Fingerprint: c.word(), KeyFile: c.word(), CanRemember: true, Retry: c.IntN(2) == 0}}}
	}
	for range c.IntN(3) {
		v.Notices = append(v.Notices, session.Notice{At: c.when(), Instance: c.word(), Text: phrase.Plain(c.word()), Level: session.Level(c.IntN(3))})
	}
	return v
}

var fuzzKeys = strings.Split("j k g G enter enter enter esc esc tab up down left right pgup pgdown space / : ? a e D J s r n x R p P $ 1 2 3 [ ] o O K S c d v F w f y t A M T m q l backspace ctrl+u ctrl+w ctrl+k ctrl+s ctrl+p 中 é ~ !", " ")

func FuzzScreens(f *testing.F) {
	hostile := "plain\x1b[2J\x1b]0;pwned\x07|日本語の長い名前がここに|e\u0301\u0301\u0301|👨‍👩‍👧‍👦👍🏽❤️🇩🇪|\u202egnp.exe|" + strings.Repeat("長", 300) + "|" + strings.Repeat("x", 5000) + "||\xff\xfe|a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9|\u0301|\t\n\r|\u009b31m|%s%d%!"
	f.Add(uint64(1), hostile, uint16(80), uint16(24))
	f.Add(uint64(7), "", uint16(60), uint16(15))
	f.Add(uint64(42), hostile, uint16(200), uint16(60))
	f.Add(uint64(3), hostile, uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, seed uint64, texts string, w, h uint16) {
		c := chaos{rand.New(rand.NewPCG(seed, 1)), strings.Split(texts, "|")}
		size := [2]int{int(w % 240), int(h % 80)}
		d := drive(t, c.fleet(), []string{"en", "zh"}[c.IntN(2)], size[0], size[1])
		d.wait = time.Millisecond
		d.f.log = c.word() + "\n" + c.word() + "\r" + c.word()
		for range 12 {
			switch c.IntN(8) {
			case 0:
				d.f.set(c.fleet())
				d.send(changedMsg{})
			case 1:
				size = [2]int{c.IntN(220), c.IntN(70)}
				d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			case 2:
				d.send(tea.MouseClickMsg{X: c.IntN(220), Y: c.IntN(70), Button: tea.MouseLeft})
			case 3:
				d.paste(c.word())
			default:
				// Handing over and leaving need a program around the model.
				if k := fuzzKeys[c.IntN(len(fuzzKeys))]; k != "t" {
					d.press(k)
				}
			}
			d.dirty = true
			d.View()
			sound(t, d, size[0], max(size[1], 1))
			if t.Failed() {
				return
			}
		}
	})
}
