package command

import "testing"

// A server can claim any 32-bit exit code; the system keeps eight bits of ours,
// and nothing that failed may end as 0.
func TestExitCodeOfAnyServer(t *testing.T) {
	for said, want := range map[exitWith]int{0: 0, 1: 1, 255: 255, 256: 255, 1 << 31: 255, 4294967295: 255, -1: 255} {
		if got := said.code(); got != want {
			t.Errorf("%d ends as %d, want %d", said, got, want)
		}
	}
}
