package session

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/config"
)

// TestPort: a port is here while the session lives, at the same address after a cut,
// at another where its number is taken, and gone when it is closed.
func TestPort(t *testing.T) {
	t.Parallel()
	srv := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, srv.Addr)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a notebook") }))
	defer web.Close()
	_, there, _ := net.SplitHostPort(web.Listener.Addr().String()) // taken here, since both ends are this machine
	f := open(t, t.TempDir(), true, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, proxy.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	waitFor(t, 15*time.Second, "live", s, func(v View) bool { return v.State == Live })
	p, err := s.OpenPort(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(there); p.There != n || !strings.HasPrefix(p.Here, "127.0.0.1:") || strings.HasSuffix(p.Here, ":"+there) {
		t.Errorf("port %s is %+v", there, p)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	get := func() string {
		res, err := client.Get("http://" + p.Here)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	if got := get(); got != "a notebook" {
		t.Fatal(got)
	}
	if again, err := s.OpenPort(t.Context(), there); err != nil || again.Here != p.Here {
		t.Errorf("opened again: %+v, %v", again, err)
	}
	waitFor(t, 5*time.Second, "the port", s, func(v View) bool { return len(v.Ports) == 1 && len(v.Ports[0].Why) == 0 })

	proxy.CutNow(sshtest.RST)
	waitFor(t, 15*time.Second, "away", s, func(v View) bool { return v.State != Live })
	s.Nudge()
	for end := time.Now().Add(20 * time.Second); get() != "a notebook"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come back: ", get())
		}
	}
	waitFor(t, 5*time.Second, "nothing against it", s, func(v View) bool { return len(v.Ports) == 1 && len(v.Ports[0].Why) == 0 })

	web.Close()
	get()
	waitFor(t, 5*time.Second, "that nothing answers", s, func(v View) bool { return len(v.Ports[0].Why) > 0 })
	if !s.ClosePort(there) || s.ClosePort(there) {
		t.Error("closed twice, or not at all")
	}
	waitFor(t, 5*time.Second, "no port", s, func(v View) bool { return len(v.Ports) == 0 })
	if c, err := net.Dial("tcp", p.Here); err == nil {
		c.Close()
		t.Error("something listens there still")
	}
}

func TestBadPort(t *testing.T) {
	for _, which := range []string{"", "0", "x", "70000", "1:2:3", "0:80", "80:0", "127.0.0.1:80", "-1"} {
		if _, _, err := parsePort(which); err == nil {
			t.Errorf("%q is a port", which)
		}
	}
	if here, there, err := parsePort(" 9000:8888 "); here != 9000 || there != 8888 || err != nil {
		t.Error(here, there, err)
	}
}
