package ring

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

// fake is a machine's clocks, which a test moves.
type fake struct {
	wall time.Time
	mono time.Duration
	boot byte
}

func (f *fake) clock() Clock {
	return Clock{Now: func() time.Time { return f.wall }, Mono: func() time.Duration { return f.mono }, Boot: [16]byte{f.boot}}
}
func (f *fake) pass(d time.Duration) { f.wall, f.mono = f.wall.Add(d), f.mono+d }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func numbered(n int) sample.Sample {
	g := sample.NewGPU("")
	g.Util, g.Power, g.MemUsed = sample.Of(float64(n%101)), sample.Of(100), sample.Of(float64(n)*1024)
	return sample.Sample{TakenAt: noon, Source: "nvml", GPUs: []sample.GPU{g}}
}

func number(p Point) int { return int(p.GPUs[0].MemUsed.V / 1024) }

func TestDayAndHour(t *testing.T) {
	dir := t.TempDir()
	f := &fake{wall: noon, mono: time.Hour, boot: 1}
	r, err := Open(dir, Options{Clock: f.clock(), Fine: 60, Coarse: 144})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{Clock: f.clock()}); err == nil && os.PathSeparator == '/' {
		t.Error("a second writer is let in")
	}
	const n = 3000
	for i := range n {
		if err := r.Add(numbered(i)); err != nil {
			t.Fatal(err)
		}
		f.pass(time.Second)
	}
	r.Close()
	got, err := Read(dir, f.clock())
	if err != nil {
		t.Fatal(err)
	}
	fine, coarse := 0, 0
	for i, p := range got {
		if p.Over == fineEvery {
			fine++
		} else {
			coarse++
		}
		if want := noon.Add(time.Duration(number(p)) * time.Second); !p.TakenAt.Equal(want) || !p.Sure {
			t.Fatalf("point %d is at %v, want %v", i, p.TakenAt, want)
		}
		if i > 0 && !p.TakenAt.After(got[i-1].TakenAt) {
			t.Fatalf("point %d is not after the one before", i)
		}
	}
	if fine != 60 || coarse != 138 || number(got[len(got)-1]) != n-1 || number(got[0]) != n-1440 {
		t.Errorf("%d fine and %d coarse points, from %d to %d", fine, coarse, number(got[0]), number(got[len(got)-1]))
	}
}

// The default rings stay below the promised size, also for eight GPUs with all
// that can be told of them, which a record must hold.
func TestSize(t *testing.T) {
	var o Options
	o = o.filled()
	if total := (o.Fine + o.Coarse) * recordSize; total >= 20e6 {
		t.Errorf("%d bytes, want less than 20 MB", total)
	}
	for _, n := range []int{1, 8, 16, 128} {
		s := sample.Sample{TakenAt: noon, Source: "nvml", Driver: "590.48.01", Problem: &sample.Problem{What: strings.Repeat("火", 400), Cure: strings.Repeat("火", 400)}}
		for i := range n {
			g := sample.NewGPU("not supported by this device, says the driver")
			g.Index, g.UUID, g.Name, g.PCIBus, g.Problem = i, "GPU-8b5fdd93-0d95-6c50-5f3c-df3cfdc8ed21", "H100 80GB HBM3", "00000000:19:00.0", strings.Repeat("火", 200)
			g.Util, g.MemUsed, g.MemTotal, g.Power, g.Temp, g.ECCErrors = sample.Of(97), sample.Of(79<<30), sample.Of(80<<30), sample.Of(699), sample.Of(71), sample.Of(float64(i))
			for range sample.MaxXIDs {
				g.XIDs = append(g.XIDs, sample.XID{Code: 79, At: noon})
			}
			s.GPUs = append(s.GPUs, g)
			s.Processes = append(s.Processes, sample.Process{GPUIndex: i, PID: 1 << 22, User: "somebody", Command: strings.Repeat("python ", 50), Mem: sample.Of(79 << 30), StartedAt: noon})
			s.Host.Disks = append(s.Host.Disks, sample.Disk{Mount: "/" + strings.Repeat("d", 100), Used: sample.Of(1 << 40)})
		}
		b := fit(s, room)
		got, err := new(sample.Decoder).Decode(b)
		if len(b) > room || err != nil {
			t.Fatalf("%d GPUs: %d bytes, %v", n, len(b), err)
		}
		if n <= 16 && len(got.GPUs) != n {
			t.Errorf("%d GPUs: %d are kept", n, len(got.GPUs))
		}
		for i, g := range got.GPUs {
			if g.Util != sample.Of(97) || g.MemUsed != sample.Of(79<<30) || g.Power != sample.Of(699) || g.ECCErrors != sample.Of(float64(i)) {
				t.Errorf("%d GPUs, %d: %+v", n, i, g)
			}
		}
	}
}

