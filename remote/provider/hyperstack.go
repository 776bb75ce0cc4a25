package provider

// Hyperstack's Infrahub API v1, https://docs.hyperstack.cloud. Start, stop and
// hibernate are GETs that act, so they are never repeated. A machine that is shut
// off (SHUTOFF) is charged in full: a stop here is a hibernation, which leaves
// the root disk and the address to pay.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type hyperstack struct{ *web }

const hyperstackPage = 100

func newHyperstack(o Options) (driver, error) {
	w, err := newWeb("hyperstack", "https://infrahub-api.nexgencloud.com/v1", o, func(h http.Header, key string) {
		h.Set("api_key", key)
	})
	return hyperstack{w}, err
}

func (hyperstack) Kind() string { return "hyperstack" }

func (hyperstack) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "a stop hibernates it: the root disk and a kept address go on costing. A machine that was shut off in the console or from inside is charged in full",
		StopMayLose:       "the GPU is given back, there may be none when you start again, and the address may be another"}
}

func (hyperstack) checkID(id string) string { return idOf(id, "0123456789") }

type hyperstackVM struct {
	ID          json.Number `json:"id"`
	Name        string      `json:"name"`
	Status      string      `json:"status"`
	Created     string      `json:"created_at"`
	FloatingIP  *string     `json:"floating_ip"`
	RandomPort  bool        `json:"port_randomization"`
	Environment struct {
		Region string `json:"region"`
	} `json:"environment"`
	Flavor struct {
		GPU      string         `json:"gpu"`
		GPUs     int            `json:"gpu_count"`
		Features map[string]any `json:"features"`
	} `json:"flavor"`
	Volumes []struct {
		Volume struct {
			ID       json.Number `json:"id"`
			Name     string      `json:"name"`
			Size     int64       `json:"size"`
			Bootable bool        `json:"bootable"`
		} `json:"volume"`
	} `json:"volume_attachments"`
}

func (v hyperstackVM) instance() Instance {
	in := Instance{ID: string(v.ID), Name: text(v.Name), GPU: text(v.Flavor.GPU), GPUs: v.Flavor.GPUs, Region: text(v.Environment.Region), Currency: "USD", CreatedAt: isoTime(v.Created)}
	in.Status = Status{State: Unknown, Detail: text(v.Status)}
	yes, no := true, false
	switch v.Status {
	case "ACTIVE":
		in.Status.State, in.Status.Billed = Running, &yes
	case "SHUTOFF":
		in.Status.State, in.Status.Billed = Stopped, &yes
	case "HIBERNATED":
		in.Status.State, in.Status.Billed = Stopped, &no
	case "DELETED":
		in.Status.State = Gone
	default:
		if ParseState(v.Status) == Changing || v.Status == "RESTORING" || v.Status == "BUILD" {
			in.Status.State = Changing
		}
	}
	switch {
	case v.FloatingIP == nil || *v.FloatingIP == "":
		in.NoAddress = "it has no public address"
	case v.RandomPort:
		in.NoAddress = "its SSH port is a random one, which the API does not tell: take it from the console"
	default:
		in.Address = address(*v.FloatingIP, 22, "ubuntu")
	}
	return in
}

// isoTime reads a time with or without its zone, which is UTC.
func isoTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 2000 {
			return t.UTC()
		}
	}
	return time.Time{}
}

func hyperstackPath(id, action string) string {
	return "/core/virtual-machines/" + url.PathEscape(id) + action
}

// hyperstackStatus is in each answer; false is an error inside a 200.
type hyperstackStatus struct {
	Status  *bool  `json:"status"`
	Message string `json:"message"`
}

func (h hyperstack) accepted(s hyperstackStatus) error {
	if s.Status == nil || !*s.Status {
		return h.hide(fmt.Errorf("it was not accepted: %s", text(s.Message)))
	}
	return nil
}

func (h hyperstack) vm(ctx context.Context, id string) (hyperstackVM, error) {
	var answer struct {
		VM *hyperstackVM `json:"instance"`
	}
	if err := h.do(ctx, call{method: http.MethodGet, path: hyperstackPath(id, "")}, &answer); err != nil {
		return hyperstackVM{}, err
	}
	if answer.VM == nil {
		return hyperstackVM{}, errors.New("the answer has no instance; nothing is known")
	}
	return *answer.VM, nil
}

func (h hyperstack) get(ctx context.Context, id string) (Instance, error) {
	vm, err := h.vm(ctx, id)
	return vm.instance(), err
}

