package provider

// RunPod's REST API v2, https://docs.runpod.io/api-reference-v2 (v1 is retired).
// A stopped pod costs nothing for compute, which the API shows as cost 0, while
// its volume costs twice what it did: https://docs.runpod.io/pods/pricing

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type runPod struct{ *web }

// What a gigabyte of a stopped pod's volume costs a month, in dollars.
func runPodStoppedGB() *big.Rat { return big.NewRat(20, 100) }

func newRunPod(o Options) (driver, error) {
	w, err := newWeb("runpod", "https://api.runpod.io", o, bearer)
	return runPod{w}, err
}

func (runPod) Kind() string { return "runpod" }

func (runPod) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true,
		StopKeepsCharging: "the volume goes on costing, at twice its price ($0.20 a GB and month), and the container disk is wiped; with an empty balance the pod is deleted",
		StopMayLose:       "the pod stays on its host, where the GPU may be rented to another before you start again"}
}

func (runPod) checkID(id string) string { return idOf(id, lettersDigits+"-_") }

type runPodPod struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Status  string      `json:"status"`
	Cost    json.Number `json:"cost"`
	Locked  bool        `json:"locked"`
	Region  *string     `json:"dataCenterId"`
	Created time.Time   `json:"createdAt"`
	Started *time.Time  `json:"startedAt"`
	GPU     *struct {
		ID    string `json:"id"`
		Count int    `json:"count"`
	} `json:"gpu"`
	SSH struct {
		Direct *runPodSSH `json:"direct"`
		Proxy  *runPodSSH `json:"proxy"`
	} `json:"ssh"`
	Mounts struct {
		Persistent *struct {
			Size int64 `json:"size"`
		} `json:"persistent"`
		Network []struct {
			VolumeID string `json:"volumeId"`
		} `json:"network"`
	} `json:"mounts"`
}

type runPodSSH struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Username string `json:"username"`
}

func (p runPodPod) instance() Instance {
	in := Instance{ID: p.ID, Name: text(p.Name), Currency: "USD", PerHour: price(amount(p.Cost)), CreatedAt: p.Created.UTC()}
	in.Status = Status{State: Unknown, Detail: text(p.Status)}
	charged := in.PerHour != ""
	in.Status.Billed = &charged
	switch p.Status {
	case "PROVISIONING", "STARTING":
		in.Status.State = Changing
	case "RUNNING":
		in.Status.State = Running
		if p.Started != nil {
			in.Status.StartedAt = p.Started.UTC()
		}
	case "EXITED":
		in.Status.State = Stopped
	case "TERMINATED":
		in.Status.State = Gone
	}
	if !charged && in.Status.State != Stopped && in.Status.State != Gone {
		in.Status.Billed = nil // a running pod without a price: not told
	}
	if p.Region != nil {
		in.Region = text(*p.Region)
	}
	if p.GPU != nil {
		in.GPU, in.GPUs = text(p.GPU.ID), max(p.GPU.Count, 1)
	}
	if v := p.Mounts.Persistent; v != nil {
		in.WhileStopped = price(times(runPodStoppedGB(), v.Size, hoursInMonth))
	}
	switch d, x := p.SSH.Direct, p.SSH.Proxy; {
	case d != nil:
		in.Address = address(d.Host, d.Port, d.Username)
	case x != nil && in.Status.State == Running:
		in.Address = address(x.Host, x.Port, x.Username)
		in.Address.ShellOnly = true
	}
	return in
}

func (r runPod) pod(ctx context.Context, id string) (runPodPod, error) {
	var p runPodPod
	err := r.do(ctx, call{method: http.MethodGet, path: "/v2/pods/" + url.PathEscape(id)}, &p)
	return p, err
}

func (r runPod) pods(ctx context.Context) ([]runPodPod, error) {
	var l struct {
		Pods *[]runPodPod `json:"pods"`
	}
	if err := r.do(ctx, call{method: http.MethodGet, path: "/v2/pods", query: url.Values{"includeClusterPods": {"true"}}}, &l); err != nil {
		return nil, err
	}
	if l.Pods == nil {
		return nil, errNoList
	}
	return *l.Pods, nil
}

func (r runPod) get(ctx context.Context, id string) (Instance, error) {
	p, err := r.pod(ctx, id)
	return p.instance(), err
}

func (r runPod) list(ctx context.Context) ([]Instance, error) {
	pods, err := r.pods(ctx)
	out := make([]Instance, 0, len(pods))
	for _, p := range pods {
		out = append(out, p.instance())
	}
	return out, err
}

func (r runPod) action(ctx context.Context, id, action string) error {
	return r.do(ctx, call{method: http.MethodPost, path: "/v2/pods/" + url.PathEscape(id) + "/action", body: map[string]string{"action": action}}, nil)
}

func (r runPod) start(ctx context.Context, in Instance) error { return r.action(ctx, in.ID, "start") }
func (r runPod) stop(ctx context.Context, in Instance) error  { return r.action(ctx, in.ID, "stop") }

func (r runPod) destroy(ctx context.Context, in Instance) error {
	return r.do(ctx, call{method: http.MethodDelete, path: "/v2/pods/" + url.PathEscape(in.ID)}, nil)
}

// leftovers are the pod's own volume, and network volumes: those of this pod, or
// once it is gone those that hang on no pod at all.
func (r runPod) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	var list []Leftover
	pods, err := r.pods(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{} // by other pods
	mine := map[string]bool{}
	for _, p := range pods {
		for _, n := range p.Mounts.Network {
			if p.ID == in.ID {
				mine[n.VolumeID] = true
			} else {
				used[n.VolumeID] = true
			}
		}
		if v := p.Mounts.Persistent; p.ID == in.ID && v != nil && after == Stopped {
			list = append(list, Leftover{Kind: "volume", ID: in.ID, PerMonth: price(times(runPodStoppedGB(), v.Size, 1)), Currency: "USD",
				Note: strconv.FormatInt(v.Size, 10) + " GB on the pod's host"})
		}
	}
	var l struct {
		Volumes *[]struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			Size int64  `json:"size"`
		} `json:"networkVolumes"`
	}
	if err := r.do(ctx, call{method: http.MethodGet, path: "/v2/network-volumes"}, &l); err != nil {
		return nil, err
	}
	if l.Volumes == nil {
		return nil, errNoList
	}
	for _, v := range *l.Volumes {
		if mine[v.ID] || in.Status.State == Gone && !used[v.ID] {
			list = append(list, Leftover{Kind: "network volume", ID: text(v.ID), Name: text(v.Name), Currency: "USD", Note: strconv.FormatInt(v.Size, 10) + " GB"})
		}
	}
	return list, nil
}

func (runPod) balance(context.Context) (Balance, error) { return Balance{}, ErrUnsupported }

func (runPod) snapshot(context.Context, Instance, string) (Snapshot, error) {
	return Snapshot{}, ErrUnsupported
}

func (runPod) snapshotState(context.Context, string) (SnapshotState, error) {
	return SnapshotState{}, ErrUnsupported
}

// errNoList: an answer without its list is not an empty account.
var errNoList = errors.New("the answer has no list; nothing is known")

const lettersDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// idOf says what is wrong with an id that becomes part of a path.
func idOf(id, allowed string) string {
	if len(id) > 100 || strings.Trim(id, allowed) != "" {
		return "this is no id of the provider's: copy it from its console or from rentop import"
	}
	return ""
}
