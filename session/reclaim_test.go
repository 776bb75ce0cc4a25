package session

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rentop/remote/provider"
)

// TestReclaim: what the provider announces on the instance has the guard save at once,
// and whoever looks is told when it goes and how to go on.
func TestReclaim(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(2 * time.Minute).UTC().Truncate(time.Second)
	var announced atomic.Bool
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !announced.Load() {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(`{"action": "terminate", "time": "` + at.Format(time.RFC3339) + `"}`))
	}))
	t.Cleanup(metadata.Close)
	srv, _, s, cloud := guarded(t, false)
	var no *provider.NotInsideError
	if _, err := s.Arm(t.Context(), GuardSpec{Reclaim: true}); !errors.As(err, &no) {
		t.Fatalf("a provider that announces nothing: %v", err)
	}
	g, err := s.Arm(t.Context(), GuardSpec{Reclaim: true, ReclaimAt: metadata.URL + "/spot", At: time.Now().Add(time.Hour), Then: "cloudstop", Save: "date >saved"})
	if err != nil || !g.Armed || g.Reclaim != nil || len(g.Rules) != 2 {
		t.Fatalf("%v %+v", err, g)
	}
	announced.Store(true)
	for end := time.Now().Add(60 * time.Second); g.Reclaim == nil || !g.Reclaim.Saved; time.Sleep(200 * time.Millisecond) {
		if g, err = s.Guard(t.Context()); err != nil || time.Now().After(end) {
			t.Fatalf("%v %+v", err, g)
		}
	}
	if d := g.Reclaim.At.Sub(at).Abs(); d > 2*time.Second || reads(t, srv.Home, "saved") == "?" {
		t.Errorf("%+v, %v off", g.Reclaim, d)
	}
	var alert Alert
	var shown bool
	s.sendWait(func(st *state) { alert, shown = st.reclaimAlert("box", time.Now()) })
	want := "its provider takes it back at " + at.Local().Format("15:04") + "; the guard has saved; go on elsewhere: rentop move box OTHER"
	if !shown || alert.ID != "reclaim" || alert.Level != Urgent || alert.Text.String() != want {
		t.Errorf("%v %+v", shown, alert)
	}
	s.sendWait(func(st *state) {
		if a, ok := st.guardAlert(time.Now()); ok {
			t.Errorf("it is told twice: %s", a.Text)
		}
	})
	if reads(t, filepath.Dir(cloud), "cloud") != "running" || !strings.Contains(g.Text.String(), "done") {
		t.Errorf("the action of another rule was done: %s", g.Text)
	}
}
