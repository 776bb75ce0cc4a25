package provider

// Lambda Cloud's API v1, https://docs-api.lambda.ai. There is no stop: an
// instance is billed by the minute from its first health check until it is
// terminated, and its file systems afterwards too.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type lambda struct{ *web }

// What a GiB of a file system costs a month, in dollars, mounted or not:
// https://docs.lambda.ai/public-cloud/billing
func lambdaGiB() *big.Rat { return big.NewRat(20, 100) }

func newLambda(o Options) (driver, error) {
	w, err := newWeb("lambda", "https://cloud.lambda.ai/api/v1", o, func(h http.Header, key string) {
		r := http.Request{Header: h}
		r.SetBasicAuth(key, "") // the key is the user, without a password
	})
	return lambda{w}, err
}

func (lambda) Kind() string { return "lambda" }

func (lambda) Can() Can { return Can{Destroy: true} }

func (lambda) checkID(id string) string { return idOf(id, lettersDigits+"-_") }

type lambdaType struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Cents       json.Number `json:"price_cents_per_hour"`
}

type lambdaInstance struct {
	ID          string     `json:"id"`
	Name        *string    `json:"name"`
	IP          *string    `json:"ip"`
	Status      string     `json:"status"`
	Type        lambdaType `json:"instance_type"`
	FileSystems []string   `json:"file_system_names"`
	Region      struct {
		Name string `json:"name"`
	} `json:"region"`
}

func (l lambdaInstance) instance() Instance {
	in := Instance{ID: l.ID, Region: text(l.Region.Name), Currency: "USD", PerHour: price(times(amount(l.Type.Cents), 1, 100))}
	if l.Name != nil {
		in.Name = text(*l.Name)
	}
	if l.IP != nil {
		in.Address = address(*l.IP, 22, "ubuntu")
	}
	in.GPU, in.GPUs = lambdaGPU(l.Type)
	in.Status = Status{State: Unknown, Detail: text(l.Status)}
	yes, no := true, false
	switch l.Status {
	case "booting":
		in.Status.State, in.Status.Billed = Changing, &no
	case "active":
		in.Status.State, in.Status.Billed = Running, &yes
	case "terminating":
		in.Status.State = Changing
	case "terminated":
		in.Status.State = Gone
	}
	return in
}

// lambdaGPU reads "gpu_8x_h100_sxm5" and "8x H100 (80 GB SXM5)".
func lambdaGPU(t lambdaType) (name string, count int) {
	n, _, ok := strings.Cut(strings.TrimPrefix(t.Name, "gpu_"), "x_")
	count, err := strconv.Atoi(n)
	if !ok || err != nil || count < 1 || count > 1024 {
		return text(t.Description), 0
	}
	name = strings.TrimPrefix(t.Description, n+"x ")
	if name == "" {
		name = t.Name
	}
	return text(name), count
}

func (l lambda) get(ctx context.Context, id string) (Instance, error) {
	var answer struct {
		Data lambdaInstance `json:"data"`
	}
	if err := l.do(ctx, call{method: http.MethodGet, path: "/instances/" + url.PathEscape(id)}, &answer); err != nil {
		return Instance{}, err
	}
	return answer.Data.instance(), nil
}

func (l lambda) all(ctx context.Context) ([]lambdaInstance, error) {
	var answer struct {
		Data *[]lambdaInstance `json:"data"`
	}
	if err := l.do(ctx, call{method: http.MethodGet, path: "/instances"}, &answer); err != nil {
		return nil, err
	}
	if answer.Data == nil {
		return nil, errNoList
	}
	return *answer.Data, nil
}

// list adds the prices of the types where the instances do not have their own.
func (l lambda) list(ctx context.Context) ([]Instance, error) {
	all, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	var types struct {
		Data map[string]struct {
			Type lambdaType `json:"instance_type"`
		} `json:"data"`
	}
	if slices.ContainsFunc(all, func(i lambdaInstance) bool { return i.Type.Cents == "" }) {
		// Without the prices the list is still the list.
		_ = l.do(ctx, call{method: http.MethodGet, path: "/instance-types"}, &types)
	}
	out := make([]Instance, 0, len(all))
	for _, one := range all {
		if one.Type.Cents == "" {
			one.Type.Cents = types.Data[one.Type.Name].Type.Cents
		}
		out = append(out, one.instance())
	}
	return out, nil
}

// destroy is accepted where the answer names the instance.
func (l lambda) destroy(ctx context.Context, in Instance) error {
	var answer struct {
		Data struct {
			Terminated []struct {
				ID string `json:"id"`
			} `json:"terminated_instances"`
		} `json:"data"`
	}
	body := map[string][]string{"instance_ids": {in.ID}}
	if err := l.do(ctx, call{method: http.MethodPost, path: "/instance-operations/terminate", body: body}, &answer); err != nil {
		return err
	}
	if len(answer.Data.Terminated) != 1 || answer.Data.Terminated[0].ID != in.ID {
		return fmt.Errorf("the answer names %d instances and not this one; look in the console", len(answer.Data.Terminated))
	}
	return nil
}

// leftovers are the file systems that this instance has, or once it is gone those
// that no instance has.
func (l lambda) leftovers(ctx context.Context, in Instance, _ State) ([]Leftover, error) {
	all, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	mine, others := map[string]bool{}, map[string]bool{}
	for _, one := range all {
		for _, fs := range one.FileSystems {
			if one.ID == in.ID {
				mine[fs] = true
			} else if one.Status != "terminated" {
				others[fs] = true
			}
		}
	}
	var answer struct {
		Data *[]struct {
			ID    string      `json:"id"`
			Name  string      `json:"name"`
			Bytes json.Number `json:"bytes_used"`
		} `json:"data"`
	}
	if err := l.do(ctx, call{method: http.MethodGet, path: "/file-systems"}, &answer); err != nil {
		return nil, err
	}
	if answer.Data == nil {
		return nil, errNoList
	}
	var list []Leftover
	for _, fs := range *answer.Data {
		if mine[fs.Name] || in.Status.State == Gone && !others[fs.Name] {
			month := times(amount(fs.Bytes), 1, 1<<30)
			if month != nil {
				month.Mul(month, lambdaGiB())
			}
			list = append(list, Leftover{Kind: "file system", ID: text(fs.ID), Name: text(fs.Name), PerMonth: price(month), Currency: "USD", Note: "billed by what it holds, mounted or not"})
		}
	}
	return list, nil
}

func (lambda) start(context.Context, Instance) error    { return ErrUnsupported }
func (lambda) stop(context.Context, Instance) error     { return ErrUnsupported }
func (lambda) balance(context.Context) (Balance, error) { return Balance{}, ErrUnsupported }

func (lambda) snapshot(context.Context, Instance, string) (Snapshot, error) {
	return Snapshot{}, ErrUnsupported
}

func (lambda) snapshotState(context.Context, string) (SnapshotState, error) {
	return SnapshotState{}, ErrUnsupported
}
