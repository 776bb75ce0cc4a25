// Package billing turns how an instance is billed and when it ran into exact
// amounts. It is pure: no clock, no files, no network.
//
// Amounts are exact rationals; they are rounded once, half up, where they are
// shown. Unknown is an error or nil, never 0.
package billing

import (
	"math/big"
	"time"
)

// Amount is an exact sum of money in one currency.
type Amount struct {
	Value    *big.Rat // nil is 0
	Currency string   // "CNY", "USD", …
}

// Quantum is the unit in which running time is billed.
type Quantum string

const (
	Second      Quantum = "second"       // every started second
	Minute      Quantum = "minute"       // every started minute
	MinuteExact Quantum = "minute-exact" // fractions count
	Hour        Quantum = "hour"         // every started hour
	HourExact   Quantum = "hour-exact"
)

// Plan is how an instance is billed from EffectiveFrom on. A nil rate is not known.
type Plan struct {
	Currency      string
	PerHour       *big.Rat // while running
	Billed        Quantum  // "" is Second
	MinSeconds    int64    // billed at least, for each start
	WhileStopped  *big.Rat // an hour, while stopped (compute); nil: not known, shown as ?
	DiskGB        *big.Rat
	PerGBMonth    *big.Rat
	MonthHours    int // 720 or 730; 0 is 730
	Prepaid       *Prepaid
	EffectiveFrom time.Time

	WhileHibernated *big.Rat      // an hour, while hibernated; nil: not known
	Steps           []Step        // other prices after hours of one run, in order
	Floor           *big.Rat      // least for each settlement of a run; nil: none
	Settle          time.Duration // settled at each whole one on the clock (time.Hour) and at the run's end; 0: at its end only
	Also            []Meter       // what else is billed by time
}

// Step is the price of an hour once a run has been billed for After.
type Step struct {
	After   time.Duration
	PerHour *big.Rat
}

// Meter is something beside compute and the disk that is billed by exact time in
// some states: an address, a volume, a disk that is dearer while stopped.
type Meter struct {
	Kind    string   // "disk" and "volume" are counted as Disk, all else as Other
	PerHour *big.Rat // nil: not known
	In      []State
}

// Prepaid is a period paid in advance: inside it running costs nothing more.
type Prepaid struct {
	Paid     *big.Rat
	From, To time.Time
}

// State in which an instance spends an interval.
type State string

const (
	Running    State = "running"
	Stopped    State = "stopped"
	Hibernated State = "hibernated"
	Gone       State = "gone"
	Unknown    State = "unknown" // not observed: its cost is unknown
)

// Interval is a stretch of time in one state under one plan. To is zero where
// it is still going on.
type Interval struct {
	State    State
	From, To time.Time
	Plan     Plan
	NewStart bool // a start happened at From (minimums and rounding begin anew)
}

// Bill is what intervals cost, by kind. A nil amount is not known.
type Bill struct {
	Compute *Amount
	Stopped *Amount // compute while stopped or hibernated
	Disk    *Amount
	Other   *Amount  // Plan.Also without disks
	Total   *Amount  // nil where any part is not known
	Known   *Amount  // the sum of the known parts: "at least"
	Missing []string // names of the unknown parts
}