// hyperstackPages reads a whole list of things under a name.
func hyperstackPages[T any](ctx context.Context, h hyperstack, path, name string) ([]T, error) {
	var out []T
	for n := 1; n <= maxPages; n++ {
		var answer map[string]json.RawMessage
		query := url.Values{"page": {strconv.Itoa(n)}, "pageSize": {strconv.Itoa(hyperstackPage)}}
		if err := h.do(ctx, call{method: http.MethodGet, path: path, query: query}, &answer); err != nil {
			return nil, err
		}
		var page *[]T
		var count int
		if json.Unmarshal(answer[name], &page) != nil || page == nil {
			return nil, errNoList
		}
		if out = append(out, *page...); len(*page) == hyperstackPage {
			continue
		}
		if json.Unmarshal(answer["count"], &count) == nil && count > len(out) {
			return nil, fmt.Errorf("the list has %d entries of %d; nothing is known", len(out), count)
		}
		return out, nil
	}
	return nil, errManyPages
}

// list adds the prices of the pricebook, by the name of the card: the rest of the
// machine is in it.
func (h hyperstack) list(ctx context.Context) ([]Instance, error) {
	vms, err := hyperstackPages[hyperstackVM](ctx, h, "/core/virtual-machines", "instances")
	if err != nil {
		return nil, err
	}
	var book []struct {
		Name  string      `json:"name"`
		Value json.Number `json:"value"`
	}
	// Without the prices the list is still the list.
	_ = h.do(ctx, call{method: http.MethodGet, path: "/pricebook"}, &book)
	out := make([]Instance, 0, len(vms))
	for _, vm := range vms {
		in := vm.instance()
		for _, p := range book {
			if in.GPU != "" && p.Name == in.GPU && in.GPUs > 0 {
				in.PerHour = price(times(amount(p.Value), int64(in.GPUs), 1))
			}
		}
		out = append(out, in)
	}
	return out, nil
}

// do1 makes one of the GETs that act, once.
func (h hyperstack) do1(ctx context.Context, id, action string) error {
	var s hyperstackStatus
	if err := h.do(acting(ctx), call{method: http.MethodGet, path: hyperstackPath(id, action)}, &s); err != nil {
		return err
	}
	return h.accepted(s)
}

func (h hyperstack) start(ctx context.Context, in Instance) error {
	if in.Status.Detail == "HIBERNATED" {
		return h.do1(ctx, in.ID, "/hibernate-restore")
	}
	return h.do1(ctx, in.ID, "/start")
}

// stopsFurther: what is only shut off is charged in full.
func (hyperstack) stopsFurther(in Instance) bool { return in.Status.Detail == "SHUTOFF" }

func (h hyperstack) stop(ctx context.Context, in Instance) error {
	vm, err := h.vm(ctx, in.ID)
	if err != nil {
		return err
	}
	if no, _ := vm.Flavor.Features["no_hibernation"].(bool); no {
		return errors.New("this kind of machine cannot hibernate, and shut off it would be charged in full: only destroying it ends the cost")
	}
	return h.do1(ctx, in.ID, "/hibernate")
}

func (h hyperstack) destroy(ctx context.Context, in Instance) error {
	var s hyperstackStatus
	if err := h.do(ctx, call{method: http.MethodDelete, path: hyperstackPath(in.ID, "")}, &s); err != nil {
		return err
	}
	return h.accepted(s)
}

type hyperstackSnapshot struct {
	ID     json.Number `json:"id"`
	Name   string      `json:"name"`
	VM     json.Number `json:"vm_id"`
	Size   int64       `json:"size"`
	Status string      `json:"status"`
}

func (h hyperstack) snapshotsOf(ctx context.Context, id string) ([]hyperstackSnapshot, error) {
	all, err := hyperstackPages[hyperstackSnapshot](ctx, h, "/core/snapshots", "snapshots")
	var mine []hyperstackSnapshot
	for _, s := range all {
		if string(s.VM) == id {
			mine = append(mine, s)
		}
	}
	return mine, err
}

// snapshot: the same name again is the same snapshot.
func (h hyperstack) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	name = plainName(name)
	mine, err := h.snapshotsOf(ctx, in.ID)
	if err != nil {
		return Snapshot{}, err
	}
	for _, s := range mine {
		if s.Name == name {
			return Snapshot{ID: string(s.ID), Name: text(s.Name), Currency: "USD"}, nil
		}
	}
	var answer struct {
		hyperstackStatus
		Snapshot hyperstackSnapshot `json:"snapshot"`
	}
	body := map[string]string{"name": name, "description": "made by rentop before a release"}
	if err := h.do(ctx, call{method: http.MethodPost, path: hyperstackPath(in.ID, "/snapshots"), body: body}, &answer); err != nil {
		return Snapshot{}, err
	}
	if err := h.accepted(answer.hyperstackStatus); err != nil {
		return Snapshot{}, err
	}
	if answer.Snapshot.ID == "" {
		return Snapshot{}, errors.New("the answer names no snapshot; look in the console")
	}
	return Snapshot{ID: string(answer.Snapshot.ID), Name: name, Currency: "USD"}, nil
}

