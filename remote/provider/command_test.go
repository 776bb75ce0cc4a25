//go:build !windows

package provider_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/provider/providertest"
)

// cloud is a service made of files: a folder for each instance, with a file for
// its state, its snapshots and how the service behaves.
const cloud = `
cd "$CLOUD" || exit 1
test -e hang && sleep 600
test -e broken && { echo "curl: (22) 401, sent Authorization: Bearer $CLOUD_TOKEN" >&2; exit 22; }
`

const mustExist = `test -d "$RENTOP_ID" || { echo "no instance $RENTOP_ID" >&2; exit 1; }
`

// become sets the state now, or leaves it to be set when the service settles.
const become = `test -e lag && cp state.new "$RENTOP_ID/later" || mv state.new "$RENTOP_ID/state"`

func lines() provider.Lines {
	set := func(state string) string {
		f := "state.$$"
		return cloud + mustExist + "printf %s " + state + " > " + f + "\n" + strings.ReplaceAll(become, "state.new", f)
	}
	gone := cloud + `test -e "$RENTOP_ID/state" || test -e "gone-$RENTOP_ID" || { echo "no instance $RENTOP_ID" >&2; exit 1; }
		test -e lag && exit 0
		touch "gone-$RENTOP_ID"; rm -rf -- "$RENTOP_ID"`
	return provider.Lines{
		Status:  cloud + `test -d "$RENTOP_ID" || exit 4; cat "$RENTOP_ID/state"`,
		Start:   set(`'{"state":"RUNNING","started_at":"2026-11-30T10:00:00Z"}'`),
		Stop:    set("stopped"),
		Destroy: gone,
		Snapshot: cloud + mustExist + `printf '%s\n' "$RENTOP_SNAPSHOT" > snap
			echo '{"id":"snap-1","per_month":1.20,"currency":"USD"}'`,
		Leftovers: cloud + `test -e snap && echo '[{"kind":"snapshot","id":"snap-1","per_month":"1.20","currency":"USD"}]' || echo '[]'`,
	}
}

