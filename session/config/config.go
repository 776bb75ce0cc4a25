// Package config is the config.toml that a person writes by hand or through
// `rentop add`: reading it strictly, and editing it with every comment kept.
// Secrets are never in it.
package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"rentop/remote"
)

// File is everything in config.toml.
type File struct {
	UI       UI                  `toml:"ui"`
	Money    Money               `toml:"money"`
	Transfer Transfer            `toml:"transfer"`
	Alarms   Ways                `toml:"alarms"`
	Bucket   map[string]Bucket   `toml:"bucket,omitempty"` // by name
	Instance map[string]Instance `toml:"instance"`

	path  string
	lines lineIndex
}

// Fault is an error about a key of the file that another part found, with its line
// where it can be told.
func (f *File) Fault(what string, key ...string) error {
	return &Error{File: f.path, Line: f.lines.at(key...), What: what}
}

// UI is how rentop looks; a flag or an environment variable wins over it.
type UI struct {
	Theme    string `toml:"theme,omitempty"`    // auto, dark, light, 16, mono, colour-blind
	Language string `toml:"language,omitempty"` // auto, en, zh
	Glyphs   string `toml:"glyphs,omitempty"`   // unicode, ascii
	Readonly bool   `toml:"readonly,omitempty"` // the screen looks and does not act
	// Keys are other keys for actions of the screen, by the action's name.
	Keys map[string][]string `toml:"keys,omitempty"`
}

// Money is how sums in different currencies may be added.
type Money struct {
	// Rates are what one unit of the first currency is worth in the second:
	// USD_CNY = "7.10". Without one, currencies are shown side by side.
	Rates map[string]string `toml:"rates,omitempty"`
}

// Instance is one machine. Name is its key in the file.
type Instance struct {
	Name      string     `toml:"-"`
	SSH       string     `toml:"ssh,omitempty"`  // the line that the platform gives
	Host      string     `toml:"host,omitempty"` // or an alias of ~/.ssh/config
	Provider  string     `toml:"provider,omitempty"`
	ID        string     `toml:"id,omitempty"` // the provider's own name for it
	Command   *Command   `toml:"command,omitempty"`
	Rate      *Rate      `toml:"rate,omitempty"`
	Disk      *Disk      `toml:"disk,omitempty"`
	Traffic   *Traffic   `toml:"traffic,omitempty"`
	Budget    string     `toml:"budget,omitempty"`
	Idle      *Idle      `toml:"idle,omitempty"`
	Alarm     *Alarm     `toml:"alarm,omitempty"`
	Sync      []Pair     `toml:"sync,omitempty"`
	Artifacts []Artifact `toml:"artifacts,omitempty"`
	LookIn    []string   `toml:"look_in,omitempty"` // where the person's files lie; empty: every writable local file system
	Watch     []Watch    `toml:"watch,omitempty"`
	Tags      []string   `toml:"tags,omitempty"` // the bill can be added up by them
}

// Command is the person's own shell lines for provider = "command".
type Command struct {
	Status    string `toml:"status,omitempty"`
	Start     string `toml:"start,omitempty"`
	Stop      string `toml:"stop,omitempty"`
	Destroy   string `toml:"destroy,omitempty"`
	Snapshot  string `toml:"snapshot,omitempty"`
	Leftovers string `toml:"leftovers,omitempty"`
}

// Rate is how running time is billed; decimals are strings so that they stay exact.
type Rate struct {
	PerHour      string   `toml:"per_hour,omitempty"`
	Currency     string   `toml:"currency,omitempty"`
	Billed       string   `toml:"billed,omitempty"`        // second, minute, minute-exact, hour, hour-exact
	Minimum      string   `toml:"minimum,omitempty"`       // billed at least, for each start: "60s"
	WhileStopped string   `toml:"while_stopped,omitempty"` // an hour
	Prepaid      *Prepaid `toml:"prepaid,omitempty"`

	WhileHibernated string  `toml:"while_hibernated,omitempty"` // an hour
	Steps           []Step  `toml:"steps,omitempty"`            // other prices after hours of one run
	Floor           string  `toml:"floor,omitempty"`            // least amount of a settlement
	Settle          string  `toml:"settle,omitempty"`           // "hour": settled at each full hour; else at the run's end
	Also            []Meter `toml:"also,omitempty"`             // what else is billed by time
}

