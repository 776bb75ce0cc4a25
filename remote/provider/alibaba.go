package provider

// Alibaba Cloud ECS 2014-05-26, https://www.alibabacloud.com/help/en/ecs/developer-reference/,
// with the V3 signature of sign_acs3.go. A stop asks for StopCharging, which is
// silently ignored where it is not supported: what became of it is StoppedMode.
// What an instance leaves is in alibaba_left.go.

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

type alibaba struct {
	*web
	own bool // the hosts are Alibaba's own
}

const (
	alibabaHome = "cn-hangzhou" // the region that tells the others
	alibabaPage = "100"
)

// alibabaAPI is a service of the same form: its host and its version.
type alibabaAPI struct{ host, version string }

func ecsOf(region string) alibabaAPI {
	return alibabaAPI{"ecs." + region + ".aliyuncs.com", "2014-05-26"}
}

// alibabaCodes: https://www.alibabacloud.com/help/en/ecs/developer-reference/error-codes
func alibabaCodes() codes {
	return codes{
		absent: []string{"InvalidInstanceId.NotFound", "InvalidImageId.NotFound"},
		state:  []string{"IncorrectInstanceStatus", "InvalidInstance.NotSupported", "InstanceExpiredOrInArrears", "InvalidImageName.Duplicated", "OperationDenied.InstanceStatus"},
		stock:  []string{"OperationDenied.NoStock", "InvalidResourceType.NotSupported", "Zone.NotOnSale"},
		key:    []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurityToken", "IncompleteSignature"},
		rights: []string{"Forbidden", "NoPermission", "NotAuthorized", "OperationDenied.NoPermission"},
		clock:  []string{"InvalidTimeStamp", "IllegalTimestamp"},
		slow:   []string{"Throttling"},
	}
}

func newAlibaba(o Options) (driver, error) {
	w, err := newWeb("alibaba", "https://"+ecsOf(alibabaHome).host, o, nil)
	if err != nil {
		return nil, err
	}
	w.sign = func(r *http.Request, key string) error {
		p, err := pairOf(key)
		if err != nil {
			return err
		}
		signACS3(r, p, o.Now(), nonce())
		return nil
	}
	alibabaCodes().read(w, func(status int, body []byte) (int, string, string) {
		if status < 300 {
			return status, "", "" // some good answers have a Code, too
		}
		code, said := alibabaError(body)
		return status, code, said
	})
	return alibaba{w, o.Base == ""}, nil
}

func alibabaError(body []byte) (code, said string) {
	var v struct{ Code, Message string }
	if json.Unmarshal(body, &v) != nil {
		return "", ""
	}
	return v.Code, v.Message
}

func (alibaba) Kind() string { return "alibaba" }

func (alibaba) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "its disks and an elastic address go on costing; where no-charge-when-stopped is not possible (subscriptions, local disks, some kinds) a stop ends no charge at all, which is told after it",
		StopMayLose:       "the machine is given back, there may be none when you start again (OperationDenied.NoStock), and a fixed public address is another"}
}

func (alibaba) checkID(id string) string { return checkPlaced(id, "i-") }