func harness(l provider.Lines) func(t *testing.T) providertest.Harness {
	return func(t *testing.T) providertest.Harness {
		dir := t.TempDir()
		t.Setenv("CLOUD", dir)
		t.Setenv("CLOUD_TOKEN", "hunter2-hunter2")
		id := "i-1 $(touch hacked)"
		write(t, filepath.Join(dir, id, "state"), `{"state":"running","started_at":"2026-11-30T10:00:00Z"}`)
		p, err := provider.Command(provider.CommandOptions{Name: "a100", Lines: l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := os.Stat(filepath.Join(dir, "hacked")); err == nil {
				t.Error("an id was run as shell")
			}
		})
		return providertest.Harness{
			Provider: p, ID: id, Missing: "i-2", Secret: "hunter2-hunter2",
			Break: func() { write(t, filepath.Join(dir, "broken"), "") },
			Hang:  func() { write(t, filepath.Join(dir, "hang"), "") },
			Lag: func() func() {
				write(t, filepath.Join(dir, "lag"), "")
				return func() {
					os.Remove(filepath.Join(dir, "lag"))
					if err := os.Rename(filepath.Join(dir, id, "later"), filepath.Join(dir, id, "state")); err != nil {
						t.Fatal(err)
					}
				}
			},
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCommandConforms(t *testing.T) {
	providertest.Run(t, harness(lines()))
}

func TestCommandThatOnlyLooksConforms(t *testing.T) {
	providertest.Run(t, harness(provider.Lines{Status: lines().Status}))
}

// one makes a provider of a status line alone.
func one(t *testing.T, status string) provider.Provider {
	t.Helper()
	p, err := provider.Command(provider.CommandOptions{Name: "a", Lines: provider.Lines{Status: status}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCommandStatus(t *testing.T) {
	tests := []struct {
		line  string
		state provider.State // "": an error
		tell  string         // in Detail or the error
	}{
		{`true`, provider.Running, ""},
		{`exit 3`, provider.Stopped, ""},
		{`exit 4`, provider.Gone, ""},
		{`exit 1`, "", "exit code 1"},
		{`echo boo >&2; exit 2`, "", "boo"},
		{`kill -9 $$`, "", "exit code"},
		{`echo running`, provider.Running, "running"},
		{`echo ' Power-Off '`, provider.Stopped, "Power-Off"},
		{`echo 已关机`, provider.Stopped, ""},
		{`echo shutting_down`, provider.Changing, ""},
		{`echo not found`, provider.Gone, ""},
		{`echo suspended`, provider.Unknown, "suspended"},
		{`echo running on empty`, provider.Unknown, ""},
		{`echo running; exit 3`, "", "make them agree"},
		{`echo running; exit 5`, "", "exit code 5"},
		{`echo no such thing; exit 4`, provider.Gone, "no such thing"},
		{`printf '\033[31mrunning'`, provider.Unknown, "␛[31mrunning"},
		{`echo '{"state":"EXITED","billed":false,"detail":"by user"}'`, provider.Stopped, "by user"},
		{`echo '{"state":"weird"}'`, provider.Unknown, "weird"},
		{`echo '{"status":"running"}'`, "", `no "state"`},
		{`echo '{"state":"running"'`, "", "not the JSON"},
		{`echo '{"state":"running"} {"state":"stopped"}'`, "", "one value only"},
		{`echo '{"state":"running","started_at":"yesterday"}'`, "", "no time"},
		{`echo '{"state":"running","started_at":99999999999999}'`, "", "not possible"},
		{`head -c 400000 /dev/zero`, "", "more than 256 KiB"},
		{`echo "api_key=abcdefgh password: swordfish Authorization: Basic Zm9vOmJhcg==" >&2; exit 1`, "", "[secret]"},
		{`test "$RENTOP_ID/$RENTOP_NAME" = "i'd/a" && echo running || echo stopped`, provider.Running, ""},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			s, err := one(t, tt.line).Status(t.Context(), "i'd")
			text := s.Detail
			if err != nil {
				text = err.Error()
			}
			if s.State != tt.state || (err != nil) != (tt.state == "") || !strings.Contains(text, tt.tell) {
				t.Errorf("got %q %q, %v; want %q with %q", s.State, s.Detail, err, tt.state, tt.tell)
			}
			for _, secret := range []string{"abcdefgh", "swordfish", "Zm9v"} {
				if strings.Contains(text, secret) {
					t.Errorf("a secret is told: %s", text)
				}
			}
		})
	}
	for _, text := range []string{`"2026-11-30T18:00:00+08:00"`, `1796032800`, `"1796032800"`} {
		s, err := one(t, `echo '{"state":"up","started_at":`+text+`,"billed":true}'`).Status(t.Context(), "x")
		if want := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC); err != nil || !s.StartedAt.Equal(want) || s.Billed == nil || !*s.Billed {
			t.Errorf("%s: %+v, %v; want %v", text, s, err, want)
		}
	}
}

func TestCommandNeedsStatusAndID(t *testing.T) {
	if _, err := provider.Command(provider.CommandOptions{Name: "a", Lines: provider.Lines{Stop: "true"}}); err == nil {
		t.Error("a provider that proves nothing was made")
	}
	if _, err := one(t, "true").Status(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "add id") {
		t.Errorf("an empty id: %v", err)
	}
}

// TestCommandKillsItsChildren runs a line that leaves a child behind which ignores
// the hangup and holds the pipe.
func TestCommandKillsItsChildren(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "alive")
	line := `(trap "" HUP TERM; while :; do echo . >> '` + mark + `'; sleep 0.05; done) & wait`
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := one(t, line).Status(ctx, "x")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 4*time.Second {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	size := func() int64 {
		info, err := os.Stat(mark)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond)
	if after := size(); after != before || before == 0 {
		t.Errorf("the child goes on: %d, then %d", before, after)
	}
	// One that ends by itself is not waited for by its children's pipes.
	began = time.Now()
	if s, err := one(t, `sleep 300 & echo running`).Status(t.Context(), "x"); err != nil || s.State != provider.Running || time.Since(began) > 4*time.Second {
		t.Errorf("%+v, %v after %v", s, err, time.Since(began))
	}
}

func TestCommandTimeout(t *testing.T) {
	p, err := provider.Command(provider.CommandOptions{Name: "a", Lines: provider.Lines{Status: "sleep 60"}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Status(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "did not end within 100ms") {
		t.Errorf("got %v", err)
	}
}

func TestCommandSnapshotAndLeftovers(t *testing.T) {
	with := func(line string) provider.Provider {
		p, err := provider.Command(provider.CommandOptions{Name: "a", Lines: provider.Lines{Status: "true", Snapshot: line, Leftovers: line}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for line, want := range map[string]string{
		`true`:                         "n n  ",
		`echo snap-7`:                  "snap-7 n  ",
		`echo all is well`:             "error",
		`echo '{"id":7}'`:              "error",
		`echo '{"per_month":"1e9"}'`:   "error",
		`echo '{"per_month":-1}'`:      "error",
		`exit 1`:                       "error",
		`echo "$RENTOP_SNAPSHOT-made"`: "n-made n  ",
		`echo '{"id":"s","name":"m","per_month":0.5,"currency":"CNY"}'`: "s m 0.5 CNY",
	} {
		s, err := with(line).Snapshot(t.Context(), "x", "n")
		got := s.ID + " " + s.Name + " " + s.PerMonth + " " + s.Currency
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q (%v), want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		`true`:                     "error", // nothing said is not nothing left
		`echo '[]'`:                "",
		`echo '[{"kind":"disk"}]'`: "error",
		`echo '[{"id":"d"}]'`:      "error",
		`echo '{"kind":"disk"}'`:   "error",
		`echo '[{"kind":"ip","id":"1","per_month":null}]'`:                                               "ip 1  ;",
		`echo "[{\"kind\":\"disk\",\"id\":\"$RENTOP_AFTER\",\"per_month\":\"3\",\"currency\":\"CNY\"}]"`: "disk stopped 3 CNY;",
	} {
		list, err := with(line).Leftovers(t.Context(), "x", provider.Stopped)
		got := ""
		for _, l := range list {
			got += l.Kind + " " + l.ID + " " + l.PerMonth + " " + l.Currency + ";"
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q (%v), want %q", line, got, err, want)
		}
	}
}
