package provider

// Tencent Cloud CVM 2017-03-12, https://cloud.tencent.com/document/api/213; how it is
// asked is in tencent_wire.go. A stop keeps charging unless STOP_CHARGING is asked
// for, which is ignored (or refused) where it is not supported: what became of it is
// StopChargingMode. What an instance leaves is in tencent_left.go.

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"strings"
)

type tencent struct {
	*web
	own bool // the hosts are Tencent's own
}

const (
	tencentHome = "ap-guangzhou" // where questions without a region are asked
	tencentPage = 100
	cvmVersion  = "2017-03-12" // of cvm, cbs and vpc alike
)

func newTencent(o Options) (driver, error) {
	w, err := newWeb("tencent", "https://cvm.tencentcloudapi.com", o, nil)
	if err != nil {
		return nil, err
	}
	tencentCodes().read(w, func(status int, body []byte) (int, string, string) {
		code, said := tencentError(body)
		if strings.HasPrefix(code, "Internal") {
			status = http.StatusInternalServerError
		}
		return status, code, said
	})
	return tencent{w, o.Base == ""}, nil
}

func (tencent) Kind() string { return "tencent" }

func (tencent) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "its disks, bandwidth and a kept address go on costing; where no charge when shut down is not possible (subscriptions, local disks, some kinds) a stop ends no charge at all, which is told after it",
		StopMayLose:       "the machine is given back, there may be none when you start again (ResourceInsufficient), and the public address is another"}
}

func (tencent) checkID(id string) string { return checkPlaced(id, "ins-") }

type tencentDisk struct {
	ID   string `json:"DiskId"`
	Size int64  `json:"DiskSize"`
	Type string `json:"DiskType"`
}

type tencentInstance struct {
	ID        string   `json:"InstanceId"`
	Name      string   `json:"InstanceName"`
	State     string   `json:"InstanceState"`
	Mode      string   `json:"StopChargingMode"`
	Restrict  string   `json:"RestrictState"`
	Charge    string   `json:"InstanceChargeType"`
	Type      string   `json:"InstanceType"`
	Image     string   `json:"ImageId"`
	OS        string   `json:"OsName"`
	Created   string   `json:"CreatedTime"`
	Expires   string   `json:"ExpiredTime"`
	IPs       []string `json:"PublicIpAddresses"`
	Placement struct {
		Zone string
	}
	GPU *struct {
		Count json.Number `json:"GPUCount"`
		Type  string      `json:"GPUType"`
	} `json:"GPUInfo"`
	System tencentDisk `json:"SystemDisk"`
}

// instance: of one that is stopped, only STOP_CHARGING says that it is not charged.
func (v tencentInstance) instance(region string) Instance {
	in := Instance{ID: region + "/" + v.ID, Name: text(v.Name), Region: text(region), GPU: text(v.Type), CreatedAt: isoTime(v.Created), Spot: v.Charge == "SPOTPAID", read: &v}
	if v.GPU != nil {
		if v.GPU.Type != "" {
			in.GPU = text(v.GPU.Type)
		}
		if n := amount(v.GPU.Count); n != nil && n.IsInt() && n.Cmp(big.NewRat(1024, 1)) <= 0 { // a part of a card is no count
			in.GPUs = int(n.Num().Int64())
		}
	}
	if v.Charge == "PREPAID" {
		in.Ends = isoTime(v.Expires)
	}
	in.Status = Status{State: Unknown, Detail: text(v.State)}
	switch v.State {
	case "PENDING", "STARTING", "STOPPING", "REBOOTING", "TERMINATING":
		in.Status.State = Changing
	case "SHUTDOWN": // in the recycle bin, to be destroyed
		in.Status.State, in.Status.Detail = Changing, "SHUTDOWN, in the recycle bin"
	case "RUNNING":
		in.Status.State, in.Status.Billed = Running, yes()
	case "STOPPED":
		in.Status.State, in.Status.Billed, in.Status.Detail = Stopped, yes(), text("STOPPED, "+v.Mode)
		if v.Mode == "STOP_CHARGING" {
			in.Status.Billed = no()
		}
	}
	if v.Restrict != "" && v.Restrict != "NORMAL" {
		in.Status.Detail = text(in.Status.Detail + ", " + v.Restrict)
	}
	user := "root"
	if strings.Contains(strings.ToLower(v.OS), "ubuntu") {
		user = "ubuntu"
	}
	switch {
	case len(v.IPs) > 0:
		in.Address = address(v.IPs[0], 22, user)
	case v.State == "RUNNING":
		in.NoAddress = "it has no public address"
	}
	return in
}

