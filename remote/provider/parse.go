package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
)

// Exit codes of a status line that are an answer.
const (
	exitStopped = 3
	exitGone    = 4
)

// words are what platforms call the states, in lower case without spaces,
// hyphens and underscores. A word that is not here is Unknown: never guessed.
var words = map[State]string{
	Running: "running active up on started online inservice 运行中 运行 已开机",
	Stopped: "stopped off shutoff halted exited poweredoff poweroff shutdown deallocated stopcharging hibernated 已关机 已停止 关机 停止",
	Gone:    "gone destroyed deleted terminated released removed notfound doesnotexist nosuchinstance 已释放 已删除 不存在",
	Changing: "changing pending provisioning creating building initializing starting booting rebooting restarting loading scheduling resuming " +
		"stopping shuttingdown poweringoff hibernating destroying deleting terminating releasing migrating 开机中 启动中 关机中 停止中 重启中 创建中 释放中",
}

// ParseState reads a platform's own word for a state; Unknown where it is not
// one that is known to mean one thing.
func ParseState(word string) State {
	word = strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(word)))
	for state, list := range words {
		for w := range strings.FieldsSeq(list) {
			if w == word {
				return state
			}
		}
	}
	return Unknown
}

// parseStatus reads a status line's output and exit code.
func parseStatus(out []byte, code int) (Status, error) {
	told := map[int]State{exitStopped: Stopped, exitGone: Gone}[code]
	text := strings.TrimSpace(string(out))
	var s Status
	var err error
	switch {
	case text == "" && told != "":
		return Status{State: told}, nil
	case text == "":
		return Status{State: Running}, nil
	case strings.HasPrefix(text, "{"):
		if s, err = parseStatusJSON([]byte(text)); err != nil {
			return Status{}, err
		}
	default:
		s = Status{State: ParseState(text), Detail: remote.Short(text, 200)}
	}
	if told != "" && s.State != told {
		if s.State != Unknown {
			return Status{}, fmt.Errorf("the line says %q, but its exit code %d says %s: make them agree", s.State, code, told)
		}
		s.State = told // the text is only talk: the code was meant
	}
	return s, nil
}

func parseStatusJSON(text []byte) (Status, error) {
	var j struct {
		State     string          `json:"state"`
		StartedAt json.RawMessage `json:"started_at"`
		Billed    *bool           `json:"billed"`
		Detail    string          `json:"detail"`
	}
	if err := decodeOne(text, &j); err != nil {
		return Status{}, err
	}
	if j.State == "" {
		return Status{}, errors.New(`its JSON has no "state"`)
	}
	s := Status{State: ParseState(j.State), Billed: j.Billed, Detail: remote.Short(j.Detail, 200)}
	if s.Detail == "" {
		s.Detail = remote.Short(j.State, 200)
	}
	var err error
	if s.StartedAt, err = parseTime(j.StartedAt); err != nil {
		return Status{}, err
	}
	return s, nil
}

// parseTime reads RFC 3339 text or seconds since 1970; null and "" are zero.
func parseTime(raw json.RawMessage) (time.Time, error) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil {
			return time.Time{}, fmt.Errorf("its started_at %q is no time: write it like 2026-11-30T10:00:00Z or as seconds since 1970", remote.Short(text, 40))
		}
		t = time.Unix(n, 0)
	}
	if t.Year() < 2000 || t.Year() > 2199 {
		return time.Time{}, fmt.Errorf("its started_at %q is not possible", remote.Short(text, 40))
	}
	return t.UTC(), nil
}

// money is a decimal that may be written as a JSON string or number.
type money string

func (m *money) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		*m = ""
		return nil
	}
	whole, frac, point := strings.Cut(text, ".")
	if len(text) > 30 || !allDigits(whole) || point && !allDigits(frac) {
		return fmt.Errorf("%q is no amount of money: write it like 1.20", remote.Short(text, 40))
	}
	*m = money(text)
	return nil
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// thing is a snapshot or a leftover as a line prints it.
type thing struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	PerMonth money  `json:"per_month"`
	Currency string `json:"currency"`
}

// parseSnapshot reads a snapshot line's output; where it prints nothing, the wanted
// name is all that there is.
func parseSnapshot(out []byte, name string) (Snapshot, error) {
	text := strings.TrimSpace(string(out))
	s := Snapshot{ID: name, Name: name}
	switch {
	case text == "":
	case strings.HasPrefix(text, "{"):
		var t thing
		if err := decodeOne([]byte(text), &t); err != nil {
			return Snapshot{}, err
		}
		s.PerMonth, s.Currency = string(t.PerMonth), remote.Short(t.Currency, 8)
		if t.ID != "" {
			s.ID = remote.Short(t.ID, 200)
		}
		if t.Name != "" {
			s.Name = remote.Short(t.Name, 200)
		}
	case strings.ContainsAny(text, " \t\r\n"):
		return Snapshot{}, fmt.Errorf("it printed %q: print the snapshot's id alone, or JSON", remote.Short(text, 60))
	default:
		s.ID = remote.Short(text, 200)
	}
	return s, nil
}

// parseLeftovers reads a JSON list. Nothing printed is not an empty list: what
// goes on costing is then not known.
func parseLeftovers(out []byte) ([]Leftover, error) {
	var things []thing
	if err := decodeOne(out, &things); err != nil {
		return nil, err
	}
	list := make([]Leftover, 0, len(things))
	for _, t := range things {
		id := t.ID
		if id == "" {
			id = t.Name
		}
		if t.Kind == "" || id == "" {
			return nil, errors.New(`a leftover has no "kind" or no "id"`)
		}
		list = append(list, Leftover{Kind: remote.Short(t.Kind, 40), ID: remote.Short(id, 200), PerMonth: string(t.PerMonth), Currency: remote.Short(t.Currency, 8)})
	}
	return list, nil
}

// decodeOne reads exactly one JSON value.
func decodeOne(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("its output is not the JSON expected: %v", remote.Short(err.Error(), 200))
	}
	if d.More() {
		return errors.New("its output goes on after the JSON: print one value only")
	}
	return nil
}
