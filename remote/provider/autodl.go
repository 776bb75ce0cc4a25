package provider

// AutoDL's Pro API, https://www.autodl.com/docs/instance_pro_api/ (standard
// instances are not in it: they stay plain SSH). Errors come inside HTTP 200,
// money in thousandths of a yuan, an instance is released only when it is shut
// down, and its port and password may be new after each power cycle.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"rentop/remote"
)

type autoDL struct{ *web }

const (
	autoDLPage    = 50
	autoDLPoll    = 3 * time.Second
	autoDLPolls   = 60 // for a shutdown, before a release
	autoDLKept    = 15 * 24 * time.Hour
	autoDLSuccess = "Success"
)

func newAutoDL(o Options) (driver, error) {
	w, err := newWeb("autodl", "https://api.autodl.com", o, func(h http.Header, key string) {
		h.Set(authorityKey, key) // without Bearer
	})
	if err == nil {
		w.refusal = autoDLRefusal
	}
	return autoDL{w}, err
}

func (autoDL) Kind() string { return "autodl" }

func (autoDL) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "an enlarged disk goes on costing, and 15 days after the stop the instance is released with its data",
		StopMayLose:       "there may be no free GPU when you start again, and this API cannot start without one"}
}

func (autoDL) checkID(id string) string { return idOf(id, lettersDigits+"-_") }

// autoDLRefusal reads errors that come with HTTP 200. Where the code says no, the
// state decides: what was wanted may be so already.
func autoDLRefusal(status int, body []byte) error {
	var answer struct {
		Code *string `json:"code"`
		Msg  string  `json:"msg"`
	}
	if status != http.StatusOK {
		return nil
	}
	if json.Unmarshal(body, &answer) != nil || answer.Code == nil {
		return errors.New("the answer has no code; nothing is known")
	}
	if *answer.Code != autoDLSuccess {
		return refused("it refused: " + remote.Short(*answer.Code+" "+answer.Msg, 200))
	}
	return nil
}

// autoDLTime is Go's sql.NullTime as JSON.
type autoDLTime struct {
	Time  time.Time
	Valid bool
}

func (t autoDLTime) time() time.Time {
	if !t.Valid || t.Time.Year() < 2000 {
		return time.Time{}
	}
	return t.Time.UTC()
}

type autoDLInstance struct {
	UUID    string     `json:"uuid"`
	Name    *string    `json:"name"`
	Status  string     `json:"status"`
	Region  string     `json:"region_sign"`
	GPUs    int        `json:"req_gpu_amount"`
	Spec    string     `json:"gpu_spec_uuid"`
	Created time.Time  `json:"created_at"`
	Started autoDLTime `json:"started_at"`
	Stopped autoDLTime `json:"stopped_at"`
	Expired autoDLTime `json:"expired_at"`
}

func (a autoDLInstance) instance() Instance {
	in := Instance{ID: a.UUID, Region: text(a.Region), GPU: text(a.Spec), GPUs: a.GPUs, Currency: "CNY", CreatedAt: a.Created.UTC(), Ends: a.Expired.time()}
	if a.Name != nil {
		in.Name = text(*a.Name)
	}
	in.Status = Status{State: Unknown, Detail: text(a.Status)}
	yes, no := true, false
	switch a.Status {
	case "creating", "starting", "shutting_down", "releasing":
		in.Status.State = Changing
	case "running":
		in.Status.State, in.Status.Billed, in.Status.StartedAt = Running, &yes, a.Started.time()
	case "shutdown":
		in.Status.State, in.Status.Billed = Stopped, &no
		if t := a.Stopped.time(); !t.IsZero() && in.Ends.IsZero() {
			in.Ends = t.Add(autoDLKept)
		}
	case "released":
		in.Status.State = Gone
	}
	return in
}

// pages reads a whole list, which the API gives by POST.
func (a autoDL) pages(ctx context.Context, path string, take func(json.RawMessage) (int, error)) error {
	for n, got := 1, 0; n <= maxPages; n++ {
		var answer struct {
			Data *struct {
				List    json.RawMessage `json:"list"`
				MaxPage int             `json:"max_page"`
				Total   *int            `json:"result_total"`
			} `json:"data"`
		}
		body := map[string]int{"page_index": n, "page_size": autoDLPage}
		if err := a.do(asking(ctx), call{method: http.MethodPost, path: path, body: body}, &answer); err != nil {
			return err
		}
		if answer.Data == nil || answer.Data.List == nil {
			return errNoList
		}
		count, err := take(answer.Data.List)
		if err != nil {
			return errNoList
		}
		if got += count; n >= answer.Data.MaxPage {
			if answer.Data.Total != nil && *answer.Data.Total != got {
				return fmt.Errorf("the list has %d entries of %d; nothing is known", got, *answer.Data.Total)
			}
			return nil
		}
	}
	return errManyPages
}

func (a autoDL) list(ctx context.Context) ([]Instance, error) {
	var out []Instance
	err := a.pages(ctx, "/api/v1/dev/instance/pro/list", func(raw json.RawMessage) (int, error) {
		var page []autoDLInstance
		err := json.Unmarshal(raw, &page)
		for _, one := range page {
			out = append(out, one.instance())
		}
		return len(page), err
	})
	return out, err
}

// get looks into the list: what the API says of one instance that it does not
// have is not documented.
func (a autoDL) get(ctx context.Context, id string) (Instance, error) {
	all, err := a.list(ctx)
	if err != nil {
		return Instance{}, err
	}
	for _, in := range all {
		if in.ID == id {
			return in, nil
		}
	}
	return Instance{}, errAbsent
}

