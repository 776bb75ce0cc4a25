package cloudtest

// The service behind a person's own lines: each line is run by a real shell and says
// what the stand-in has it say. Its request is told as one of HTTP's would be.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/provider"
)

// Exit codes of curl, of which such lines are made, and of the contract of lines.
const (
	saidNo    = 22
	saidNever = 28
	saidGone  = 4
)

// Command is the provider "command". That a line says an instance is gone is the
// person's own word, so Missing is a failure here.
func Command(t testing.TB) *Dialect {
	needtest.That(t, runtime.GOOS != "windows", "a system whose lines sh runs")
	needtest.Program(t, "sh")
	d := &Dialect{Kind: "command", IDs: [3]string{"i-1 $(touch hacked)", "i-2", "i-3"}, Acts: func(r *http.Request) bool { return r.Method != http.MethodGet }}
	d.make = func(s *StandIn) provider.Provider {
		dir := s.t.TempDir()
		line := func(what string) string {
			return fmt.Sprintf(`cd %s && printf '%%s' "%s $RENTOP_ID" >asked && cat said && exit "$(cat code)"`, remote.Quote(dir), what)
		}
		p, err := provider.Command(provider.CommandOptions{Name: "train", Lines: provider.Lines{
			Status: line("status"), Start: line("start"), Stop: line("stop"), Destroy: line("destroy"), Snapshot: line("snapshot"), Leftovers: line("leftovers"),
		}})
		if err != nil {
			s.t.Fatal(err)
		}
		return &lines{s: s, p: p, dir: dir}
	}
	return d
}

// lines is the adapter with the stand-in behind each of its lines.
type lines struct {
	s   *StandIn
	p   provider.Provider
	dir string
}

func (l *lines) Kind() string      { return l.p.Kind() }
func (l *lines) Can() provider.Can { return l.p.Can() }

func (l *lines) Status(ctx context.Context, id string) (st provider.Status, err error) {
	err = l.around("status", id, "", func() error { st, err = l.p.Status(ctx, id); return err })
	return st, err
}

func (l *lines) Start(ctx context.Context, id string) error {
	return l.around("start", id, "", func() error { return l.p.Start(ctx, id) })
}

func (l *lines) Stop(ctx context.Context, id string) error {
	return l.around("stop", id, "", func() error { return l.p.Stop(ctx, id) })
}

func (l *lines) Destroy(ctx context.Context, id string) error {
	return l.around("destroy", id, "", func() error { return l.p.Destroy(ctx, id) })
}

func (l *lines) Snapshot(ctx context.Context, id, name string) (sn provider.Snapshot, err error) {
	err = l.around("snapshot", id, name, func() error { sn, err = l.p.Snapshot(ctx, id, name); return err })
	return sn, err
}

func (l *lines) Leftovers(ctx context.Context, id string, after provider.State) (left []provider.Leftover, err error) {
	err = l.around("leftovers", id, "", func() error { left, err = l.p.Leftovers(ctx, id, after); return err })
	return left, err
}

// around has the service act, writes what the line will say, and runs it.
func (l *lines) around(what, id, name string, run func() error) error {
	f, said, code := l.s.said(what, id, name)
	if f == Killed {
		return errDead
	}
	for file, text := range map[string]string{"asked": "", "said": said, "code": strconv.Itoa(code)} {
		if err := os.WriteFile(filepath.Join(l.dir, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	err := run()
	if asked, e := os.ReadFile(filepath.Join(l.dir, "asked")); e != nil || string(asked) != what+" "+id {
		l.s.t.Errorf("for %s of %q the line %q was run: %v", what, id, asked, cmp.Or(e, err))
	}
	if f == KilledAfter {
		return errDead
	}
	return err
}

// said does what is asked and gives what a line prints about it.
func (s *StandIn) said(what, id, name string) (f Fault, text string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests = append(s.Requests, what+" "+id+" "+name)
	method := http.MethodPost
	if what == "status" || what == "leftovers" {
		method = http.MethodGet
	}
	switch f = s.roll(&http.Request{Method: method, URL: &url.URL{Path: "/" + what}}); f {
	case Killed:
		return f, "", 0
	case Failed, Missing, Limited, Page:
		return f, "<html>no</html>", saidNo
	case TimedOut:
		return f, "", saidNever
	}
	s.drop = f == Dropped
	defer func() { s.drop = false }()
	text, code = s.line(what, id, name)
	switch f {
	case Lost:
		code = saidNo
	case Unheard:
		text, code = "", saidNever
	case Cut:
		text, code = text[:len(text)/2], cmp.Or(code, saidNo) // curl says that it was cut
	}
	return f, text, code
}

func (s *StandIn) line(what, id, name string) (text string, code int) {
	b := s.Boxes[id]
	switch {
	case b == nil:
		return "", saidNo
	case what == "status" && b.State == "gone":
		return "", saidGone
	case what == "status":
		return asJSON(map[string]any{"state": strings.Replace(b.State, "off", "stopped", 1), "billed": b.State != "stopped"}), 0
	case what == "leftovers":
		list := []any{}
		for _, im := range s.Images {
			list = append(list, map[string]any{"kind": "snapshot", "id": im.ID, "per_month": "1.20", "currency": "USD"})
		}
		return asJSON(list), 0
	case what == "snapshot":
		for _, im := range s.Images {
			if im.Name == name && im.Box == id { // done before, by the contract of lines
				return asJSON(map[string]any{"id": im.ID}), 0
			}
		}
		im := &Image{fmt.Sprintf("snap-%d", len(s.Images)+1), name, id}
		if !s.drop {
			s.Images[im.ID] = im
		}
		return asJSON(map[string]any{"id": im.ID}), 0
	}
	if s.act(id, what) == http.StatusNotFound && what == "start" {
		return "", saidNo
	}
	return "", 0
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
