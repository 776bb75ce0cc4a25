package provider

// Vast.ai's REST API, https://docs.vast.ai/api-reference. A stopped instance
// keeps its disk, which goes on costing, and gives its GPU away. Refusals for
// the rate come as plain text, errors may come inside a 200.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"rentop/remote"
)

type vast struct{ *web }

func newVast(o Options) (driver, error) {
	w, err := newWeb("vast", "https://console.vast.ai", o, bearer)
	return vast{w}, err
}

func (vast) Kind() string { return "vast" }

func (vast) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true,
		StopKeepsCharging: "the disk goes on costing, more than while it runs, and so does its traffic; after the contract's end it may be deleted within 48 hours",
		StopMayLose:       "the GPU may be rented to another, and the instance then waits until it is free"}
}

func (vast) checkID(id string) string { return idOf(id, "0123456789") }

type vastInstance struct {
	ID       json.Number `json:"id"`
	Label    *string     `json:"label"`
	Actual   *string     `json:"actual_status"`
	Intended string      `json:"intended_status"`
	Current  string      `json:"cur_state"`
	Next     string      `json:"next_state"`
	Start    float64     `json:"start_date"`
	End      float64     `json:"end_date"`
	GPU      string      `json:"gpu_name"`
	GPUs     int         `json:"num_gpus"`
	Where    string      `json:"geolocation"`
	PerHour  json.Number `json:"dph_total"`
	Bid      bool        `json:"is_bid"`
	PublicIP string      `json:"public_ipaddr"`
	SSHHost  string      `json:"ssh_host"`
	SSHPort  int         `json:"ssh_port"`
	// Ports is an object of lists in one answer and a list of numbers in another.
	Ports json.RawMessage `json:"ports"`
}

func (v vastInstance) instance() Instance {
	in := Instance{ID: string(v.ID), GPU: text(v.GPU), GPUs: v.GPUs, Region: text(v.Where), Spot: v.Bid, Currency: "USD", Ends: unix(v.End)}
	if v.Label != nil {
		in.Name = text(*v.Label)
	}
	in.Status = v.status()
	if s := in.Status.State; s == Running || s == Changing {
		in.PerHour = price(amount(v.PerHour)) // stopped, it is another price
	}
	if in.Status.State == Running {
		in.Status.StartedAt = unix(v.Start)
	}
	if in.Status.State != Stopped {
		in.Address = v.address()
	}
	return in
}

// status takes what the contract is (cur_state, next_state) and what the container
// says (actual_status) together: only where they agree is anything told. An
// instance whose container ended still pays for its GPU.
func (v vastInstance) status() Status {
	actual := ""
	if v.Actual != nil {
		actual = *v.Actual
	}
	s := Status{State: Unknown, Detail: text(actual)}
	if s.Detail == "" {
		s.Detail = text(v.Current)
	}
	yes, no := true, false
	switch {
	case v.Next != "" && v.Next != v.Current, v.Intended != "" && v.Intended != v.Current:
		s.State = Changing
	case v.Current == "stopped" && (actual == "exited" || actual == "stopped" || actual == "inactive" || actual == ""):
		s.State, s.Billed = Stopped, &no
	case v.Current == "running" && actual == "running":
		s.State, s.Billed = Running, &yes
	case v.Current == "running" && (actual == "loading" || actual == "created" || actual == "scheduling" || actual == ""):
		s.State = Changing
	case v.Current == "running" && actual == "exited":
		s.Detail = "exited, while its contract runs"
	}
	return s
}

// address is the direct one where there is one: the proxy is slow for files.
func (v vastInstance) address() Address {
	var ports map[string][]struct {
		HostPort json.Number `json:"HostPort"`
	}
	if json.Unmarshal(v.Ports, &ports) == nil {
		for _, p := range ports["22/tcp"] {
			if n, err := strconv.Atoi(string(p.HostPort)); err == nil && n > 0 {
				if a := address(v.PublicIP, n, "root"); a.Host != "" {
					return a
				}
			}
		}
	}
	return address(v.SSHHost, v.SSHPort, "root")
}