// detail adds what only a running instance tells. The price is that of one card
// or of all; nothing documents which, so it is told for one card only.
func (a autoDL) detail(ctx context.Context, in *Instance) error {
	if in.Status.State != Running {
		return nil
	}
	var answer struct {
		Data struct {
			Price    json.Number `json:"payg_price"`
			GPU      string      `json:"snapshot_gpu_alias_name"`
			Host     string      `json:"proxy_host"`
			Port     int         `json:"ssh_port"`
			Password string      `json:"root_password"`
		} `json:"data"`
	}
	err := a.do(ctx, call{method: http.MethodGet, path: "/api/v1/dev/instance/pro/snapshot", query: url.Values{"instance_uuid": {in.ID}}}, &answer)
	if err != nil {
		return err
	}
	d := answer.Data
	if d.GPU != "" {
		in.GPU = text(d.GPU)
	}
	if in.GPUs == 1 {
		in.PerHour = price(times(amount(d.Price), 1, 1000))
	}
	if in.Address = address(d.Host, d.Port, "root"); in.Address.Host != "" {
		in.Address.Password = Secret(d.Password)
	}
	return nil
}

func (a autoDL) action(ctx context.Context, what string, body map[string]string) error {
	return a.do(ctx, call{method: http.MethodPost, path: "/api/v1/dev/instance/pro/" + what, body: body}, nil)
}

func (a autoDL) start(ctx context.Context, in Instance) error {
	return a.action(ctx, "power_on", map[string]string{"instance_uuid": in.ID, "payload": "gpu"})
}

func (a autoDL) stop(ctx context.Context, in Instance) error {
	return a.action(ctx, "power_off", map[string]string{"instance_uuid": in.ID})
}

// destroy shuts down first where it must: only what is shut down is released. A
// power-off of an instance that still boots is accepted and then not done, so
// its end is read back.
func (a autoDL) destroy(ctx context.Context, in Instance) error {
	if in.Status.State != Stopped {
		if err := a.stop(ctx, in); err != nil {
			return err
		}
		for n := 0; in.Status.State != Stopped; n++ {
			if n == autoDLPolls {
				return fmt.Errorf("it accepted the shutdown, which must come first, and is still %q; it was not released", in.Status.Detail)
			}
			if err := a.sleep(ctx, autoDLPoll); err != nil {
				return fmt.Errorf("it was told to shut down, which must come first, and was not released: %w", err)
			}
			next, err := a.get(ctx, in.ID)
			if err != nil {
				return fmt.Errorf("it was told to shut down, which must come first, and was not released: %w", err)
			}
			in = next
		}
	}
	return a.action(ctx, "release", map[string]string{"instance_uuid": in.ID})
}

type autoDLImage struct {
	UUID   string `json:"image_uuid"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

func (a autoDL) imagesOf(ctx context.Context) ([]autoDLImage, error) {
	var out []autoDLImage
	err := a.pages(ctx, "/api/v1/dev/instance/pro/image/private/list", func(raw json.RawMessage) (int, error) {
		var page []autoDLImage
		err := json.Unmarshal(raw, &page)
		out = append(out, page...)
		return len(page), err
	})
	return out, err
}

// snapshot names the image after its instance too, since the API does not say
// where an image came from; the same again is the same image.
func (a autoDL) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	full := name + " (" + in.ID + ")"
	images, err := a.imagesOf(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	for _, im := range images {
		if im.Name == full {
			return Snapshot{ID: text(im.UUID), Name: text(im.Name), Currency: "CNY"}, nil
		}
	}
	var answer struct {
		Data struct {
			UUID string `json:"image_uuid"`
		} `json:"data"`
	}
	body := map[string]string{"instance_uuid": in.ID, "image_name": full}
	if err := a.do(ctx, call{method: http.MethodPost, path: "/api/v1/dev/instance/pro/image/save", body: body}, &answer); err != nil {
		return Snapshot{}, err
	}
	if answer.Data.UUID == "" {
		return Snapshot{}, errors.New("the answer names no image; look in the console")
	}
	return Snapshot{ID: text(answer.Data.UUID), Name: text(full), Currency: "CNY"}, nil
}

func (a autoDL) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	images, err := a.imagesOf(ctx)
	if err != nil {
		return SnapshotState{}, err
	}
	for _, im := range images {
		if im.UUID == id {
			return SnapshotState{Ready: im.Status == "finished", Detail: text(im.Status)}, nil
		}
	}
	return SnapshotState{}, errAbsent
}

func (a autoDL) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	var list []Leftover
	if after == Stopped && in.Status.State != Gone {
		list = append(list, Leftover{Kind: "disk", ID: in.ID, Currency: "CNY", Note: "only what the disk was enlarged by is charged; released with its data 15 days after the stop"})
	}
	images, err := a.imagesOf(ctx)
	if err != nil {
		return nil, err
	}
	for _, im := range images {
		if strings.HasSuffix(im.Name, "("+in.ID+")") {
			list = append(list, Leftover{Kind: "image", ID: text(im.UUID), Name: text(im.Name), Currency: "CNY", Note: "charged where the account's free space is used up"})
		}
	}
	return list, nil
}

func (a autoDL) balance(ctx context.Context) (Balance, error) {
	var answer struct {
		Data struct {
			Assets  json.Number `json:"assets"`
			Voucher json.Number `json:"voucher_balance"`
		} `json:"data"`
	}
	if err := a.do(asking(ctx), call{method: http.MethodPost, path: "/api/v1/dev/wallet/balance", body: struct{}{}}, &answer); err != nil {
		return Balance{}, err
	}
	cash := times(amount(answer.Data.Assets), 1, 1000)
	if cash == nil {
		return Balance{}, errors.New("the answer has no balance; nothing is known")
	}
	return Balance{Cash: decimal(cash), Credit: decimal(times(amount(answer.Data.Voucher), 1, 1000)), Currency: "CNY"}, nil
}