func (t tencent) instances(ctx context.Context, region string, in map[string]any) ([]Instance, error) {
	found, err := tencentPages[tencentInstance](ctx, t, region, "cvm", "DescribeInstances", "InstanceSet", in)
	if err != nil {
		return nil, err
	}
	out := make([]Instance, 0, len(found))
	for _, v := range found {
		out = append(out, v.instance(region))
	}
	return out, nil
}

func (t tencent) get(ctx context.Context, id string) (Instance, error) {
	region, own := placed(id)
	found, err := t.instances(ctx, region, map[string]any{"InstanceIds": []string{own}})
	if err != nil {
		return Instance{}, err
	}
	if len(found) == 0 {
		return Instance{}, errAbsent
	}
	return found[0], nil
}

func (t tencent) listRegion(ctx context.Context, region string) ([]Instance, error) {
	return t.instances(ctx, region, nil)
}

func (t tencent) listAround(ctx context.Context, id string) ([]Instance, error) {
	region, _ := placed(id)
	return t.listRegion(ctx, region)
}

func (t tencent) list(ctx context.Context) ([]Instance, error) {
	var answer struct {
		Set []struct{ Region, RegionState string } `json:"RegionSet"`
	}
	if err := t.ask(ctx, tencentHome, "cvm", "DescribeRegions", nil, &answer); err != nil {
		return nil, err
	}
	var regions []string
	for _, r := range answer.Set {
		if r.RegionState == "AVAILABLE" {
			regions = append(regions, r.Region)
		}
	}
	return everywhere(ctx, regions, t.listRegion)
}

// detail adds the price an hour of a machine like this one, its system disk in it.
// One whose price falls after 96 h or more has no single price, and none is told.
func (t tencent) detail(ctx context.Context, in *Instance) error {
	v, ok := in.read.(*tencentInstance)
	if !ok || v.Charge != "POSTPAID_BY_HOUR" {
		return nil
	}
	var answer struct {
		Price struct {
			Instance struct {
				Unit   string      `json:"ChargeUnit"`
				First  json.Number `json:"UnitPriceDiscount"`
				Second json.Number `json:"UnitPriceDiscountSecondStep"`
				Third  json.Number `json:"UnitPriceDiscountThirdStep"`
			} `json:"InstancePrice"`
		}
	}
	region, _ := placed(in.ID)
	like := map[string]any{"Placement": map[string]any{"Zone": v.Placement.Zone}, "ImageId": v.Image, "InstanceChargeType": v.Charge, "InstanceType": v.Type,
		"SystemDisk": map[string]any{"DiskType": v.System.Type, "DiskSize": v.System.Size}}
	if t.ask(ctx, region, "cvm", "InquiryPriceRunInstances", like, &answer) != nil {
		return ctx.Err() // without its price it is told too
	}
	p := answer.Price.Instance
	one := func(step json.Number) bool { // 0 is no step
		s, first := amount(step), amount(p.First)
		return s == nil || s.Sign() == 0 || first != nil && s.Cmp(first) == 0
	}
	if p.Unit == "HOUR" && one(p.Second) && one(p.Third) {
		in.PerHour, in.Currency = price(amount(p.First)), "CNY"
	}
	return nil
}

// act makes a change of one instance. No answer says more than that it was accepted.
func (t tencent) act(ctx context.Context, in Instance, action string, more map[string]any) error {
	region, own := placed(in.ID)
	body := map[string]any{"InstanceIds": []string{own}}
	for k, v := range more {
		body[k] = v
	}
	var answer struct{}
	return t.request(acting(ctx), region, "cvm", cvmVersion, action, body, &answer)
}

func (t tencent) start(ctx context.Context, in Instance) error {
	return t.act(ctx, in, "StartInstances", nil)
}

// stop asks the system to shut down: what is not written yet would be lost by
// cutting the power.
func (t tencent) stop(ctx context.Context, in Instance) error {
	return t.act(ctx, in, "StopInstances", map[string]any{"StopType": "SOFT", "StoppedMode": "STOP_CHARGING"})
}

func (t tencent) destroy(ctx context.Context, in Instance) error {
	return t.act(ctx, in, "TerminateInstances", nil)
}

// balance is in hundredths of a yuan.
func (t tencent) balance(ctx context.Context) (Balance, error) {
	var answer struct {
		Real json.Number `json:"RealBalance"`
		Old  json.Number `json:"Balance"`
	}
	if err := t.request(asking(ctx), tencentHome, "billing", "2018-07-09", "DescribeAccountBalance", nil, &answer); err != nil {
		return Balance{}, err
	}
	left := amount(answer.Real)
	if left == nil {
		left = amount(answer.Old)
	}
	if left == nil {
		return Balance{}, errors.New("the answer has no balance; nothing is known")
	}
	return Balance{Cash: decimal(times(left, 1, 100)), Currency: "CNY"}, nil
}
