package provider

// DigitalOcean's API v2 through its own client, godo. A droplet that is off costs
// as much as one that runs. What a droplet would leave behind, and what that
// costs, is told by destroy_with_associated_resources.

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"time"

	"github.com/digitalocean/godo"
)

type digitalOcean struct {
	*web
	api *godo.Client
}

const (
	oceanPage  = 200
	oceanPoll  = 5 * time.Second
	oceanPolls = 120 // for a snapshot to be listed
)

func newDigitalOcean(o Options) (driver, error) {
	w, err := newWeb("digitalocean", "https://api.digitalocean.com", o, bearer)
	if err != nil {
		return nil, err
	}
	api, err := godo.New(w.http, godo.SetBaseURL(w.base+"/"))
	return digitalOcean{w, api}, err
}

func (digitalOcean) Kind() string { return "digitalocean" }

func (digitalOcean) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "a droplet that is off costs as much as one that runs: only destroying it ends the cost"}
}

func (digitalOcean) checkID(id string) string {
	if len(id) > 18 {
		return idOf("?", "0123456789")
	}
	return idOf(id, "0123456789")
}

// said makes an error of the client's one of ours, without its URL.
func (d digitalOcean) said(err error) error {
	var r *godo.ErrorResponse
	if !errors.As(err, &r) || r.Response == nil {
		var syntax *json.SyntaxError
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &wrong) {
			return errors.New("the answer is not what its documentation says; nothing is known")
		}
		return plain(err)
	}
	said := message([]byte(r.Message))
	return d.hide(statusError(r.Response.StatusCode, r.Response.Header, said))
}

func oceanInstance(v godo.Droplet) Instance {
	in := Instance{ID: strconv.Itoa(v.ID), Name: text(v.Name), Currency: "USD", CreatedAt: isoTime(v.Created)}
	if v.Region != nil {
		in.Region = text(v.Region.Slug)
	}
	in.GPU = text(v.SizeSlug)
	if v.Size != nil {
		in.PerHour = price(new(big.Rat).SetFloat64(v.Size.PriceHourly))
		if g := v.Size.GPUInfo; g != nil {
			in.GPU, in.GPUs = text(g.Model), g.Count
		}
	}
	in.WhileStopped = in.PerHour
	in.Status = Status{State: Unknown, Detail: text(v.Status)}
	yes := true
	switch v.Status {
	case "new":
		in.Status.State = Changing
	case "active":
		in.Status.State, in.Status.Billed = Running, &yes
	case "off":
		in.Status.State, in.Status.Billed = Stopped, &yes
	}
	if in.Status.Billed != nil {
		in.Status.StartedAt = in.CreatedAt // since then it is charged without a pause
	}
	if ip, err := v.PublicIPv4(); err == nil {
		in.Address = address(ip, 22, "root")
	}
	return in
}

// id is checked by checkID.
func oceanID(id string) int { n, _ := strconv.Atoi(id); return n }

func (d digitalOcean) get(ctx context.Context, id string) (Instance, error) {
	v, _, err := d.api.Droplets.Get(ctx, oceanID(id))
	if err != nil {
		return Instance{}, d.said(err)
	}
	if v == nil {
		return Instance{}, errors.New("the answer has no droplet; nothing is known")
	}
	return oceanInstance(*v), nil
}

// whole reads all pages of a list and counts them.
func whole[T any](d digitalOcean, list func(*godo.ListOptions) ([]T, *godo.Response, error)) ([]T, error) {
	var out []T
	for n := 1; n <= maxPages; n++ {
		page, resp, err := list(&godo.ListOptions{Page: n, PerPage: oceanPage})
		if err != nil {
			return nil, d.said(err)
		}
		if page == nil {
			return nil, errNoList
		}
		out = append(out, page...)
		if resp.Links == nil || resp.Links.IsLastPage() {
			if resp.Meta != nil && resp.Meta.Total != len(out) {
				return nil, errors.New("the list is shorter than it says; nothing is known")
			}
			return out, nil
		}
	}
	return nil, errManyPages
}

// list reads two lists: the usual one leaves out droplets with a GPU.
func (d digitalOcean) list(ctx context.Context) ([]Instance, error) {
	all, err := whole(d, func(o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) { return d.api.Droplets.List(ctx, o) })
	if err != nil {
		return nil, err
	}
	gpus, err := whole(d, func(o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return d.api.Droplets.ListWithGPUs(ctx, o)
	})
	if err != nil {
		return nil, err
	}
	var out []Instance
	have := map[int]bool{}
	for _, v := range append(gpus, all...) {
		if !have[v.ID] {
			out = append(out, oceanInstance(v))
		}
		have[v.ID] = true
	}
	return out, nil
}

func (d digitalOcean) start(ctx context.Context, in Instance) error {
	_, _, err := d.api.DropletActions.PowerOn(ctx, oceanID(in.ID))
	return d.said(err)
}

// stop asks the system to shut down: what is not written yet would be lost by
// cutting the power.
func (d digitalOcean) stop(ctx context.Context, in Instance) error {
	_, _, err := d.api.DropletActions.Shutdown(ctx, oceanID(in.ID))
	return d.said(err)
}

func (d digitalOcean) destroy(ctx context.Context, in Instance) error {
	_, err := d.api.Droplets.Delete(ctx, oceanID(in.ID))
	return d.said(err)
}

