//go:build unix

package demo

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
)

// rentop's own connection, its GPU stream over it, and the cut of both by a stop.
func TestThroughConn(t *testing.T) {
	f := begin(t)
	in := named(t, f, "h100-hot")
	if err := f.WaitJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := remote.OpenHostKeys(filepath.Join(t.TempDir(), "known_hosts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ep := remote.Endpoint{Alias: in.Host, Host: in.Host, Port: in.Port, User: in.User, IdentityFiles: []string{in.KeyFile}, IdentitiesOnly: true, IdentityAgent: "none"}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := remote.Dial(ctx, ep, remote.DialOptions{Instance: in.Name, UID: in.ID, HostKeys: keys, AcceptHostKey: in.HostKey})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	facts := &remote.Facts{NvidiaSMI: "nvidia-smi"}
	n := 0
	err = gpu.Stream(ctx, conn, facts, gpu.Options{}, func(s gpu.Sample) {
		if len(s.GPUs) != 8 || s.Problem != nil {
			t.Errorf("sample = %+v", s)
		}
		if n++; n == 4 {
			if err := f.Provider().Stop(ctx, in.ID); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || n < 4 {
		t.Errorf("after the stop the stream ended with %v, after %d samples", err, n)
	}
}