// Step is a price after so many hours of one run.
type Step struct {
	After   string `toml:"after"` // "96h"
	PerHour string `toml:"per_hour"`
}

// Meter is something beside compute and the disk that costs by time: an address, a
// volume. Either an hour or GB and a month are priced.
type Meter struct {
	What       string   `toml:"what"` // disk, volume, ip, …
	PerHour    string   `toml:"per_hour,omitempty"`
	GB         int64    `toml:"gb,omitempty"`
	PerGBMonth string   `toml:"per_gb_month,omitempty"`
	MonthHours int      `toml:"month_hours,omitempty"`
	While      []string `toml:"while,omitempty"` // running, stopped, hibernated; empty: all of them
}

// Prepaid is a period that is paid already. Times are RFC 3339 or a date.
type Prepaid struct {
	Paid string `toml:"paid"`
	From string `toml:"from"`
	To   string `toml:"to"`
}

// Disk is what the disk costs, running or stopped.
type Disk struct {
	GB         int64  `toml:"gb"`
	PerGBMonth string `toml:"per_gb_month"`
	MonthHours int    `toml:"month_hours,omitempty"` // 720 or 730 (default)
}

// Idle says when an instance counts as idle: utilisation below percent, for a time.
type Idle struct {
	Below int    `toml:"below"`
	For   string `toml:"for"`
	Then  string `toml:"then,omitempty"` // warn
}

// Pair is two folders that belong together.
type Pair struct {
	Local  string `toml:"local"`
	Remote string `toml:"remote"`
}

// Artifact is a path on the instance that must exist at To before the instance may go.
// To is a folder here, s3://bucket/prefix or INSTANCE:PATH.
type Artifact struct {
	Path  string `toml:"path"`
	To    string `toml:"to"`
	Every string `toml:"every,omitempty"` // save --watch looks so often: "5m"
	Keep  int    `toml:"keep,omitempty"`  // of its checkpoints, the newest; 0: all
}

// Watch is a path on the instance that something must keep writing.
type Watch struct {
	Path       string `toml:"path"`
	StaleAfter string `toml:"stale_after"`
}

// Error is a fault in the file, with its place. Its text is one sentence.
type Error struct {
	File string
	Line int // 0: not known
	What string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What)
	}
	return fmt.Sprintf("%s: %s", e.File, e.What)
}

// Load reads path. A file that does not exist is an empty File.
func Load(path string) (*File, error) {
	text, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &File{Instance: map[string]Instance{}}, nil
	}
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse reads the text of a config; path is only named in errors.
func Parse(path string, text []byte) (*File, error) {
	if what := notText(text); what != "" {
		return nil, &Error{File: path, What: what}
	}
	text = blankMark(text)
	var f File
	dec := toml.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, tomlError(path, err)
	}
	if f.Instance == nil {
		f.Instance = map[string]Instance{}
	}
	f.path, f.lines = path, indexLines(text)
	for name, in := range f.Instance {
		in.Name = name
		if key, what := in.check(); what != "" {
			return nil, &Error{File: path, Line: f.lines.find(name, key), What: fmt.Sprintf("instance %q: %s", remote.Short(name, 64), what)}
		}
		if what := in.Alarm.fault(); what != "" {
			return nil, &Error{File: path, Line: f.lines.find(name, "alarm"), What: fmt.Sprintf("instance %q: %s", remote.Short(name, 64), what)}
		}
		f.Instance[name] = in
	}
	if what := f.checkShared(); what != "" {
		return nil, &Error{File: path, What: what}
	}
	return &f, nil
}