func (d digitalOcean) snapshotsOf(ctx context.Context, id string) ([]godo.Snapshot, error) {
	all, err := whole(d, func(o *godo.ListOptions) ([]godo.Snapshot, *godo.Response, error) {
		return d.api.Snapshots.ListDroplet(ctx, o)
	})
	var mine []godo.Snapshot
	for _, s := range all {
		if s.ResourceID == id {
			mine = append(mine, s)
		}
	}
	return mine, err
}

func (d digitalOcean) named(ctx context.Context, id, name string) (Snapshot, bool, error) {
	mine, err := d.snapshotsOf(ctx, id)
	for _, s := range mine {
		if s.Name == name {
			return Snapshot{ID: text(s.ID), Name: text(s.Name), Currency: "USD"}, true, nil
		}
	}
	return Snapshot{}, false, err
}

// snapshot waits until it is listed, since the request is answered without its
// id. The same name again is the same snapshot, and one under way is waited for.
func (d digitalOcean) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	s, ok, err := d.named(ctx, in.ID, name)
	if ok || err != nil {
		return s, err
	}
	under, err := d.snapshotting(ctx, in.ID)
	if err != nil {
		return Snapshot{}, err
	}
	if !under {
		if _, _, err := d.api.DropletActions.Snapshot(ctx, oceanID(in.ID), name); err != nil {
			return Snapshot{}, d.said(err)
		}
	}
	for range oceanPolls {
		if s, ok, err = d.named(ctx, in.ID, name); ok || err != nil {
			return s, err
		}
		if err := d.sleep(ctx, oceanPoll); err != nil {
			return Snapshot{}, err
		}
	}
	return Snapshot{}, errors.New("the snapshot was accepted and is not listed yet; ask again later")
}

// snapshotting says whether a snapshot of the droplet is being made.
func (d digitalOcean) snapshotting(ctx context.Context, id string) (bool, error) {
	actions, _, err := d.api.Droplets.Actions(ctx, oceanID(id), &godo.ListOptions{PerPage: 20})
	if err != nil {
		return false, d.said(err)
	}
	for _, a := range actions {
		if a.Type == "snapshot" && a.Status == godo.ActionInProgress {
			return true, nil
		}
	}
	return false, nil
}

func (d digitalOcean) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	if why := d.checkID(id); why != "" {
		return SnapshotState{}, errors.New(why)
	}
	image, _, err := d.api.Images.GetByID(ctx, oceanID(id))
	if err != nil {
		return SnapshotState{}, d.said(err)
	}
	return SnapshotState{Ready: image.Status == "available", Detail: text(image.Status)}, nil
}

func (d digitalOcean) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	if in.Status.State == Gone {
		return d.orphans(ctx, in.ID)
	}
	var list []Leftover
	if after == Stopped {
		month := new(big.Rat)
		if p, ok := new(big.Rat).SetString(in.PerHour); ok {
			month = times(p, hoursInMonth, 1)
		}
		list = append(list, Leftover{Kind: "instance", ID: in.ID, Name: in.Name, PerMonth: price(month), Currency: "USD", Note: "off, it costs as much as running"})
	}
	r, _, err := d.api.Droplets.ListAssociatedResourcesForDeletion(ctx, oceanID(in.ID))
	if err != nil {
		return nil, d.said(err)
	}
	add := func(kind string, of []*godo.DropletAssociatedResource) {
		for _, one := range of {
			if one != nil {
				list = append(list, Leftover{Kind: kind, ID: text(one.ID), Name: text(one.Name), PerMonth: price(amount(json.Number(one.Cost))), Currency: "USD"})
			}
		}
	}
	add("ip", r.ReservedIPs)
	if len(r.ReservedIPs) == 0 { // the same under their old name
		add("ip", r.FloatingIPs)
	}
	add("snapshot", r.Snapshots)
	add("volume", r.Volumes)
	add("volume snapshot", r.VolumeSnapshots)
	return list, nil
}

// orphans are what a destroyed droplet may have left: its snapshots, and volumes
// and addresses that no droplet has.
func (d digitalOcean) orphans(ctx context.Context, id string) ([]Leftover, error) {
	mine, err := d.snapshotsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []Leftover
	for _, s := range mine {
		list = append(list, Leftover{Kind: "snapshot", ID: text(s.ID), Name: text(s.Name), Currency: "USD"})
	}
	volumes, err := whole(d, func(o *godo.ListOptions) ([]godo.Volume, *godo.Response, error) {
		return d.api.Storage.ListVolumes(ctx, &godo.ListVolumeParams{ListOptions: o})
	})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		if len(v.DropletIDs) == 0 {
			list = append(list, Leftover{Kind: "volume", ID: text(v.ID), Name: text(v.Name), Currency: "USD", Note: strconv.FormatInt(v.SizeGigaBytes, 10) + " GB, on no droplet"})
		}
	}
	ips, err := whole(d, func(o *godo.ListOptions) ([]godo.ReservedIP, *godo.Response, error) {
		return d.api.ReservedIPs.List(ctx, o)
	})
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		if ip.Droplet == nil {
			list = append(list, Leftover{Kind: "ip", ID: text(ip.IP), Currency: "USD", Note: "on no droplet"})
		}
	}
	return list, nil
}

// balance: the API tells what is owed this month; what is left is its opposite.
func (d digitalOcean) balance(ctx context.Context) (Balance, error) {
	b, _, err := d.api.Balance.Get(ctx)
	if err != nil {
		return Balance{}, d.said(err)
	}
	owed := amount(json.Number(b.MonthToDateBalance))
	if owed == nil {
		return Balance{}, errors.New("the answer has no balance; nothing is known")
	}
	return Balance{Cash: decimal(owed.Neg(owed)), Currency: "USD"}, nil
}
