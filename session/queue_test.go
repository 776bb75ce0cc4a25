package session

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/config"
	"rentop/sync"
)

// moving is a session over a real sshd, and a folder here with one large file in it.
func moving(t *testing.T, size int) (*Session, *sshtest.Server, string) {
	t.Helper()
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr),
		Rate: &config.Rate{Currency: "USD"}, Traffic: &config.Traffic{OutPerGB: "0.12"},
	}); err != nil {
		t.Fatal(err)
	}
	src := t.TempDir()
	noise := make([]byte, size)
	r := rand.NewChaCha8([32]byte{7})
	r.Read(noise)
	if err := os.WriteFile(filepath.Join(src, "big.bin"), noise, 0o644); err != nil {
		t.Fatal(err)
	}
	return session(t, f, "box"), srv, src
}

func transferOf(v View, id int) TransferView {
	i := slices.IndexFunc(v.Transfer, func(x TransferView) bool { return x.ID == id })
	if i < 0 {
		return TransferView{}
	}
	return v.Transfer[i]
}

// TestQueue: a transfer is limited, paused in the middle of a file, overtaken by the
// next, resumed, and moves only what was missing.
func TestQueue(t *testing.T) {
	const size = 24 << 20
	s, srv, src := moving(t, size)
	s.LimitTransfers(4 << 20)
	first, err := s.StartTransfer(TransferSpec{Direction: sync.Push, Local: src, Remote: "~/first"})
	if err != nil {
		t.Fatal(err)
	}
	small := t.TempDir()
	if err := os.WriteFile(filepath.Join(small, "x"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	second, _ := s.StartTransfer(TransferSpec{Direction: sync.Push, Local: small, Remote: "~/second"})
	third, _ := s.StartTransfer(TransferSpec{Direction: sync.Push, Local: small, Remote: "~/third"})
	v := waitFor(t, 30*time.Second, "half of it", s, func(v View) bool { return transferOf(v, first).Progress.Bytes > size/2 })
	if p := transferOf(v, first).Progress; p.Rate > 6<<20 || v.Limit != 4<<20 {
		t.Errorf("limited to 4 MiB/s it moves %.0f bytes/s (limit %d)", p.Rate, v.Limit)
	}
	if s.MoveTransfer(first, false) || s.MoveTransfer(third, false) || !s.MoveTransfer(third, true) || s.MoveTransfer(third, true) {
		t.Error("only what waits can be moved, and not beyond the ends")
	}
	s.PauseTransfer(first)
	v = waitFor(t, 30*time.Second, "the others", s, func(v View) bool {
		return transferOf(v, second).ended() && transferOf(v, third).ended()
	})
	ids := []int{v.Transfer[0].ID, v.Transfer[1].ID, v.Transfer[2].ID}
	if !slices.Equal(ids, []int{first, third, second}) {
		t.Errorf("they ran in the order %v", ids)
	}
	if x := transferOf(v, first); !x.Paused || x.ended() {
		t.Errorf("not paused: %+v", x)
	}
	if _, err := os.Stat(filepath.Join(srv.Home, "first", "big.bin")); err == nil {
		t.Error("it arrived while it was paused")
	}
	if !s.busy() {
		t.Error("a paused transfer would be lost in an edit")
	}
	s.LimitTransfers(0)
	s.ResumeTransfer(first)
	v = waitFor(t, 30*time.Second, "the end", s, func(v View) bool { return transferOf(v, first).ended() })
	x := transferOf(v, first)
	if x.Err != "" || x.Paused || x.Result == nil || x.Result.Bytes != size {
		t.Fatalf("%+v", x)
	}
	if x.Result.Wire > size*3/2 || x.Result.Reused < 4<<20 { // 8 MiB are on their way, and 4 not in the journal yet
		t.Errorf("%d bytes crossed for %d, %d were there", x.Result.Wire, size, x.Result.Reused)
	}
	want, _ := os.ReadFile(filepath.Join(src, "big.bin"))
	if got, err := os.ReadFile(filepath.Join(srv.Home, "first", "big.bin")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it is not equal there: %d bytes, %v", len(got), err)
	}
	if s.busy() {
		t.Error("still busy")
	}
}

// TestQueueGoesOnWhileCounting: what exists only on the instance is counted beside
// the next transfer.
func TestQueueGoesOnWhileCounting(t *testing.T) {
	s, _, src := moving(t, 1<<10)
	counts, goOn := make(chan struct{}, 10), make(chan struct{})
	s.queue.recount = func(context.Context) { counts <- struct{}{}; <-goOn }
	last := 0
	for range 3 {
		id, err := s.StartTransfer(TransferSpec{Direction: sync.Push, Local: src, Remote: "~/x"})
		if err != nil {
			t.Fatal(err)
		}
		last = id
	}
	waitFor(t, 30*time.Second, "the last", s, func(v View) bool { return transferOf(v, last).ended() })
	<-counts
	close(goOn)
}

// TestCancel: what is paused or waits can be cancelled too.
func TestCancel(t *testing.T) {
	s, _, src := moving(t, 16<<20)
	s.LimitTransfers(1 << 20)
	var ids []int
	for range 3 {
		id, err := s.StartTransfer(TransferSpec{Direction: sync.Push, Local: src, Remote: "~/x"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	s.PauseTransfer(ids[1])
	for _, id := range ids {
		s.CancelTransfer(id)
	}
	waitFor(t, 30*time.Second, "an idle queue", s, func(v View) bool {
		return !s.busy() && transferOf(v, ids[0]).Cancelled && transferOf(v, ids[1]).Cancelled && transferOf(v, ids[2]).Cancelled
	})
}

// TestEstimate: nothing is known before the first transfer; then its rate is, and
// what a pull costs where the config gives a price.
func TestEstimate(t *testing.T) {
	s, _, src := moving(t, 8<<20)
	if e := s.Estimate(sync.Push, 1<<30); e.Took != nil || e.Traffic != nil || e.Rate != 0 {
		t.Errorf("made up: %+v", e)
	}
	if e := s.Estimate(sync.Pull, 5_000_000_000); e.Traffic == nil || e.Traffic.String() != "$0.60" {
		t.Errorf("5 GB at 0.12: %v", e.Traffic)
	}
	s.limit.Set(4 << 20)
	if _, err := s.Transfer(t.Context(), TransferSpec{Direction: sync.Push, Local: src, Remote: "~/x"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if e := s.Estimate(sync.Push, 1<<30); e.Rate != 0 {
		t.Errorf("a limit was taken for the line's rate: %+v", e)
	}
	g := gauge{now: func() time.Time { return noon }}
	g.see(sync.Progress{Stage: "scan", Wire: 1 << 30})
	g.see(sync.Progress{Stage: "send"})
	g.now = func() time.Time { return noon.Add(2 * time.Second) }
	g.see(sync.Progress{Stage: "send", Wire: 20 << 20})
	s.keepRate(sync.Push, &g)
	s.limit.Set(0)
	if e := s.Estimate(sync.Push, 100<<20); e.Rate != 10<<20 || e.Took == nil || *e.Took != 10*time.Second || e.Limited {
		t.Errorf("%+v", e)
	}
	s.limit.Set(1 << 20)
	if e := s.Estimate(sync.Push, 100<<20); !e.Limited || *e.Took != 100*time.Second {
		t.Errorf("with a limit: %+v", e)
	}
	if e := s.Estimate(sync.Pull, 100<<20); e.Rate != 0 {
		t.Errorf("the other way: %+v", e)
	}
	if err := os.WriteFile(s.ratesFile(), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := s.Estimate(sync.Push, 1); e.Rate != 0 {
		t.Errorf("from a torn file: %+v", e)
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
