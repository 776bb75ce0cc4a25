package provider

// AWS EC2 by its Query API, https://docs.aws.amazon.com/AWSEC2/latest/APIReference/,
// signed by AWS's own signer: the whole client of EC2 takes minutes to compile. All
// its requests are GETs, also those that act, which are never repeated. What an
// instance leaves is in aws_left.go, what it costs in aws_price.go.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"rentop/remote"
)

type ec2 struct {
	*web
	own bool // the hosts are AWS's own
	now func() time.Time
}

const (
	awsHome    = "us-east-1" // the region that tells the others
	awsVersion = "2016-11-15"
	awsPage    = "500"
)

// awsCodes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func awsCodes() codes {
	return codes{
		absent: []string{"InvalidInstanceID.NotFound", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"},
		state:  []string{"IncorrectInstanceState", "IncorrectState", "InvalidAMIName.Duplicate", "UnsupportedOperation", "OperationNotPermitted"},
		stock:  []string{"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacity", "SpotMaxPriceTooLow"},
		key:    []string{"AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "MissingAuthenticationToken", "ExpiredToken"},
		rights: []string{"UnauthorizedOperation", "AccessDenied", "OptInRequired"},
		clock:  []string{"RequestExpired", "RequestTimeTooSkewed"},
		slow:   []string{"RequestLimitExceeded", "Throttling", "RequestThrottled", "ThrottlingException"},
	}
}

func newAWS(o Options) (driver, error) {
	w, err := newWeb("aws", "https://ec2."+awsHome+".amazonaws.com", o, nil)
	if err != nil {
		return nil, err
	}
	w.sign = func(r *http.Request, key string) error {
		p, err := pairOf(key)
		if err != nil {
			return err
		}
		sum, err := bodySum(r)
		if err != nil {
			return err
		}
		cred := aws.Credentials{AccessKeyID: p.id, SecretAccessKey: p.secret, SessionToken: p.token}
		at, _ := r.Context().Value(scopeKey{}).(awsScope)
		return v4.NewSigner().SignHTTP(r.Context(), cred, r, sum, at.service, at.region, o.Now())
	}
	awsCodes().read(w, func(status int, body []byte) (int, string, string) {
		code, said := awsError(body)
		return status, code, said
	})
	return ec2{w, o.Base == "", o.Now}, nil
}

// awsScope is what a request is for; it is part of its signature.
type awsScope struct{ service, region string }

type scopeKey struct{}

func scoped(ctx context.Context, service, region string) context.Context {
	return context.WithValue(ctx, scopeKey{}, awsScope{service, region})
}

// bodySum is the SHA-256 of a request's body, in hex.
func bodySum(r *http.Request) (string, error) {
	h := sha256.New()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(h, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// awsError reads a refusal, whatever the HTTP status is: EC2's, or the price list's.
func awsError(body []byte) (code, said string) {
	var j struct {
		Type string `json:"__type"` // service#Code
		Said string `json:"message"`
	}
	if json.Unmarshal(body, &j) == nil {
		return j.Type[strings.LastIndexByte(j.Type, '#')+1:], j.Said
	}
	var v struct {
		XMLName xml.Name `xml:"Response"`
		Code    string   `xml:"Errors>Error>Code"`
		Said    string   `xml:"Errors>Error>Message"`
	}
	if xml.Unmarshal(body, &v) != nil {
		return "", ""
	}
	return v.Code, v.Said
}

func (ec2) Kind() string { return "aws" }

func (ec2) Can() Can {
	return Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "its EBS volumes go on costing, and Elastic IPs; an instance with its root on local disks, and most spot instances, cannot be stopped",
		StopMayLose:       "what is on local (instance store) disks is wiped, the machine is given back and there may be none when you start again (InsufficientInstanceCapacity), and the address is another"}
}

func (ec2) checkID(id string) string { return checkPlaced(id, "i-") }

// ask asks a question, act makes a change. in is the name and values of the
// parameters, in turn.
func (e ec2) ask(ctx context.Context, region, action string, in ...string) ([]byte, error) {
	return e.request(asking(ctx), region, action, in)
}

func (e ec2) act(ctx context.Context, region, action string, in ...string) ([]byte, error) {
	return e.request(acting(ctx), region, action, in)
}

func (e ec2) request(ctx context.Context, region, action string, in []string) ([]byte, error) {
	query := url.Values{"Action": {action}, "Version": {awsVersion}}
	for i := 0; i+1 < len(in); i += 2 {
		query.Set(in[i], in[i+1])
	}
	base := e.base
	if e.own {
		base = "https://ec2." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			base += ".cn"
		}
	}
	ctx = scoped(ctx, "ec2", region)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/?"+query.Encode(), nil)
	if err != nil {
		return nil, errors.New("the request could not be made")
	}
	return e.exchange(req)
}

// awsAnswer reads an answer of the action that was asked, whole.
func awsAnswer(action string, body []byte, out any) error {
	var root struct{ XMLName xml.Name }
	err := xml.Unmarshal(body, &root)
	if err == nil && root.XMLName.Local != action+"Response" {
		err = fmt.Errorf("it is about %q", remote.Short(root.XMLName.Local, 40))
	}
	if err == nil {
		err = xml.Unmarshal(body, out)
	}
	if err != nil {
		return fmt.Errorf("the answer is not what its documentation says (%s); nothing is known", remote.Short(err.Error(), 120))
	}
	return nil
}

// awsList reads all pages of the list called set.
func awsList[T any](ctx context.Context, e ec2, region, action, set string, in ...string) ([]T, error) {
	var out []T
	next := ""
	for range maxPages {
		more := in
		if next != "" {
			more = append(in[:len(in):len(in)], "NextToken", next)
		}
		body, err := e.ask(ctx, region, action, more...)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Next string `xml:"nextToken"`
			Sets []struct {
				XMLName xml.Name
				Items   []T `xml:"item"`
			} `xml:",any"`
		}
		if err := awsAnswer(action, body, &answer); err != nil {
			return nil, err
		}
		found := false
		for _, s := range answer.Sets {
			if s.XMLName.Local == set {
				found, out = true, append(out, s.Items...)
			}
		}
		if !found {
			return nil, errNoList
		}
		if next = answer.Next; next == "" {
			return out, nil
		}
	}
	return nil, errManyPages
}

