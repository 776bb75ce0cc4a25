package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/session"
	"rentop/session/ledger"
)

// What a screen wrote is listed, as text and as JSON.
func TestAlarmsListed(t *testing.T) {
	configured(t, "[instance.a]\nssh = \"ssh root@127.0.0.1\"\n")
	dirs, err := session.DefaultDirs()
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return noon.Add(time.Hour) }
	if err := os.MkdirAll(dirs.State, 0o700); err != nil {
		t.Fatal(err)
	}
	led, err := ledger.Open(filepath.Join(dirs.State, "ledger.db"), now)
	if err != nil {
		t.Fatal(err)
	}
	uids, err := led.Ensure(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{
		`{"id":"disk /data","level":1,"text":[{"ID":"alert.disk","Args":["/data\u001b[2J","96"]}],"since":"2026-11-30T12:00:00Z"}`,
		`{"id":"disk /data","level":1,"text":[{"ID":"alert.disk","Args":["/data\u001b[2J","96"]}],"since":"2026-11-30T12:00:00Z","ended":"2026-11-30T12:07:00Z"}`,
		`{"id":"runway","level":2,"text":[{"ID":"alert.runway","Args":["1 h"]}],"since":"2026-11-30T12:30:00Z"}`,
		`"of a newer rentop"`,
	} {
		if _, err := led.Append(t.Context(), ledger.NewEvent(ledger.Alarm, uids["a"], "rentop", json.RawMessage(data))); err != nil {
			t.Fatal(err)
		}
	}
	led.Close()
	run := func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := Run(t.Context(), Program{Out: &out, Err: &errs, In: strings.NewReader(""), Now: now}, args); code != done {
			t.Fatalf("%q ends with %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	text := run("alarms", "a")
	if !strings.Contains(text, "7m00s") || !strings.Contains(text, "the disk at /data␛[2J is 96 % full") || !strings.Contains(text, "?") || strings.Contains(text, "\x1b") {
		t.Errorf("got\n%s", text)
	}
	var list []alarmed
	if err := json.Unmarshal([]byte(run("alarms", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].ID != "disk /data" || list[0].Level != "warning" || !list[0].EndSeen || list[1].EndSeen || list[1].Ended != nil || list[1].Level != "urgent" {
		t.Errorf("%+v", list)
	}
	if got := run("alarms", "a", "--since", "20m"); strings.Contains(got, "disk") {
		t.Errorf("what ended before:\n%s", got)
	}
}
