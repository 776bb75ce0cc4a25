// Package demo is the embedded fleet behind `rentop demo`: instances that are real
// SSH servers on loopback, with real shells, real tmux and real files in a temporary
// folder; only the GPUs and the provider are simulated. It needs no account, no GPU
// and no sshd, touches nothing of the person's, and removes all that it made.
package demo

import (
	"time"

	"rentop/remote/provider"
)

// Kind is the simulated provider's name.
const Kind = "demo"

// Options say where and when the demo runs. The zero value is right.
type Options struct {
	Dir   string           // the demo's own folder, new or empty, removed at the end; "": a new one in the system's temporary folder
	Clock func() time.Time // nil: time.Now
	Jobs  bool             // start the instances' jobs too; else the caller does, which lets its ledger see the start
}

// Instance is one simulated machine, as plain data. Amounts are decimals.
type Instance struct {
	Name        string
	ID          string // the provider's name for it
	Host        string
	Port        int // stays the same over stop and start
	User        string
	KeyFile     string // the login's private key
	HostKey     string // "SHA256:…"
	GPU         string // "1×A100 80G"
	State       provider.State
	StartedAt   time.Time // in the past; zero where stopped
	RatePerHour string
	Currency    string
	// WhileStopped is the price of an hour while stopped.
	WhileStopped string
	DiskGB       int
	PerGBMonth   string
	Artifacts    []string // what must not be lost, in the config's form: "~/ckpt/**"
	Jobs         []Job    // what should run there from the start
}

// Job is a command that belongs on an instance.
type Job struct {
	Name    string
	Command string
	Dir     string
}
