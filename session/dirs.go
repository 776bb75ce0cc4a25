package session

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Dirs are the two places where rentop keeps things.
type Dirs struct {
	Config string // config.toml
	State  string // ledger, known hosts, records, environments, snapshots
}

// DefaultDirs gives RENTOP_CONFIG_DIR and RENTOP_STATE_DIR, else the XDG places
// (Windows: AppData; macOS: Library where XDG is not set).
func DefaultDirs() (Dirs, error) {
	d := Dirs{Config: os.Getenv("RENTOP_CONFIG_DIR"), State: os.Getenv("RENTOP_STATE_DIR")}
	if d.Config == "" {
		base := os.Getenv("XDG_CONFIG_HOME")
		if base == "" {
			var err error
			if base, err = os.UserConfigDir(); err != nil {
				return d, fmt.Errorf("find a place for the config: %w; set RENTOP_CONFIG_DIR", err)
			}
		}
		d.Config = filepath.Join(base, "rentop")
	}
	if d.State == "" {
		base, err := stateHome()
		if err != nil {
			return d, fmt.Errorf("find a place for the ledger: %w; set RENTOP_STATE_DIR", err)
		}
		d.State = filepath.Join(base, "rentop")
	}
	return d, nil
}

func stateHome() (string, error) {
	if x := os.Getenv("XDG_STATE_HOME"); x != "" {
		return x, nil
	}
	switch runtime.GOOS {
	case "windows":
		if l := os.Getenv("LOCALAPPDATA"); l != "" {
			return l, nil
		}
		return os.UserConfigDir()
	case "darwin":
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}
