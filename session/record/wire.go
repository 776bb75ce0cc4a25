package record

// What a chunk holds: the fields of a view as JSON. These types are the format, and
// apart from session's, which may change; times are RFC 3339, durations nanoseconds.

import (
	"encoding/json"
	"time"
)

// frame is a chunk: what is different from the view before, all in a whole one.
type frame struct {
	Fleet    fields   `json:"fleet,omitempty"`
	Order    []string `json:"order,omitempty"` // the instances, where that changed: whoever is not in it is gone
	Sessions []delta  `json:"sessions,omitempty"`
}

// delta is what changed of one instance.
type delta struct {
	Name    string `json:"name"`
	Fields  fields `json:"fields,omitempty"`
	Sample  []byte `json:"sample,omitempty"` // a message of remote/gpu/sample's stream
	History *tail  `json:"history,omitempty"`
	Day     *tail  `json:"day,omitempty"`
}

// fields are an object's fields by name; null takes one away.
type fields map[string]json.RawMessage

// tail moves a history on: the oldest steps are dropped, rows are appended. A row is
// CPU, mean, then utilisation and memory of each GPU, in tenths of a percent; -1 is
// none.
type tail struct {
	Step time.Duration `json:"step"`
	GPUs int           `json:"gpus"`
	Drop int           `json:"drop"` // -1: all
	Rows [][]int16     `json:"rows,omitempty"`
}

// said is a phrase.Text, ids and arguments apart, to be shown in any language.
type said []struct {
	ID   string   `json:"id"`
	Args []string `json:"args,omitempty"`
}

type amount struct {
	Value    string `json:"value"` // exact: "12" or "305/12"
	Currency string `json:"currency"`
}

type sums struct {
	Amounts []amount `json:"amounts,omitempty"`
	Unknown int      `json:"unknown,omitempty"`
}

type fleetWire struct {
	Simulated  bool     `json:"simulated,omitempty"`
	PerHour    sums     `json:"per_hour"`
	Today      sums     `json:"today"`
	BudgetLeft sums     `json:"budget_left"`
	Notices    []notice `json:"notices,omitempty"`
	ConfigErr  string   `json:"config_error,omitempty"`

	Balances []balance `json:"balances,omitempty"`
}

type notice struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance,omitempty"`
	Level    int       `json:"level"`
	Text     said      `json:"text"`
}

type viewWire struct {
	Provider string        `json:"provider,omitempty"`
	Address  string        `json:"address,omitempty"`
	State    string        `json:"state"`
	Reason   said          `json:"reason,omitempty"`
	Since    time.Time     `json:"since,omitzero"`
	RetryAt  time.Time     `json:"retry_at,omitzero"`
	RTT      time.Duration `json:"rtt,omitempty"`
	Facts    *facts        `json:"facts,omitempty"`
	Meter    meter         `json:"meter"`
	Jobs     []job         `json:"jobs,omitempty"`
	JobsRead bool          `json:"jobs_read,omitempty"`
	JobsErr  string        `json:"jobs_error,omitempty"`
	Saved    saved         `json:"saved"`
	Transfer []transfer    `json:"transfers,omitempty"`
	Limit    int64         `json:"limit,omitempty"`
	Syncs    []pair        `json:"syncs,omitempty"`
	Alerts   []alert       `json:"alerts,omitempty"`
	Past     []alert       `json:"past_alerts,omitempty"`
	Release  *checklist    `json:"release,omitempty"`
	Can      []bool        `json:"can,omitempty"` // stop, start, destroy, snapshot

	Receipts map[string]receipt `json:"receipts,omitempty"` // by the job's id
	Guard    *guardWire         `json:"guard,omitempty"`

	Artifacts int         `json:"artifacts,omitempty"`
	Saving    *savingWire `json:"saving,omitempty"`
}

type facts struct {
	User      string   `json:"user,omitempty"`
	Home      string   `json:"home,omitempty"`
	Root      bool     `json:"root,omitempty"`
	OS        string   `json:"os,omitempty"`
	Arch      string   `json:"arch,omitempty"`
	Container string   `json:"container,omitempty"`
	Tmux      string   `json:"tmux,omitempty"`
	GPUs      []string `json:"gpus,omitempty"`
}

