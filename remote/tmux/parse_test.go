package tmux

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// Whatever clock an instance has, its jobs can be written as JSON and counted.
func TestParseClocks(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, clock := range []int64{1, 4102444800, 253402300800, 1 << 40, 1<<63 - 1} {
		for _, at := range []int64{1, clock, 1 << 40, -5} {
			out := fmt.Sprintf("rentop-jobs 1\nnow %d\nbox b\njob a\npid 7 1 %d 0 b\nexit 0 %d\nspec {\"Name\":\"x\"}\nend\nrentop-jobs-end\n", clock, at, at)
			a, err := parse([]byte(out), now)
			jobs := a.jobs
			if err != nil || len(jobs) != 1 {
				t.Fatalf("clock %d: %d jobs, %v", clock, len(jobs), err)
			}
			if _, err := json.Marshal(jobs); err != nil {
				t.Errorf("clock %d, time %d: %v", clock, at, err)
			}
		}
	}
}
