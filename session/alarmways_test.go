package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/session/config"
	"rentop/session/phrase"
)

// The person's line runs once for each alarm that is said, with what an instance said
// in its environment and nowhere else.
func TestAlarmLine(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "sh")
	f, s := memory(t, t.TempDir(), Options{})
	out := filepath.Join(t.TempDir(), "out")
	set := func(w config.Ways) {
		f.mu.Lock()
		defer f.mu.Unlock()
		c := *f.cfg
		c.Alarms = w
		f.cfg = &c
	}
	set(config.Ways{Command: `printf '%s|%s|%s|%s\n' "$RENTOP_NAME" "$RENTOP_LEVEL" "$RENTOP_ALARM" "$RENTOP_TEXT" >>` + out})
	st := &state{}
	evil := said("disk /data", noonUTC, time.Time{})
	evil.Text = phrase.Say("alert.disk", "/$(touch "+out+".evil)`id`\x1b[2J", 96)
	quiet := said("hot", noonUTC, time.Time{})
	st.alarms.Silence("hot", noonUTC.Add(time.Hour))
	hint := said("memory", noonUTC, time.Time{})
	hint.Level = Info
	s.keepAlarms(st, []PastAlert{evil, quiet, hint}, noonUTC)
	s.keepAlarms(st, []PastAlert{evil, quiet, hint}, noonUTC.Add(time.Second))
	evil.Ended = noonUTC.Add(time.Minute)
	s.keepAlarms(st, []PastAlert{evil}, noonUTC.Add(time.Minute))
	var got string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && got == ""; time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(out)
		got = string(b)
	}
	time.Sleep(100 * time.Millisecond)
	b, _ := os.ReadFile(out)
	if got = string(b); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "a|warning|disk /data|the disk at /$(touch ") || strings.Contains(got, "\x1b") {
		t.Errorf("the line printed %q", got)
	}
	if _, err := os.Stat(out + ".evil"); err == nil {
		t.Error("what an instance said was run")
	}
	set(config.Ways{Command: "echo broken >&2; exit 7", Least: "info"})
	f.raise("a", alarmData{ID: "x", Level: Info})
	f.raise("a", alarmData{ID: "y", Level: Info})
	told := 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && told == 0; time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		for _, n := range f.notices {
			if strings.Contains(n.Text.String(), "alarms.command") && strings.Contains(n.Text.String(), "broken") {
				told++
			}
		}
		f.mu.Unlock()
	}
	if told != 1 {
		t.Errorf("a line that fails was told %d times", told)
	}
}
