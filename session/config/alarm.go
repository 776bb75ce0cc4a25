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
	RunwayIdle string   `toml:"runway_idle,omitempty"` // of the balance otherwise: "30m"
	Starved    int      `toml:"starved,omitempty"`     // percent of mean utilisation, in bursts, below which data may be what is missing
	StarvedCPU int      `toml:"starved_cpu,omitempty"` // percent of CPU beside it, or
	StarvedIO  int      `toml:"starved_io,omitempty"`  // percent of time that waits for disks
	Leftover   int      `toml:"leftover,omitempty"`    // MiB that an ended job's processes hold
	Off        []string `toml:"off,omitempty"`         // alarms that are never said: "shallow"
}

// Set puts the thresholds that are given into l.
func (a *Alarm) Set(l *alarm.Limits) {
	for _, p := range a.percents(l) {
		if p.given > 0 {
			*p.into = float64(p.given)
		}
	}
	if a.Leftover > 0 {
		l.LeftoverBytes = float64(a.Leftover) * (1 << 20)
	}
	for _, p := range a.times(l) {
		if d, err := time.ParseDuration(p.given); err == nil {
			for _, into := range p.into {
				*into = d
			}
		}
	}
	l.Off = a.Off
}

type percent struct {
	name  string
	given int
	into  *float64
}

// percents are the thresholds in percent, and where they go.
func (a *Alarm) percents(l *alarm.Limits) []percent {
	return []percent{{"memory", a.Memory, &l.MemoryFull}, {"disk", a.Disk, &l.Disk}, {"steal", a.Steal, &l.Steal}, {"shallow", a.Shallow, &l.ShallowPower},
		{"starved", a.Starved, &l.StarvedBelow}, {"starved_cpu", a.StarvedCPU, &l.StarvedCPU}, {"starved_io", a.StarvedIO, &l.StarvedWait}}
}

type lasting struct {
	name, given string
	into        []*time.Duration
}

// times are the thresholds in time, and where they go.
func (a *Alarm) times(l *alarm.Limits) []lasting {
	return []lasting{{"full_within", a.FullWithin, []*time.Duration{&l.MemoryWithin, &l.DiskWithin}},
		{"runway", a.Runway, []*time.Duration{&l.RunwayJob}}, {"runway_idle", a.RunwayIdle, []*time.Duration{&l.RunwayIdle}}}
}

// fault says what is wrong with the thresholds, "" where nothing is.
func (a *Alarm) fault() string {
	if a == nil {
		return ""
	}
	var l alarm.Limits
	for _, p := range a.percents(&l) {
		if p.given < 0 || p.given > 100 {
			return fmt.Sprintf("alarm.%s is a percentage from 1 to 100", p.name)
		}
	}
	if a.Leftover < 0 {
		return "alarm.leftover is a number of MiB"
	}
	for _, p := range a.times(&l) {
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
