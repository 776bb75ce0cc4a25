package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/alarm"
)

func TestAlarmThresholds(t *testing.T) {
	parse := func(body string) (*File, error) {
		return Parse("config.toml", []byte("[instance.a]\nssh = \"ssh root@h\"\n"+body+"\n"))
	}
	f, err := parse(`alarm = { memory = 90, disk = 80, full_within = "5m", runway = "6h", off = ["shallow", "starved"], ` +
		`starved = 50, starved_cpu = 80, starved_io = 30, leftover = 1024, runway_idle = "10m" }`)
	if err != nil {
		t.Fatal(err)
	}
	l := alarm.Usual()
	f.Instance["a"].Alarm.Set(&l)
	if l.MemoryFull != 90 || l.Disk != 80 || l.MemoryWithin != 5*time.Minute || l.RunwayJob != 6*time.Hour || l.Steal != alarm.Usual().Steal || !slices.Equal(l.Off, []string{"shallow", "starved"}) {
		t.Errorf("limits = %+v", l)
	}
	if l.StarvedBelow != 50 || l.StarvedCPU != 80 || l.StarvedWait != 30 || l.LeftoverBytes != 1<<30 || l.RunwayIdle != 10*time.Minute {
		t.Errorf("limits = %+v", l)
	}
	for body, want := range map[string]string{
		`alarm = { starved_io = 101 }`:    "alarm.starved_io is a percentage",
		`alarm = { leftover = -1 }`:       "alarm.leftover is a number",
		`alarm = { runway_idle = "x" }`:   "alarm.runway_idle is a time",
		`alarm = { memory = 101 }`:        "alarm.memory is a percentage",
		`alarm = { full_within = "ten" }`: "alarm.full_within is a time",
		`alarm = { off = ["nonsense"] }`:  `"nonsense", which is no alarm; there are brake, `,
		`alarm = { heat = 3 }`:            "heat",
	} {
		if _, err := parse(body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