type awsInstance struct {
	ID       string    `xml:"instanceId"`
	Image    string    `xml:"imageId"`
	State    string    `xml:"instanceState>name"`
	Type     string    `xml:"instanceType"`
	Launched time.Time `xml:"launchTime"`
	Zone     string    `xml:"placement>availabilityZone"`
	IP       string    `xml:"ipAddress"`
	Life     string    `xml:"instanceLifecycle"`
	Runs     string    `xml:"usageOperation"` // which system it is billed for
	Tenancy  string    `xml:"placement>tenancy"`
	Products []string  `xml:"productCodes>item>productCode"` // what is sold with its image
	Reason   string    `xml:"stateReason>message"`
	Tags     []awsTag  `xml:"tagSet>item"`
}

type awsTag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// awsName is the tag that consoles show as the name.
func awsName(tags []awsTag) string {
	for _, t := range tags {
		if t.Key == "Name" {
			return text(t.Value)
		}
	}
	return ""
}

// instance: launchTime is that of the last start, and no price is told.
func (v awsInstance) instance(region string) Instance {
	in := Instance{ID: region + "/" + v.ID, Name: awsName(v.Tags), GPU: text(v.Type), Region: text(region), Spot: v.Life == "spot", read: &v}
	in.Status = Status{State: Unknown, Detail: text(strings.TrimSpace(v.State + " " + v.Reason))}
	switch v.State {
	case "pending":
		in.Status.State, in.Status.Billed = Changing, no()
	case "running":
		in.Status.State, in.Status.Billed, in.Status.StartedAt = Running, yes(), v.Launched.UTC()
	case "shutting-down", "stopping":
		in.Status.State = Changing
	case "stopped":
		in.Status.State, in.Status.Billed = Stopped, no()
	case "terminated":
		in.Status.State = Gone
	}
	if in.Address = address(v.IP, 22, "ec2-user"); v.IP == "" && v.State == "running" {
		in.NoAddress = "it has no public address"
	}
	return in
}

