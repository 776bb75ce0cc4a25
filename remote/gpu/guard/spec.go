package guard

// What rentop asks for, and what is checked of it before anything is armed.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Version of Spec and State. Another one is not understood.
const Version = 1

// Kind of a rule.
type Kind string

const (
	Idle   Kind = "idle"   // no GPU works and no job runs, for a time
	After  Kind = "after"  // a job has ended
	At     Kind = "at"     // a time has come
	Budget Kind = "budget" // the money is spent
	Lease  Kind = "lease"  // the rental ends
	// Reclaim: the provider has announced that it takes the machine back. Then is not
	// done: only what can be saved is.
	Reclaim Kind = "reclaim"
)

// Rule is one reason to act. Money is decimal text, so that it stays exact.
type Rule struct {
	Kind     Kind    `json:"kind"`
	Seconds  int64   `json:"seconds,omitempty"` // Idle: for how long; At, Lease: from now on
	Below    float64 `json:"below,omitempty"`   // Idle: percent of utilisation that counts as idle
	Job      string  `json:"job,omitempty"`     // After: its ID
	Limit    string  `json:"limit,omitempty"`   // Budget
	Spent    string  `json:"spent,omitempty"`
	PerHour  string  `json:"per_hour,omitempty"`
	Currency string  `json:"currency,omitempty"`
	Script   string  `json:"script,omitempty"` // Reclaim: prints what is announced; nothing where nothing is
}

// Spec is what a guard is to watch for and to do. Scripts are POSIX sh.
type Spec struct {
	Version int    `json:"version"`
	ID      string `json:"id"` // made by rentop for each arming
	Rules   []Rule `json:"rules"`
	Then    string `json:"then,omitempty"`  // what is done; "": nothing, the trip is told
	Stops   bool   `json:"stops,omitempty"` // Then ends the instance: to live on after it is a failure
	Check   string `json:"check,omitempty"` // whether Then can work; it fails with the reason
	Save    string `json:"save,omitempty"`  // done before Then, which waits until it succeeds
	// SaveSeconds is how long Save may take.
	SaveSeconds int64  `json:"save_seconds,omitempty"`
	Reader      string `json:"reader,omitempty"` // the program that reads GPUs; "": nvidia-smi is read
}

const (
	maxSpec    = 64 << 10 // bytes of its JSON
	maxRules   = 8
	maxScript  = 8 << 10
	maxSeconds = 10 * 366 * 24 * 3600
)

// Validate says what is wrong with a spec.
func (s *Spec) Validate() error {
	switch {
	case s.Version != Version:
		return fmt.Errorf("the guard is of version %d, rentop asks for %d: arm it anew", Version, s.Version)
	case !isID(s.ID):
		return errors.New("a guard needs an id")
	case len(s.Rules) > maxRules:
		return fmt.Errorf("a guard has at most %d rules", maxRules)
	case s.Save != "" && (s.SaveSeconds <= 0 || s.SaveSeconds > maxSeconds):
		return errors.New("a save needs a limit of time")
	}
	for i := range s.Rules {
		if slices.ContainsFunc(s.Rules[:i], func(r Rule) bool { return r.Kind == s.Rules[i].Kind }) {
			return fmt.Errorf("two rules %.20q", s.Rules[i].Kind)
		}
		if err := s.Rules[i].validate(); err != nil {
			return fmt.Errorf("rule %s: %w", s.Rules[i].Kind, err)
		}
	}
	return nil
}

func (r *Rule) validate() error {
	switch r.Kind {
	case Idle:
		if r.Seconds < 1 || r.Seconds > maxSeconds || !(r.Below > 0 && r.Below <= 100) {
			return errors.New("it needs a time and a limit in percent")
		}
	case At, Lease:
		if r.Seconds < 0 || r.Seconds > maxSeconds {
			return errors.New("it needs a time to come")
		}
	case After:
		if !isJob(r.Job) {
			return errors.New("it needs a job")
		}
	case Budget:
		_, err := r.left()
		return err
	case Reclaim:
		if r.Script == "" || len(r.Script) > maxScript {
			return errors.New("it needs a way to ask")
		}
	default:
		return errors.New("no such rule")
	}
	return nil
}

// left is how long the budget lasts, to the second above, exactly.
func (r *Rule) left() (time.Duration, error) {
	limit, err1 := decimal(r.Limit)
	spent, err2 := decimal(r.Spent)
	rate, err3 := decimal(r.PerHour)
	switch err := errors.Join(err1, err2, err3); {
	case err != nil:
		return 0, err
	case rate == 0:
		return 0, errors.New("without a price of an hour no budget is ever used up")
	case limit <= spent:
		return 0, nil
	}
	hi, lo := bits.Mul64(limit-spent, 3600)
	if hi >= rate {
		return 0, errEndless
	}
	n, rest := bits.Div64(hi, lo, rate)
	if rest > 0 {
		n++
	}
	if n > maxSeconds {
		return 0, errEndless
	}
	return time.Duration(n) * time.Second, nil
}

var errEndless = errors.New("the budget lasts for more than ten years")

// Places is how many decimal places an amount may have. Before them are at most nine
// digits, so that a sum of billionths is a number of 64 bits.
const Places = 9

// decimal reads an amount as billionths.
func decimal(s string) (uint64, error) {
	whole, part, dot := strings.Cut(s, ".")
	if len(whole) < 1 || len(whole) > 9 || len(part) > Places || dot && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, fmt.Errorf("%.40q is no amount below a billion", s)
	}
	return strconv.ParseUint(whole+part+strings.Repeat("0", Places-len(part)), 10, 64)
}

// isID says whether a spec's id is one: letters and digits.
func isID(s string) bool {
	return len(s) >= 8 && len(s) <= 32 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// isJob says whether a job's ID is one, as remote/tmux makes them: no path, no option.
func isJob(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (c != '-' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// parseSpec reads a spec and checks it.
func parseSpec(b []byte) (*Spec, error) {
	if len(b) > maxSpec {
		return nil, fmt.Errorf("what the guard is asked for has %d bytes; at most %d are allowed", len(b), maxSpec)
	}
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("what the guard is asked for cannot be read: %w", err)
	}
	return &s, s.Validate()
}
