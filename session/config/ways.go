package config

import (
	"fmt"

	"rentop/remote"
)

// Ways is how alarms reach the person beyond the lines on screen.
type Ways struct {
	Bell    bool   `toml:"bell,omitempty"`    // the terminal's
	Desktop bool   `toml:"desktop,omitempty"` // a notification through the terminal (OSC 9)
	Command string `toml:"command,omitempty"` // a line of the person's own, run on this computer
	Least   string `toml:"least,omitempty"`   // info, warning or urgent; "" is warning
}

// levels are the names of Least, the least first.
func levels() []string { return []string{"info", "warning", "urgent"} }

// Level is the index of the least level: 0 info, 1 warning, 2 urgent.
func (w Ways) Level() int {
	for i, name := range levels() {
		if w.Least == name {
			return i
		}
	}
	return 1
}

func (w Ways) check() string {
	if w.Least != "" && levels()[w.Level()] != w.Least {
		return fmt.Sprintf("alarms.least is info, warning or urgent, not %q", remote.Short(w.Least, 40))
	}
	return ""
}
