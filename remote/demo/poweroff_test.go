//go:build unix

package demo

import (
	"testing"
	"time"

	"rentop/remote/provider"
)

// An instance stops itself from inside, and starts again.
func TestPoweroff(t *testing.T) {
	t.Parallel()
	f := begin(t)
	in := f.Instances()[0]
	if out, err := run(t, connect(t, in), "demo-poweroff"); err != nil {
		t.Logf("the connection ended with it: %s %v", out, err)
	}
	await := func(want provider.State) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			st, err := f.Provider().Status(t.Context(), in.ID)
			if err == nil && st.State == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%v, %v; want %s", st, err, want)
			}
		}
	}
	await(provider.Stopped)
	if err := f.Provider().Start(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * switchEvery)
	await(provider.Running)
}