// unix is a time of seconds since 1970; zero where it is not possible.
func unix(s float64) time.Time {
	if math.IsNaN(s) || s < 946684800 || s > 7258118400 { // 2000 to 2200
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

func (v vast) get(ctx context.Context, id string) (Instance, error) {
	var answer struct {
		Instance json.RawMessage `json:"instances"` // null where there is none
	}
	if err := v.do(ctx, call{method: http.MethodGet, path: vastPath(id)}, &answer); err != nil {
		return Instance{}, err
	}
	if bytes.Equal(answer.Instance, []byte("null")) {
		return Instance{}, errAbsent
	}
	var one vastInstance
	if json.Unmarshal(answer.Instance, &one) != nil || one.ID == "" {
		return Instance{}, errors.New("the answer has no instance; nothing is known")
	}
	return one.instance(), nil
}

func vastPath(id string) string { return "/api/v0/instances/" + url.PathEscape(id) + "/" }

func (v vast) list(ctx context.Context) ([]Instance, error) {
	var out []Instance
	query := url.Values{"limit": {"25"}}
	for range maxPages {
		var page struct {
			Success   *bool           `json:"success"`
			Total     *int            `json:"total_instances"`
			Next      *string         `json:"next_token"`
			Instances *[]vastInstance `json:"instances"`
		}
		if err := v.do(ctx, call{method: http.MethodGet, path: "/api/v1/instances/", query: query}, &page); err != nil {
			return nil, err
		}
		if page.Instances == nil || page.Success != nil && !*page.Success {
			return nil, errNoList
		}
		for _, one := range *page.Instances {
			out = append(out, one.instance())
		}
		if page.Next == nil || *page.Next == "" {
			if page.Total != nil && *page.Total != len(out) {
				return nil, fmt.Errorf("the list has %d instances of %d; nothing is known", len(out), *page.Total)
			}
			return out, nil
		}
		query.Set("after_token", *page.Next)
	}
	return nil, errManyPages
}

// change makes a request whose answer says inside a 200 whether it was accepted.
func (v vast) change(ctx context.Context, method, id string, body any) error {
	var answer struct {
		Success *bool  `json:"success"`
		Msg     string `json:"msg"`
		Error   string `json:"error"`
	}
	if err := v.do(ctx, call{method: method, path: vastPath(id), body: body}, &answer); err != nil {
		return err
	}
	if answer.Success == nil || !*answer.Success {
		return v.hide(fmt.Errorf("it was not accepted: %s", remote.Short(answer.Error+" "+answer.Msg, 200)))
	}
	return nil
}

func (v vast) start(ctx context.Context, in Instance) error {
	return v.change(ctx, http.MethodPut, in.ID, map[string]string{"state": "running"})
}

func (v vast) stop(ctx context.Context, in Instance) error {
	return v.change(ctx, http.MethodPut, in.ID, map[string]string{"state": "stopped"})
}

func (v vast) destroy(ctx context.Context, in Instance) error {
	return v.change(ctx, http.MethodDelete, in.ID, nil)
}

// leftovers are the disk of a stopped instance, and volumes: those of this
// instance, or once it is gone those of none. Their price is in no documented
// unit, so it is not told.
func (v vast) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	var list []Leftover
	if after == Stopped && in.Status.State != Gone {
		list = append(list, Leftover{Kind: "disk", ID: in.ID, Note: "its price while stopped is in the console"})
	}
	var answer struct {
		Volumes *[]struct {
			ID        json.Number `json:"id"`
			Disk      json.Number `json:"disk_space"`
			Instances []struct {
				ID json.Number `json:"id"`
			} `json:"instances"`
		} `json:"volumes"`
	}
	if err := v.do(ctx, call{method: http.MethodGet, path: "/api/v0/volumes/"}, &answer); err != nil {
		return nil, err
	}
	if answer.Volumes == nil {
		return nil, errNoList
	}
	for _, vol := range *answer.Volumes {
		of := len(vol.Instances) == 0 && in.Status.State == Gone
		for _, user := range vol.Instances {
			of = of || string(user.ID) == in.ID
		}
		if of {
			list = append(list, Leftover{Kind: "volume", ID: text(string(vol.ID)), Note: text(string(vol.Disk)) + " GB"})
		}
	}
	return list, nil
}

func (v vast) balance(ctx context.Context) (Balance, error) {
	var user struct {
		Balance json.Number `json:"balance"`
		Credit  json.Number `json:"credit"`
	}
	if err := v.do(ctx, call{method: http.MethodGet, path: "/api/v0/users/current/"}, &user); err != nil {
		return Balance{}, err
	}
	cash := amount(user.Balance)
	if cash == nil {
		return Balance{}, errors.New("the answer has no balance; nothing is known")
	}
	return Balance{Cash: decimal(cash), Credit: decimal(amount(user.Credit)), Currency: "USD"}, nil
}

func (vast) snapshot(context.Context, Instance, string) (Snapshot, error) {
	return Snapshot{}, ErrUnsupported
}

func (vast) snapshotState(context.Context, string) (SnapshotState, error) {
	return SnapshotState{}, ErrUnsupported
}

// errManyPages bounds a list that never ends.
var errManyPages = errors.New("the list has too many pages; nothing is known")