// request asks a service for an action. Of GET and POST, which are the same to it,
// POST is what its own clients send.
func (a alibaba) request(ctx context.Context, at alibabaAPI, action string, in []string, out any) error {
	query := url.Values{}
	for i := 0; i+1 < len(in); i += 2 {
		query.Set(in[i], in[i+1])
	}
	base := a.base
	if a.own {
		base = "https://" + at.host
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/?"+query.Encode(), nil)
	if err != nil {
		return errors.New("the request could not be made")
	}
	req.Header.Set("Accept", contentJSON)
	req.Header.Set("x-acs-action", action)
	req.Header.Set("x-acs-version", at.version)
	body, err := a.exchange(req)
	if err != nil {
		return err
	}
	var v struct{ RequestId string } // each answer has it
	if err := json.Unmarshal(body, &v); err != nil || v.RequestId == "" {
		return errors.New("the answer is not what its documentation says; nothing is known")
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer is not what its documentation says (%s); nothing is known", remote.Short(shape(err), 120))
	}
	return nil
}

func (a alibaba) ask(ctx context.Context, at alibabaAPI, action string, out any, in ...string) error {
	return a.request(asking(ctx), at, action, in, out)
}

// alibabaPages reads a whole list, {"Names": {"Name": […]}}. Pages are numbered, or
// each names the next.
func alibabaPages[T any](ctx context.Context, a alibaba, at alibabaAPI, action, names, name string, numbered bool, in ...string) ([]T, error) {
	var out []T
	next := ""
	for n := 1; n <= maxPages; n++ {
		more := append(in[:len(in):len(in)], "MaxResults", alibabaPage)
		if numbered {
			more = append(in[:len(in):len(in)], "PageNumber", fmt.Sprint(n), "PageSize", alibabaPage)
		} else if next != "" {
			more = append(more, "NextToken", next)
		}
		var answer map[string]json.RawMessage
		if err := a.ask(ctx, at, action, &answer, more...); err != nil {
			return nil, err
		}
		var page map[string]*[]T
		if json.Unmarshal(answer[names], &page) != nil || page[name] == nil {
			return nil, errNoList
		}
		out = append(out, *page[name]...)
		var total int
		next = ""
		_ = json.Unmarshal(answer["NextToken"], &next) // absent, it is the last
		counted := json.Unmarshal(answer["TotalCount"], &total) == nil
		switch {
		case numbered && counted && len(out) < total && len(*page[name]) > 0, !numbered && next != "":
			continue
		case numbered && (!counted || len(out) < total):
			return nil, fmt.Errorf("the list has %d entries of %d; nothing is known", len(out), total)
		}
		return out, nil
	}
	return nil, errManyPages
}

type alibabaInstance struct {
	ID       string `json:"InstanceId"`
	Name     string `json:"InstanceName"`
	Region   string `json:"RegionId"`
	Zone     string `json:"ZoneId"`
	Type     string `json:"InstanceType"`
	State    string `json:"Status"`
	Mode     string `json:"StoppedMode"`
	Charge   string `json:"InstanceChargeType"`
	Spot     string `json:"SpotStrategy"`
	GPUs     int    `json:"GPUAmount"`
	GPU      string `json:"GPUSpec"`
	Created  string `json:"CreationTime"`
	Started  string `json:"StartTime"`
	Expires  string `json:"ExpiredTime"`
	Releases string `json:"AutoReleaseTime"`
	Public   struct {
		IP []string `json:"IpAddress"`
	} `json:"PublicIpAddress"`
	Elastic struct {
		ID string `json:"AllocationId"`
		IP string `json:"IpAddress"`
	} `json:"EipAddress"`
}

// alibabaTime reads a time that may lack its seconds; 2099 is never.
func alibabaTime(s string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04Z07:00", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 2000 && t.Year() < 2099 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// instance: of one that is stopped, only StopCharging says that it is not charged.
func (v alibabaInstance) instance(region string) Instance {
	in := Instance{ID: region + "/" + v.ID, Name: text(v.Name), Region: text(region), GPU: text(v.GPU), GPUs: v.GPUs, CreatedAt: alibabaTime(v.Created), Ends: alibabaTime(v.Releases),
		Spot: v.Spot != "" && v.Spot != "NoSpot", read: &v}
	if in.GPU == "" {
		in.GPU = text(v.Type)
	}
	if v.Charge == "PrePaid" && in.Ends.IsZero() {
		in.Ends = alibabaTime(v.Expires)
	}
	in.Status = Status{State: Unknown, Detail: text(v.State)}
	switch v.State {
	case "Pending", "Starting", "Stopping":
		in.Status.State = Changing
	case "Running":
		in.Status.State, in.Status.Billed, in.Status.StartedAt = Running, yes(), alibabaTime(v.Started)
	case "Stopped":
		in.Status.State, in.Status.Billed, in.Status.Detail = Stopped, yes(), text("Stopped, "+v.Mode)
		if v.Mode == "StopCharging" {
			in.Status.Billed = no()
		}
	}
	ip := v.Elastic.IP
	if ip == "" && len(v.Public.IP) > 0 {
		ip = v.Public.IP[0]
	}
	if in.Address = address(ip, 22, "root"); ip == "" && v.State == "Running" {
		in.NoAddress = "it has no public address"
	}
	return in
}

func (a alibaba) instances(ctx context.Context, region string, in ...string) ([]Instance, error) {
	found, err := alibabaPages[alibabaInstance](ctx, a, ecsOf(region), "DescribeInstances", "Instances", "Instance", false, append(in, "RegionId", region)...)
	if err != nil {
		return nil, err
	}
	out := make([]Instance, 0, len(found))
	for _, v := range found {
		out = append(out, v.instance(region))
	}
	return out, nil
}

// get: of an id that it does not have, the API gives an empty list.
func (a alibaba) get(ctx context.Context, id string) (Instance, error) {
	region, own := placed(id)
	found, err := a.instances(ctx, region, "InstanceIds", `["`+own+`"]`)
	if err != nil {
		return Instance{}, err
	}
	if len(found) == 0 {
		return Instance{}, errAbsent
	}
	return found[0], nil
}

func (a alibaba) listRegion(ctx context.Context, region string) ([]Instance, error) {
	return a.instances(ctx, region)
}

func (a alibaba) listAround(ctx context.Context, id string) ([]Instance, error) {
	region, _ := placed(id)
	return a.listRegion(ctx, region)
}

func (a alibaba) list(ctx context.Context) ([]Instance, error) {
	var answer struct {
		Regions struct {
			Region []struct {
				ID string `json:"RegionId"`
			}
		}
	}
	if err := a.ask(ctx, ecsOf(alibabaHome), "DescribeRegions", &answer); err != nil {
		return nil, err
	}
	var regions []string
	for _, r := range answer.Regions.Region {
		regions = append(regions, r.ID)
	}
	return everywhere(ctx, regions, a.listRegion)
}

// detail adds what the kind of machine costs an hour, without its disks, which cost
// on while it is stopped. Subscriptions have no price an hour.
func (a alibaba) detail(ctx context.Context, in *Instance) error {
	v, ok := in.read.(*alibabaInstance)
	if !ok || v.Charge != "PostPaid" {
		return nil
	}
	var answer struct {
		PriceInfo struct {
			Price struct {
				Currency string
				Details  struct {
					Of []struct {
						Resource   string
						TradePrice json.Number
					} `json:"DetailInfo"`
				} `json:"DetailInfos"`
			}
		}
	}
	region, _ := placed(in.ID)
	ask := []string{"RegionId", region, "ZoneId", v.Zone, "ResourceType", "instance", "InstanceType", v.Type, "PriceUnit", "Hour"}
	if in.Spot {
		ask = append(ask, "SpotStrategy", v.Spot)
	}
	if a.ask(ctx, ecsOf(region), "DescribePrice", &answer, ask...) != nil {
		return ctx.Err() // without its price it is told too
	}
	p := answer.PriceInfo.Price
	for _, d := range p.Details.Of {
		if d.Resource == "instanceType" && p.Currency != "" {
			in.PerHour, in.Currency = price(amount(d.TradePrice)), text(p.Currency)
		}
	}
	return nil
}

// act makes a change of one instance. No answer says more than that it was accepted.
func (a alibaba) act(ctx context.Context, in Instance, action string, more ...string) error {
	region, own := placed(in.ID)
	var answer struct{}
	return a.request(acting(ctx), ecsOf(region), action, append([]string{"InstanceId", own}, more...), &answer)
}

func (a alibaba) start(ctx context.Context, in Instance) error {
	return a.act(ctx, in, "StartInstance")
}

func (a alibaba) stop(ctx context.Context, in Instance) error {
	return a.act(ctx, in, "StopInstance", "StoppedMode", "StopCharging")
}

// destroy: Force, since only what is stopped is deleted without it, and a destroy
// must need no stop and no start.
func (a alibaba) destroy(ctx context.Context, in Instance) error {
	return a.act(ctx, in, "DeleteInstance", "Force", "true")
}

// balance asks the billing service of China, then that of the other accounts.
func (a alibaba) balance(ctx context.Context) (Balance, error) {
	var first error
	for _, host := range []string{"business.aliyuncs.com", "business.ap-southeast-1.aliyuncs.com"} {
		b, err := a.balanceAt(ctx, alibabaAPI{host, "2017-12-14"})
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		if first == nil {
			first = err
		}
	}
	return Balance{}, first
}

// balanceAt: a refusal of this service comes inside HTTP 200 as well.
func (a alibaba) balanceAt(ctx context.Context, at alibabaAPI) (Balance, error) {
	var answer struct {
		Success *bool
		Code    string
		Message string
		Data    struct {
			Cash      string `json:"AvailableCashAmount"`
			Available string `json:"AvailableAmount"`
			Currency  string
		}
	}
	if err := a.ask(ctx, at, "QueryAccountBalance", &answer); err != nil {
		return Balance{}, err
	}
	if answer.Success == nil || !*answer.Success {
		return Balance{}, a.hide(alibabaCodes().refusal(http.StatusOK, answer.Code, answer.Message))
	}
	cash := answer.Data.Cash
	if strings.TrimSpace(cash) == "" {
		cash = answer.Data.Available
	}
	left := amount(jsonNumber(cash))
	if left == nil || answer.Data.Currency == "" {
		return Balance{}, errors.New("the answer has no balance; nothing is known")
	}
	return Balance{Cash: decimal(left), Currency: text(answer.Data.Currency)}, nil
}