// A write that was cut at any byte loses that sample alone, and what it would
// have overwritten: the oldest.
func TestTornWrites(t *testing.T) {
	const slots = 8
	r := rand.New(rand.NewPCG(1, 2))
	for _, written := range []int{0, 1, 5, slots, slots + 3, 3*slots + 1} {
		dir := t.TempDir()
		f := &fake{wall: noon, mono: time.Hour, boot: 1}
		ring, err := Open(dir, Options{Clock: f.clock(), Fine: slots, Coarse: 2})
		if err != nil {
			t.Fatal(err)
		}
		for i := range written {
			ring.Add(numbered(i))
			f.pass(time.Second)
		}
		path := filepath.Join(dir, "fine.ring")
		before, _ := os.ReadFile(path)
		if err := ring.Add(numbered(written)); err != nil {
			t.Fatal(err)
		}
		after, _ := os.ReadFile(path)
		slot := int((ring.fine.next-1)%slots) * recordSize
		ring.Close()
		os.Remove(filepath.Join(dir, "coarse.ring"))
		for cut := 0; cut <= recordSize; cut += 1 + r.IntN(40) {
			torn := append([]byte(nil), before...)
			for len(torn) < slot+cut {
				torn = append(torn, 0)
			}
			copy(torn[slot:slot+cut], after[slot:slot+cut])
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(dir, f.clock())
			if err != nil {
				t.Fatal(err)
			}
			have := map[int]bool{}
			for _, p := range got {
				if n := number(p); n < 0 || n > written || have[n] {
					t.Fatalf("%d written, cut at %d: sample %d", written, cut, n)
				} else {
					have[n] = true
				}
			}
			for n := max(0, written-slots+1); n < written; n++ {
				if !have[n] {
					t.Errorf("%d written, cut at %d: sample %d is lost", written, cut, n)
				}
			}
			again, err := Open(dir, Options{Clock: f.clock(), Fine: slots, Coarse: 2})
			if err != nil {
				t.Fatal(err)
			}
			again.Add(numbered(written + 1))
			again.Close()
			got, _ = Read(dir, f.clock())
			if len(got) == 0 || number(got[len(got)-1]) != written+1 {
				t.Errorf("%d written, cut at %d: it does not go on", written, cut)
			}
			os.Remove(filepath.Join(dir, "coarse.ring"))
		}
	}
}

// TestMain is also the writer that is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("RING_WRITER")
	if dir == "" {
		os.Exit(m.Run())
	}
	f := &fake{wall: noon, mono: time.Hour, boot: 1}
	r, err := Open(dir, Options{Clock: f.clock(), Fine: 100, Coarse: 100})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		if r.Add(numbered(i)) != nil {
			os.Exit(1)
		}
		fmt.Println(i) // said after it was written
		f.pass(time.Second)
	}
}

func TestKilledWriter(t *testing.T) {
	for round := range 15 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "RING_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(20+round*7)*time.Millisecond, func() { cmd.Process.Kill() })
		last := -1
		for {
			var n int
			if _, err := fmt.Fscanln(out, &n); err != nil {
				break
			}
			last = n
		}
		cmd.Wait()
		got, err := Read(dir, (&fake{wall: noon.Add(time.Hour), mono: 3 * time.Hour, boot: 1}).clock())
		if err != nil {
			t.Fatal(err)
		}
		have := map[int]bool{}
		for _, p := range got {
			if p.Over == fineEvery {
				have[number(p)] = true
			}
		}
		for n := max(0, last-98); n <= last; n++ {
			if !have[n] {
				t.Errorf("round %d: sample %d of %d is lost", round, n, last)
			}
		}
	}
}

func TestClockStepsAndReboots(t *testing.T) {
	dir := t.TempDir()
	f := &fake{wall: noon.AddDate(-50, 0, 0), mono: time.Minute, boot: 1} // before the clock was set
	write := func(from, n int) {
		t.Helper()
		r, err := Open(dir, Options{Clock: f.clock(), Fine: 1000, Coarse: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for i := range n {
			if err := r.Add(numbered(from + i)); err != nil {
				t.Fatal(err)
			}
			f.pass(time.Second)
		}
	}
	write(0, 30)
	f.wall = noon // NTP
	write(30, 30)
	f.wall = f.wall.Add(-10 * time.Minute) // somebody set it back
	f.wall = f.wall.Add(10 * time.Minute)  // and forth
	write(60, 30)
	end := f.wall
	// A reboot; ten minutes later it runs again, with the right clock.
	f.boot, f.mono, f.wall = 2, 20*time.Second, end.Add(10*time.Minute)
	write(90, 30)
	got, err := Read(dir, f.clock())
	if err != nil || len(got) != 120 {
		t.Fatalf("%d points, %v", len(got), err)
	}
	for i, p := range got {
		want := end.Add(time.Duration(i-90) * time.Second) // the first boot, spaced as it was
		if i >= 90 {
			want = end.Add(10*time.Minute + time.Duration(i-90)*time.Second)
		}
		if number(p) != i || !p.Sure || p.TakenAt.Sub(want).Abs() > time.Second {
			t.Fatalf("point %d: sample %d at %v, sure %v; want %v", i, number(p), p.TakenAt, p.Sure, want)
		}
	}
	// A boot whose clock was a day ahead does not become a future, nor the past of others.
	f.boot, f.mono, f.wall = 3, 5*time.Second, f.wall.Add(24*time.Hour)
	write(120, 10)
	f.boot, f.mono, f.wall = 4, 5*time.Second, f.wall.Add(-24*time.Hour+time.Minute)
	write(130, 10)
	got, _ = Read(dir, f.clock())
	for i, p := range got {
		if n := number(p); n != i || p.Sure != (n < 120 || n >= 130) {
			t.Errorf("point %d: sample %d, sure %v", i, n, p.Sure)
		}
	}
}

func TestNoHistory(t *testing.T) {
	f := &fake{wall: noon, boot: 1}
	if got, err := Read(t.TempDir(), f.clock()); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	m := &fake{wall: noon, mono: time.Hour, boot: 1}
	r, err := Open(dir, Options{Clock: m.clock(), Fine: 4, Coarse: 2})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 4 {
		r.Add(numbered(i))
		m.pass(time.Second)
	}
	r.Close()
	raw, _ := os.ReadFile(filepath.Join(dir, "fine.ring"))
	f.Add(raw)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, "fine.ring"), b, 0o600)
		if _, err := Read(dir, m.clock()); err != nil {
			t.Error(err)
		}
	})
}
