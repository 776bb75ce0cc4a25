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
	f, err := parse(`alarm = { memory = 90, disk = 80, full_within = "5m", runway = "6h", off = ["shallow", "starved"] }`)
	if err != nil {
		t.Fatal(err)
	}
	l := alarm.Usual()
	f.Instance["a"].Alarm.Set(&l)
	if l.MemoryFull != 90 || l.Disk != 80 || l.MemoryWithin != 5*time.Minute || l.RunwayJob != 6*time.Hour || l.Steal != alarm.Usual().Steal || !slices.Equal(l.Off, []string{"shallow", "starved"}) {
		t.Errorf("limits = %+v", l)
	}
	for body, want := range map[string]string{
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
