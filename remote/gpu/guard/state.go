package guard

// Where a guard stands, as a file on the instance. Whoever reads it there trusts
// nothing of it.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rentop/remote/clean"
)

// Phase of a guard.
type Phase string

const (
	Arming   Phase = "arming"   // not every rule is armed yet
	Refused  Phase = "refused"  // a rule cannot be armed: Why says it. The guard has ended
	Watching Phase = "watching" // every rule is armed
	Saving   Phase = "saving"   // a rule was met, and the save runs
	Acting   Phase = "acting"   // the action runs
	Waiting  Phase = "waiting"  // save or action failed and is tried again
	Stopping Phase = "stopping" // the action succeeded: the instance is to end now
	Done     Phase = "done"     // the action succeeded; what goes on is the history
	Unsure   Phase = "unsure"   // the guard was killed while it acted: that is not done twice
	Off      Phase = "off"      // disarmed
)

// Say is a sentence as a key with arguments; the keys are session's phrases
// "guard.why."+Key.
type Say struct {
	Key  string   `json:"key"`
	Args []string `json:"args,omitempty"`
}

func say(key string, args ...any) Say {
	s := Say{Key: key}
	for _, a := range args {
		s.Args = append(s.Args, clean.Short(fmt.Sprint(a), maxArg))
	}
	return s
}

// Status is one rule at one moment.
type Status struct {
	Kind  Kind      `json:"kind"`
	Due   time.Time `json:"due,omitzero"`      // by the instance's clock; zero where it cannot be told
	Left  *int64    `json:"left,omitempty"`    // seconds until it is met, as things are; nil: it does not count down
	Total int64     `json:"seconds,omitempty"` // Idle: for how long it must last
	Job   string    `json:"job,omitempty"`
	Why   Say       `json:"why,omitzero"`   // why it does not count down, or what holds
	Doubt Say       `json:"doubt,omitzero"` // what makes its time doubtful
	Met   bool      `json:"met,omitempty"`
}

// Trip is a rule that was met, and what was done about it.
type Trip struct {
	Kind  Kind      `json:"kind"`
	At    time.Time `json:"at"`
	Due   time.Time `json:"due,omitzero"` // Reclaim: when the machine is taken back
	Why   Say       `json:"why,omitzero"`
	Saved bool      `json:"saved,omitempty"`
	Saves int       `json:"saves,omitempty"` // attempts
	Acts  int       `json:"acts,omitempty"`
	Error string    `json:"error,omitempty"` // of the last attempt
	Next  time.Time `json:"next,omitzero"`   // attempt
}

// Armed is a rule with the moment at which it is due, by both clocks.
type Armed struct {
	Rule
	Mono time.Duration `json:"mono,omitempty"` // since boot; At, Budget and Lease
}

// State of a guard. Times are the instance's.
type State struct {
	Version   int           `json:"version"`
	Spec      Spec          `json:"spec"`
	Phase     Phase         `json:"phase"`
	PID       int           `json:"pid"`
	Start     uint64        `json:"start"` // of the process, in ticks since boot: tells it from a later one of the same number
	Box       string        `json:"box"`   // the boot of the machine and of the container
	Now       time.Time     `json:"now"`   // when this was written
	ArmedAt   time.Time     `json:"armed_at,omitzero"`
	ArmedMono time.Duration `json:"armed_mono,omitempty"`
	Armed     []Armed       `json:"armed,omitempty"`
	Rules     []Status      `json:"rules,omitempty"`
	Why       Say           `json:"why,omitzero"` // of Refused
	Trip      *Trip         `json:"trip,omitempty"`
	Source    string        `json:"source,omitempty"` // of the samples
	Fault     string        `json:"fault,omitempty"`  // what is wrong with the guard itself: no history is kept
}

const (
	maxState = 192 << 10
	maxArg   = 300
)

var errBroken = errors.New("the guard's state on the instance cannot be read")

// ParseState reads what a guard wrote. Every length is bounded and every text clean.
func ParseState(b []byte) (*State, error) {
	if len(b) > maxState {
		return nil, fmt.Errorf("%w: it has %d bytes", errBroken, len(b))
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	if s.Version != Version {
		return nil, fmt.Errorf("%w: it is of version %d, rentop knows %d; arm the guard anew", errBroken, s.Version, Version)
	}
	if err := s.Spec.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	if len(s.Rules) > maxRules || len(s.Armed) > maxRules {
		return nil, fmt.Errorf("%w: more rules than there can be", errBroken)
	}
	for i := range s.Rules {
		r := &s.Rules[i]
		r.Kind, r.Job = Kind(clean.Short(string(r.Kind), 20)), clean.Short(r.Job, 100)
		r.Why.clean()
		r.Doubt.clean()
		r.Due = sane(r.Due)
	}
	s.Why.clean()
	s.Phase, s.Box = Phase(clean.Short(string(s.Phase), 20)), clean.Short(s.Box, 100)
	s.Source, s.Fault = clean.Short(s.Source, 60), clean.Short(s.Fault, maxArg)
	s.Now, s.ArmedAt = sane(s.Now), sane(s.ArmedAt)
	if t := s.Trip; t != nil {
		t.Kind, t.Error = Kind(clean.Short(string(t.Kind), 20)), clean.Short(t.Error, maxArg)
		t.Why.clean()
		t.At, t.Next, t.Due = sane(t.At), sane(t.Next), sane(t.Due)
	}
	return &s, nil
}

func (s *Say) clean() {
	s.Key = clean.Short(s.Key, 40)
	s.Args = s.Args[:min(len(s.Args), 4)]
	for i := range s.Args {
		s.Args[i] = clean.Short(s.Args[i], maxArg)
	}
}

// sane is a time that a ledger and JSON can hold.
func sane(t time.Time) time.Time {
	if t.Year() < 1970 || t.Year() > 2199 {
		return time.Time{}
	}
	return t.UTC()
}

// write puts v into dir/name, whole or not at all; with sync it outlives a crash of
// the machine.
func write(dir, name string, v any, sync bool) (err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(dir, name, append(b, '\n'), sync)
}

func writeFile(dir, name string, b []byte, sync bool) (err error) {
	half := filepath.Join(dir, "."+name)
	f, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(half)
		return err
	}
	if err := os.Rename(half, filepath.Join(dir, name)); err != nil || !sync {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// readBounded reads a file of at most n bytes.
func readBounded(name string, n int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n+1)
	got := 0
	for got < len(b) {
		m, err := f.Read(b[got:])
		got += m
		if err != nil || m == 0 {
			break
		}
	}
	if got > n {
		return nil, fmt.Errorf("%s has more than %d bytes", name, n)
	}
	return b[:got], nil
}