type meter struct {
	Cost       *amount   `json:"cost,omitempty"`
	AtLeast    *amount   `json:"at_least,omitempty"`
	Today      *amount   `json:"today,omitempty"`
	PerHour    *amount   `json:"per_hour,omitempty"`
	Running    *amount   `json:"running,omitempty"`
	ByMidnight *amount   `json:"by_midnight,omitempty"`
	Budget     *amount   `json:"budget,omitempty"`
	BudgetLeft *amount   `json:"budget_left,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Missing    []string  `json:"missing,omitempty"`
	Note       said      `json:"note,omitempty"`
}

type job struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Command  string    `json:"command,omitempty"`
	Dir      string    `json:"dir,omitempty"`
	State    string    `json:"state"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Started  time.Time `json:"started_at,omitzero"`
	Ended    time.Time `json:"ended_at,omitzero"`
	PID      int       `json:"pid,omitempty"`
	LogSize  int64     `json:"log_size,omitempty"`
	LastLine string    `json:"last_line,omitempty"`
	Tmux     bool      `json:"tmux,omitempty"`
	Why      string    `json:"why,omitempty"`
}

type saved struct {
	Known bool      `json:"known,omitempty"`
	Files int       `json:"files,omitempty"`
	Bytes int64     `json:"bytes,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

type pair struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
}

type alert struct {
	ID    string    `json:"id"`
	Level int       `json:"level"`
	Text  said      `json:"text"`
	Since time.Time `json:"since,omitzero"`
	Ended time.Time `json:"ended,omitzero"`

	Silenced time.Time `json:"silenced,omitzero"`
	Unseen   bool      `json:"unseen,omitempty"`
}

type transfer struct {
	ID        int    `json:"id"`
	Direction string `json:"direction"`
	pair
	Stage     string        `json:"stage,omitempty"`
	Files     int64         `json:"files,omitempty"`
	FilesAll  int64         `json:"files_all,omitempty"`
	Bytes     int64         `json:"bytes,omitempty"`
	BytesAll  int64         `json:"bytes_all,omitempty"`
	Growing   bool          `json:"growing,omitempty"`
	Wire      int64         `json:"wire,omitempty"`
	Reused    int64         `json:"reused,omitempty"`
	Current   string        `json:"current,omitempty"`
	Rate      float64       `json:"rate,omitempty"`
	Left      time.Duration `json:"left,omitempty"`
	Transport string        `json:"transport,omitempty"`
	WhySlower string        `json:"why_slower,omitempty"`
	Failures  int           `json:"failures,omitempty"`
	Result    *result       `json:"result,omitempty"`
	Err       string        `json:"error,omitempty"`
	Cancelled bool          `json:"cancelled,omitempty"`
	Paused    bool          `json:"paused,omitempty"`
}

type result struct {
	Files     int64         `json:"files,omitempty"`
	Unchanged int64         `json:"unchanged,omitempty"`
	Failed    int64         `json:"failed,omitempty"`
	Bytes     int64         `json:"bytes,omitempty"`
	Wire      int64         `json:"wire,omitempty"`
	Reused    int64         `json:"reused,omitempty"`
	Took      time.Duration `json:"took,omitempty"`
	Verified  bool          `json:"verified,omitempty"`
}

type checklist struct {
	ID         string     `json:"id"`
	Goal       string     `json:"goal"`
	Phase      string     `json:"phase"`
	Checks     []check    `json:"checks,omitempty"`
	Why        said       `json:"why,omitempty"`
	Lost       []evidence `json:"lost,omitempty"`
	LostSize   int64      `json:"lost_size,omitempty"`
	Traffic    string     `json:"pull_traffic,omitempty"`
	GoesOn     []goesOn   `json:"goes_on,omitempty"`
	CanStop    bool       `json:"can_stop,omitempty"`
	CanDestroy bool       `json:"can_destroy,omitempty"`
	StopNote   string     `json:"stop_note,omitempty"`
	StartedAt  time.Time  `json:"started_at,omitzero"`
	Resumed    bool       `json:"resumed,omitempty"`
	Proof      said       `json:"proof,omitempty"`
	Ended      string     `json:"ended,omitempty"`
	Cost       string     `json:"cost,omitempty"`
	Pulled     int        `json:"pulled,omitempty"`
	PulledTo   string     `json:"pulled_to,omitempty"`
}

type check struct {
	ID       string     `json:"id"`
	State    string     `json:"state"`
	Summary  said       `json:"summary,omitempty"`
	Evidence []evidence `json:"evidence,omitempty"`
	At       time.Time  `json:"at,omitzero"`
	Cure     said       `json:"cure,omitempty"`
}

type evidence struct {
	What   string `json:"what"`
	Size   int64  `json:"size"`
	Detail said   `json:"detail,omitempty"`
	Lost   bool   `json:"lost,omitempty"`
	More   int    `json:"more,omitempty"`
}

type goesOn struct {
	What     said   `json:"what"`
	PerMonth string `json:"per_month,omitempty"`
}
