package config

import (
	"strings"
	"testing"
)

func TestWays(t *testing.T) {
	for body, want := range map[string]Ways{
		"":                                       {},
		"[alarms]\nbell = true":                  {Bell: true},
		"[alarms]\nleast = \"urgent\"\n":         {Least: "urgent"},
		"[alarms]\ncommand = \"x\"\n":            {Command: "x"},
		"[alarms]\ndesktop=true\nleast=\"info\"": {Desktop: true, Least: "info"},
	} {
		f, err := Parse("config.toml", []byte(body))
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		if f.Alarms != want {
			t.Errorf("%q: %+v, want %+v", body, f.Alarms, want)
		}
	}
	for least, level := range map[string]int{"": 1, "info": 0, "warning": 1, "urgent": 2} {
		if got := (Ways{Least: least}).Level(); got != level {
			t.Errorf("least %q is level %d, want %d", least, got, level)
		}
	}
	for body, want := range map[string]string{
		"[alarms]\nleast = \"loud\"": "alarms.least is info, warning or urgent",
		"[alarms]\nbeep = true":      "beep",
	} {
		if _, err := Parse("config.toml", []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
}
