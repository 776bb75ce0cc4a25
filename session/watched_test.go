package session

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/demo"
	"rentop/remote/needtest"
	"rentop/remote/provider"
	"rentop/session/config"
)

// yes trusts the demo's own servers.
type yes struct{}

func (yes) Ask(_ context.Context, q remote.Question) (remote.Answer, error) {
	return remote.Answer{OK: q.Kind == remote.AskHostKey}, nil
}

// TestWatchedJob: a job that a command follows, on a machine whose nvidia-smi is simulated
// and whose job is real, has a receipt when the command has ended.
func TestWatchedJob(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "tmux")
	rented, err := demo.Start(context.Background(), demo.Options{Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer rented.Close()
	o := Options{Dirs: Dirs{Config: t.TempDir(), State: t.TempDir()}, Secrets: noKeyring{}, Asker: yes{}, Simulated: true, Providers: map[string]provider.Provider{demo.Kind: rented.Provider()}}
	for _, in := range rented.Instances() {
		if in.Name == "a100-tune" {
			o.Instances = append(o.Instances, config.Instance{Name: in.Name, ID: in.ID, Provider: demo.Kind, SSH: fmt.Sprintf("ssh -p %d -i %s %s@%s", in.Port, remote.Quote(in.KeyFile), in.User, in.Host),
				Rate: &config.Rate{PerHour: in.RatePerHour, Currency: in.Currency}})
		}
	}
	f, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "a100-tune")
	job, err := s.StartJob(t.Context(), JobSpec{Name: "nap", Command: "sleep 11"})
	if err != nil {
		f.Close()
		t.Fatal(err)
	}
	err = s.Watched(t.Context(), func(ctx context.Context) error {
		_, err := s.Follow(ctx, job.ID, 0, true, testWriter{t})
		return err
	})
	jobs, err2 := s.Jobs(t.Context())
	if err := f.Close(); err != nil || err2 != nil {
		t.Error(err, err2)
	}
	if err != nil || len(jobs) == 0 {
		t.Fatal(err, jobs)
	}
	// A rentop that comes later reads it from the ledger.
	o.Instances[0].SSH = "ssh -p 1 root@127.0.0.1"
	f, err = Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := session(t, f, "a100-tune").Receipts(t.Context(), jobs)
	r := got[job.ID]
	if err != nil || r.GPUs != 1 || r.Watched < 0.2 || r.Mean == nil || r.Energy == nil || *r.Energy <= 0 || len(r.Mem) != 1 || r.Mem[0] == nil || r.Cost == nil || r.Cost.Sign() <= 0 {
		t.Errorf("%+v %v (%s)", r, err, filepath.Join(o.Dirs.State, "ledger.db"))
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) { w.t.Logf("%s", p); return len(p), nil }
