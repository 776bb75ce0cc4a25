//go:build unix

package sync_test

// What a cut leaves of a large file is counted, so that a person is told that
// running it again does not begin anew.

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
)

func TestKeptIsCounted(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, s.Addr)
	src := t.TempDir()
	const size = 40 << 20
	big := make([]byte, size)
	rand.NewChaCha8([32]byte{7}).Read(big)
	if err := os.WriteFile(filepath.Join(src, "big"), big, 0o644); err != nil {
		t.Fatal(err)
	}
	push := sync.Spec{Direction: sync.Push, Local: src, Remote: "proj"}
	pull := sync.Spec{Direction: sync.Pull, Local: t.TempDir(), Remote: "proj"}
	for _, c := range []struct {
		spec sync.Spec
		dir  sshtest.Direction
	}{{push, sshtest.ToServer}, {pull, sshtest.ToClient}} {
		tr := open(t, dialtest.Conn(t, s, proxy.Addr))
		proxy.CutAfter(c.dir, 24<<20, sshtest.RST)
		res, err := sync.Run(t.Context(), tr, c.spec, nil)
		if err == nil || res == nil {
			t.Fatalf("%s: the cut was not seen: %v", c.spec.Direction, err)
		}
		if res.Kept < 4<<20 || res.Kept > 24<<20 {
			t.Errorf("%s: cut at 24 MiB of 40, %s kept", c.spec.Direction, sync.Size(res.Kept))
		}
		proxy.Heal()
		again, err := sync.Run(t.Context(), open(t, dialtest.Conn(t, s, proxy.Addr)), c.spec, nil)
		if err != nil || len(again.Failed) > 0 || again.Kept != 0 {
			t.Fatalf("%s: again: %v, %+v", c.spec.Direction, err, again)
		}
		if moved := again.Wire; moved > size-res.Kept+8<<20 {
			t.Errorf("%s: %s were kept, and %s moved again", c.spec.Direction, sync.Size(res.Kept), sync.Size(moved))
		}
	}
}
