package sync

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := NewLimit(nil)
		l := NewLimit(whole)
		took := func(bytes int) time.Duration {
			began := time.Now()
			for range bytes / 8192 {
				l.Up(8192, nil)
			}
			return time.Since(began)
		}
		if d := took(64 << 20); d != 0 {
			t.Errorf("no limit takes %v", d)
		}
		l.Set(1 << 20)
		if d := took(10 << 20); d < 9500*time.Millisecond || d > 10500*time.Millisecond {
			t.Errorf("10 MiB at 1 MiB/s take %v", d)
		}
		whole.Set(512 << 10)
		if d := took(4 << 20); d < 7500*time.Millisecond || d > 8500*time.Millisecond || l.Rate() != 512<<10 || l.Own() != 1<<20 {
			t.Errorf("4 MiB at the parent's 512 KiB/s take %v", d)
		}
		whole.Set(0)
		time.Sleep(time.Hour) // what was not used is not saved up
		if d := took(10 << 20); d < 9500*time.Millisecond {
			t.Errorf("after a rest 10 MiB at 1 MiB/s take %v", d)
		}
		l.Set(1)
		if l.Rate() != LeastLimit {
			t.Errorf("the least is %d", l.Rate())
		}
	})
}

// A new rate, and the end of the connection, wake who waits under the old one.
func TestLimitChangesWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(nil)
		l.Set(LeastLimit)
		end := make(chan struct{})
		l.Down(100<<20, end) // in debt for most of an hour
		done := make(chan struct{})
		go func() { l.Down(1, end); close(done) }()
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("it did not wait")
		default:
		}
		l.Set(0)
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Fatal("no limit, and it still waits")
		}
		l.Set(LeastLimit)
		l.Down(100<<20, end)
		done = make(chan struct{})
		go func() { l.Down(1, end); close(done) }()
		synctest.Wait()
		close(end)
		synctest.Wait()
		<-done
	})
}

func TestParseLimit(t *testing.T) {
	for in, want := range map[string]int64{
		"": 0, "0": 0, "off": 0, "20M": 20 << 20, "20m": 20 << 20, "1.5MiB": 3 << 19, "800K": 800 << 10, "500000": 500000, "1G": 1 << 30,
		"20MB/s": 20 << 20, " 64 K ": 64 << 10,
		"fast": -1, "-1": -1, "1": -1, "M": -1, "NaN": -1, "1e30": -1, "10X": -1, "B": -1, "inf": -1,
	} {
		got, err := ParseLimit(in)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseLimit(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	f.Add("20M")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseLimit(s); err == nil && n != 0 && n < LeastLimit {
			t.Errorf("%q is %d", s, n)
		}
	})
}
