package config

import (
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/gpu/alarm"
)

// Alarm are an instance's own thresholds; what is left out is as usual.
type Alarm struct {
	Memory     int      `toml:"memory,omitempty"`      // percent of a GPU's memory
	Disk       int      `toml:"disk,omitempty"`        // percent of a disk or of its inodes
	FullWithin string   `toml:"full_within,omitempty"` // growing to full: "10m"
	Steal      int      `toml:"steal,omitempty"`       // percent of CPU time that went to others
	Shallow    int      `toml:"shallow,omitempty"`     // percent of the power limit that a busy GPU draws less than
	Runway     string   `toml:"runway,omitempty"`      // of the balance, while a job runs: "2h"
	Off        []string `toml:"off,omitempty"`         // alarms that are never said: "shallow"
}

// Set puts the thresholds that are given into l.
func (a *Alarm) Set(l *alarm.Limits) {
	for _, p := range []struct {
		given int
		into  *float64
	}{{a.Memory, &l.MemoryFull}, {a.Disk, &l.Disk}, {a.Steal, &l.Steal}, {a.Shallow, &l.ShallowPower}} {
		if p.given > 0 {
			*p.into = float64(p.given)
		}
	}
	if d, err := time.ParseDuration(a.FullWithin); err == nil {
		l.MemoryWithin, l.DiskWithin = d, d
	}
	if d, err := time.ParseDuration(a.Runway); err == nil {
		l.RunwayJob = d
	}
	l.Off = a.Off
}

// fault says what is wrong with the thresholds, "" where nothing is.
func (a *Alarm) fault() string {
	if a == nil {
		return ""
	}
	for _, p := range []struct {
		name  string
		given int
	}{{"memory", a.Memory}, {"disk", a.Disk}, {"steal", a.Steal}, {"shallow", a.Shallow}} {
		if p.given < 0 || p.given > 100 {
			return fmt.Sprintf("alarm.%s is a percentage from 1 to 100", p.name)
		}
	}
	for _, p := range []struct{ name, given string }{{"full_within", a.FullWithin}, {"runway", a.Runway}} {
		if d, err := time.ParseDuration(p.given); p.given != "" && (err != nil || d <= 0) {
			return fmt.Sprintf("alarm.%s is a time such as 10m, not %q", p.name, remote.Clean(p.given))
		}
	}
	for _, name := range a.Off {
		if !alarm.Known(name) {
			return fmt.Sprintf("alarm.off names %q, which is no alarm; there are %s", remote.Clean(name), alarm.Names())
		}
	}
	return ""
}