// instances lists a region, or one instance of it.
func (e ec2) instances(ctx context.Context, region string, in ...string) ([]Instance, error) {
	groups, err := awsList[struct {
		Of []awsInstance `xml:"instancesSet>item"`
	}](ctx, e, region, "DescribeInstances", "reservationSet", in...)
	if err != nil {
		return nil, err
	}
	out := []Instance{}
	for _, g := range groups {
		for _, v := range g.Of {
			out = append(out, v.instance(region))
		}
	}
	return out, nil
}

func (e ec2) get(ctx context.Context, id string) (Instance, error) {
	region, own := placed(id)
	all, err := e.instances(ctx, region, "InstanceId.1", own)
	if err != nil {
		return Instance{}, err
	}
	if len(all) == 0 {
		return Instance{}, errAbsent
	}
	return all[0], nil
}

func (e ec2) listRegion(ctx context.Context, region string) ([]Instance, error) {
	return e.instances(ctx, region, "MaxResults", awsPage)
}

func (e ec2) listAround(ctx context.Context, id string) ([]Instance, error) {
	region, _ := placed(id)
	return e.listRegion(ctx, region)
}

// list reads every region that the account has switched on.
func (e ec2) list(ctx context.Context) ([]Instance, error) {
	found, err := awsList[struct {
		Name string `xml:"regionName"`
	}](ctx, e, awsHome, "DescribeRegions", "regionInfo")
	if err != nil {
		return nil, err
	}
	var regions []string
	for _, r := range found {
		regions = append(regions, r.Name)
	}
	return everywhere(ctx, regions, e.listRegion)
}

// detail adds the card, by the kind of machine, and the usual login of its image. What
// cannot be read is not known.
func (e ec2) detail(ctx context.Context, in *Instance) error {
	v, ok := in.read.(*awsInstance)
	if !ok {
		return nil
	}
	region, _ := placed(in.ID)
	kinds, err := awsList[struct {
		GPUs []struct {
			Name  string `xml:"name"`
			Count int    `xml:"count"`
		} `xml:"gpuInfo>gpus>item"`
	}](ctx, e, region, "DescribeInstanceTypes", "instanceTypeSet", "InstanceType.1", v.Type)
	if err == nil && len(kinds) == 1 {
		for _, g := range kinds[0].GPUs {
			in.GPU = text(g.Name)
			in.GPUs += max(0, min(g.Count, 1024))
		}
	}
	if in.Address.Host != "" {
		if images, err := e.images(ctx, region, "ImageId.1", v.Image); err == nil && len(images) == 1 {
			in.Address.User = awsUser(images[0].Name)
		}
	}
	return ctx.Err()
}

// awsUser is the login of an image's maker:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/managing-users.html
func awsUser(image string) string {
	image = strings.ToLower(image)
	switch {
	case strings.Contains(image, "ubuntu"):
		return "ubuntu"
	case strings.Contains(image, "debian"):
		return "admin"
	}
	return "ec2-user"
}

// change makes a change of one instance, and reads that the answer is about it.
func (e ec2) change(ctx context.Context, in Instance, action string, more ...string) error {
	region, own := placed(in.ID)
	body, err := e.act(ctx, region, action, append([]string{"InstanceId.1", own}, more...)...)
	if err != nil {
		return err
	}
	var answer struct {
		Of []struct {
			ID string `xml:"instanceId"`
		} `xml:"instancesSet>item"`
	}
	if err := awsAnswer(action, body, &answer); err != nil {
		return err
	}
	if len(answer.Of) != 1 || answer.Of[0].ID != own {
		return errors.New("the answer is not about this instance; what was done is not known")
	}
	return nil
}

func (e ec2) start(ctx context.Context, in Instance) error {
	return e.change(ctx, in, "StartInstances")
}

func (e ec2) stop(ctx context.Context, in Instance) error {
	return e.change(ctx, in, "StopInstances")
}

func (e ec2) destroy(ctx context.Context, in Instance) error {
	return e.change(ctx, in, "TerminateInstances")
}

func (ec2) balance(context.Context) (Balance, error) { return Balance{}, ErrUnsupported }
