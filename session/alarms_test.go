package session

import (
	"testing"
	"time"

	"rentop/remote/gpu"
	"rentop/session/config"
)

// The idle alert begins when the cards fell idle, not when it was first said.
func TestIdleAlertBeginsWithTheIdling(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := &Session{f: &Fleet{}}
	s.setup.Store(&setup{cfg: config.Instance{Name: "a", Idle: &config.Idle{Below: 5, For: "20m"}}})
	st := &state{State: Live, sample: &gpu.Sample{GPUs: []gpu.GPU{{Util: gpu.Of(1)}}}}
	st.saved = Saved{Known: true, Files: 1}
	if got, _ := s.look(st, Meter{}, noon); len(got) != 0 {
		t.Fatalf("an alert at once: %v", got)
	}
	for _, min := range []int{21, 25} {
		got, _ := s.look(st, Meter{}, noon.Add(time.Duration(min)*time.Minute))
		if len(got) != 1 || !got[0].Since.Equal(noon) {
			t.Fatalf("after %d min: %+v, want one since noon", min, got)
		}
		if want := map[int]string{21: "has been idle for 21 min and holds 1 file that exists nowhere else", 25: "has been idle for 25 min and holds 1 file that exists nowhere else"}[min]; got[0].Text.String() != want {
			t.Errorf("%q, want %q", got[0].Text, want)
		}
	}
}