// plainName keeps what every service takes in a name.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(lettersDigits+"-_.", r) {
			return r
		}
		return '-'
	}, name)
	name = strings.Trim(name, "-")
	if len(name) > 50 {
		name = name[:50]
	}
	return name
}

func (h hyperstack) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	if why := h.checkID(id); why != "" {
		return SnapshotState{}, errors.New(why)
	}
	all, err := hyperstackPages[hyperstackSnapshot](ctx, h, "/core/snapshots", "snapshots")
	if err != nil {
		return SnapshotState{}, err
	}
	for _, s := range all {
		if string(s.ID) == id {
			ready := strings.EqualFold(s.Status, "SUCCESS") || strings.EqualFold(s.Status, "ACTIVE") || strings.EqualFold(s.Status, "AVAILABLE")
			return SnapshotState{Ready: ready, Failed: strings.EqualFold(s.Status, "ERROR") || strings.EqualFold(s.Status, "FAILED"), Detail: text(s.Status)}, nil
		}
	}
	return SnapshotState{}, errAbsent
}

// leftovers are volumes and snapshots of the machine, once it is gone the volumes
// that nothing has, and the root disk and the address of a stopped one.
func (h hyperstack) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	var list []Leftover
	add := func(kind, id, name, note string) {
		list = append(list, Leftover{Kind: kind, ID: text(id), Name: text(name), Currency: "USD", Note: note})
	}
	if after == Stopped && in.Status.State != Gone {
		add("disk", in.ID, "", "the root disk goes on costing")
		if in.Address.Host != "" {
			add("ip", in.Address.Host, "", "the address goes on costing where it is kept")
		}
	}
	volumes, err := hyperstackPages[struct {
		ID          json.Number `json:"id"`
		Name        string      `json:"name"`
		Size        int64       `json:"size"`
		Attachments []struct {
			VM json.Number `json:"instance_id"`
		} `json:"attachments"`
	}](ctx, h, "/core/volumes", "volumes")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		of := len(v.Attachments) == 0 && in.Status.State == Gone
		for _, a := range v.Attachments {
			of = of || string(a.VM) == in.ID
		}
		if of {
			add("volume", string(v.ID), v.Name, strconv.FormatInt(v.Size, 10)+" GB")
		}
	}
	snapshots, err := h.snapshotsOf(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range snapshots {
		add("snapshot", string(s.ID), s.Name, strconv.FormatInt(s.Size, 10)+" GB")
	}
	for i, l := range list {
		if l.Kind == "volume" || l.Kind == "snapshot" {
			list[i].PerMonth = h.monthly(ctx, l.Kind, l.ID)
		}
	}
	return list, nil
}

// monthly is what the price calculator says of a resource, where its two prices
// agree; "" where it says nothing: what is there is told without its price too.
func (h hyperstack) monthly(ctx context.Context, kind, id string) string {
	var answer struct {
		Bill struct {
			Resource struct {
				Price  json.Number `json:"price"`
				Actual json.Number `json:"actual_price"`
			} `json:"resource"`
		} `json:"calculated_resource_bills"`
	}
	if h.do(ctx, call{method: http.MethodGet, path: "/pricebook/calculate/resource/" + kind + "/" + url.PathEscape(id)}, &answer) != nil {
		return ""
	}
	a, b := amount(answer.Bill.Resource.Price), amount(answer.Bill.Resource.Actual)
	if a == nil || b == nil || a.Cmp(b) != 0 {
		return ""
	}
	return price(times(a, hoursInMonth, 1))
}

func (h hyperstack) balance(ctx context.Context) (Balance, error) {
	var answer struct {
		Data struct {
			Credit json.Number `json:"credit"`
		} `json:"data"`
	}
	if err := h.do(ctx, call{method: http.MethodGet, path: "/billing/user-credit/credit"}, &answer); err != nil {
		return Balance{}, err
	}
	cash := amount(answer.Data.Credit)
	if cash == nil {
		return Balance{}, errors.New("the answer has no credit; nothing is known")
	}
	return Balance{Cash: decimal(cash), Currency: "USD"}, nil
}
