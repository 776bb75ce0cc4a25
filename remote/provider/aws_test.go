package provider_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"rentop/remote/provider"
)

const cloudID = "AKIA0123456789ABCDEF"

// awsSigned signs the request again as its service would, and compares.
func awsSigned(r *http.Request) bool {
	auth := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	_, scope, _ := strings.Cut(auth, "Credential="+cloudID+"/")
	parts := strings.Split(scope, "/")
	if err != nil || len(parts) < 4 {
		return false
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return false
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	again, err := http.NewRequest(r.Method, "http://"+host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	service := "ec2"
	if r.Method == http.MethodPost { // the price list
		service = "pricing"
		for _, name := range []string{"Content-Type", "X-Amz-Target"} {
			again.Header.Set(name, r.Header.Get(name))
		}
	}
	cred := aws.Credentials{AccessKeyID: cloudID, SecretAccessKey: theKey}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), cred, again, hex.EncodeToString(sum[:]), service, parts[1], at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == auth
}

func awsDialect() *dialect {
	codes := map[int][2]any{401: {401, "AuthFailure"}, 404: {400, "InvalidInstanceID.NotFound"}, 409: {400, "IncorrectInstanceState"}, 503: {503, "RequestLimitExceeded"}, 507: {500, "InsufficientInstanceCapacity"}, 500: {500, "InternalError"}}
	refuse := func(w http.ResponseWriter, status int, say string) {
		w.WriteHeader(codes[status][0].(int))
		fmt.Fprintf(w, `<?xml version="1.0"?><Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>`, codes[status][1], html.EscapeString(say))
	}
	d := &dialect{
		kind: "aws", ids: [3]string{"us-east-1/i-0a1b2c3d4e5f60001", "us-east-1/i-0a1b2c3d4e5f60002", "us-east-1/i-0ffffffffffffffff"}, refuse: refuse, key: cloudID + ":" + theKey, hosts: true, stories: cloudStories,
		acts: func(r *http.Request) bool {
			return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Query().Get("Action"), "Describe")
		},
		auth: awsSigned,
	}
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method == http.MethodPost {
			awsPriceList(s, w, r, body)
			return
		}
		q := r.URL.Query()
		region := strings.Split(r.Header.Get("Authorization"), "/")[2]
		if r.URL.Host != "" && r.URL.Host != "ec2."+region+".amazonaws.com" {
			s.t.Errorf("signed for %s, sent to %s", region, r.URL.Host)
		}
		if q.Get("Version") != "2016-11-15" {
			s.t.Errorf("version %q", q.Get("Version"))
		}
		action, id := q.Get("Action"), region+"/"+q.Get("InstanceId.1")+q.Get("InstanceId")
		answer := func(body string) {
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId>%s</%[1]sResponse>`, action, body)
		}
		if q.Has("InstanceId.1") && s.find(id) == nil {
			refuse(w, 404, "The instance ID does not exist")
			return
		}
		switch action {
		case "DescribeRegions":
			answer(`<regionInfo><item><regionName>us-east-1</regionName><optInStatus>opt-in-not-required</optInStatus></item></regionInfo>`)
		case "DescribeInstances":
			boxes := s.live()
			next := ""
			switch {
			case q.Has("InstanceId.1"):
				boxes = []*box{s.find(id)}
			case len(boxes) == 2 && !q.Has("NextToken"): // a page each
				boxes, next = boxes[:1], "<nextToken>more</nextToken>"
			case len(boxes) == 2:
				boxes = boxes[1:]
			}
			var set strings.Builder
			for _, b := range boxes {
				set.WriteString("<item><reservationId>r-1</reservationId><instancesSet>" + awsXML(b) + "</instancesSet></item>")
			}
			answer("<reservationSet>" + set.String() + "</reservationSet>" + next)
		case "DescribeInstanceTypes":
			answer(`<instanceTypeSet><item><instanceType>p4d.24xlarge</instanceType><gpuInfo><gpus><item><name>A100</name><manufacturer>NVIDIA</manufacturer><count>8</count></item></gpus></gpuInfo></item></instanceTypeSet>`)
		case "DescribeSpotPriceHistory":
			answer(`<spotPriceHistorySet><item><instanceType>p4d.24xlarge</instanceType><spotPrice>11.570000</spotPrice><availabilityZone>us-east-1b</availabilityZone></item></spotPriceHistorySet>`)
		case "DescribeImages":
			var set strings.Builder
			for _, im := range s.images {
				if (!q.Has("ImageId.1") || q.Get("ImageId.1") == im.id) && (!q.Has("Filter.1.Value.1") || q.Get("Filter.1.Value.1") == im.name) {
					fmt.Fprintf(&set, `<item><imageId>%s</imageId><name>%s</name><imageState>available</imageState><blockDeviceMapping><item><ebs><snapshotId>snap-1</snapshotId><volumeSize>100</volumeSize></ebs></item></blockDeviceMapping></item>`, im.id, im.name)
				}
			}
			if q.Get("ImageId.1") == "ami-ubuntu" {
				set.WriteString(`<item><imageId>ami-ubuntu</imageId><name>Deep Learning OSS Nvidia Driver AMI GPU PyTorch (Ubuntu 24.04)</name><imageState>available</imageState></item>`)
			}
			answer("<imagesSet>" + set.String() + "</imagesSet>")
		case "DescribeVolumes":
			at := `<attachmentSet><item><instanceId>%s</instanceId><deleteOnTermination>%t</deleteOnTermination></item></attachmentSet>`
			own := q.Get("Filter.1.Value.1")
			all := `<item><volumeId>vol-root</volumeId><size>100</size><volumeType>gp3</volumeType>` + fmt.Sprintf(at, own, true) + `</item><item><volumeId>vol-data</volumeId><size>500</size><volumeType>gp3</volumeType>` + fmt.Sprintf(at, own, false) +
				`<tagSet><item><key>Name</key><value>data</value></item></tagSet></item>`
			if q.Get("Filter.1.Name") == "status" {
				all = `<item><volumeId>vol-data</volumeId><size>500</size><volumeType>gp3</volumeType><attachmentSet/></item>`
			}
			answer("<volumeSet>" + all + "</volumeSet>")
		case "DescribeAddresses":
			_, own, _ := strings.Cut(d.ids[0], "/")
			answer(`<addressesSet><item><publicIp>3.3.3.3</publicIp><allocationId>eipalloc-1</allocationId><associationId>a-1</associationId><instanceId>` + own + `</instanceId></item><item><publicIp>4.4.4.4</publicIp><allocationId>eipalloc-2</allocationId></item></addressesSet>`)
		case "DescribeSnapshots":
			if !q.Has("SnapshotId.1") && q.Get("Filter.1.Value.2") != "vol-data" {
				s.t.Errorf("snapshots of %v", q)
			}
			answer(`<snapshotSet><item><snapshotId>snap-1</snapshotId><volumeSize>100</volumeSize><progress>40%</progress></item><item><snapshotId>snap-2</snapshotId><volumeSize>500</volumeSize><progress>7%</progress></item></snapshotSet>`)
		case "CreateImage":
			if q.Get("NoReboot") != "true" {
				s.t.Error("an image that reboots the instance")
			}
			for _, im := range s.images {
				if im.name == q.Get("Name") {
					refuse(w, 409, "in use")
					return
				}
			}
			im := &image{fmt.Sprintf("ami-%d", len(s.images)+1), q.Get("Name"), id}
			if !s.drop {
				s.images[im.id] = im
			}
			answer("<imageId>" + im.id + "</imageId>")
		default:
			do := map[string]string{"StartInstances": "start", "StopInstances": "stop", "TerminateInstances": "destroy"}[action]
			if s.act(id, do) == 409 {
				refuse(w, 409, "not possible in its state")
				return
			}
			answer("<instancesSet><item><instanceId>" + q.Get("InstanceId.1") + "</instanceId><currentState><code>64</code><name>stopping</name></currentState></item></instancesSet>")
		}
	}
	return d
}

func awsXML(b *box) string {
	_, own, _ := strings.Cut(b.id, "/")
	ip := ""
	if b.state == "running" {
		ip = fmt.Sprintf("<ipAddress>54.1.1.%d</ipAddress>", 10+b.power)
	}
	life := ""
	if b.volume == "spot" {
		life = "<instanceLifecycle>spot</instanceLifecycle>"
	}
	return fmt.Sprintf(`<item><instanceId>%s</instanceId><imageId>ami-ubuntu</imageId><instanceState><code>16</code><name>%s</name></instanceState><instanceType>p4d.24xlarge</instanceType><launchTime>%s</launchTime><placement><availabilityZone>us-east-1b</availabilityZone><tenancy>default</tenancy></placement>%s%s<platformDetails>Linux/UNIX</platformDetails><usageOperation>RunInstances</usageOperation><tagSet><item><key>Name</key><value>%s</value></item></tagSet></item>`,
		own, b.state, b.started.Format(time.RFC3339), ip, life, b.name)
}

func TestAWSConforms(t *testing.T) { t.Parallel(); conforms(t, awsDialect()) }
func TestAWSFaults(t *testing.T)   { t.Parallel(); chaos(t, awsDialect()) }

// EBS volumes that outlive the instance and Elastic IPs are told before a destroy,
// all disks before a stop, and afterwards what nothing has.
func TestAWSLeavesVolumesAndAddresses(t *testing.T) {
	s := newStandIn(t, awsDialect())
	p := s.inMemory()
	_, own, _ := strings.Cut(s.d.ids[0], "/")
	s.images["ami-9"] = &image{"ami-9", "before-" + own, s.d.ids[0]} // of snap-1
	for _, c := range []struct {
		after provider.State
		want  []string
	}{
		{provider.Gone, []string{"volume us-east-1/vol-data ", "ip us-east-1/eipalloc-1 3.65", "image us-east-1/ami-9 ", "snapshot us-east-1/snap-2 "}},
		{provider.Stopped, []string{"disk us-east-1/vol-root ", "volume us-east-1/vol-data ", "ip us-east-1/eipalloc-1 3.65", "image us-east-1/ami-9 ", "snapshot us-east-1/snap-2 "}},
	} {
		if got := leftOf(t, p, s.d.ids[0], c.after); !slices.Equal(got, c.want) {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
	if err := p.Destroy(t.Context(), s.d.ids[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := leftOf(t, p, s.d.ids[0], provider.Gone), []string{"volume us-east-1/vol-data ", "ip us-east-1/eipalloc-2 3.65", "image us-east-1/ami-9 "}; !slices.Equal(got, want) {
		t.Errorf("gone: %q, want %q", got, want)
	}
}

func leftOf(t *testing.T, p provider.Provider, id string, after provider.State) []string {
	t.Helper()
	list, err := p.Leftovers(t.Context(), id, after)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range list {
		out = append(out, l.Kind+" "+l.ID+" "+l.PerMonth)
	}
	return out
}

// The card, its count, the login of the image, the prices of spot and on demand.
func TestAWSImport(t *testing.T) {
	s := newStandIn(t, awsDialect())
	s.boxes[s.d.ids[1]].volume = "spot"
	list, err := s.inMemory().(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v: want both pages", list, err)
	}
	a, b := list[0], list[1]
	if a.GPU != "A100" || a.GPUs != 8 || a.PerHour != "32.7726" || a.Currency != "USD" || a.Spot || a.Name != "train" || a.Address.SSH() != "ssh ubuntu@54.1.1.10" || a.Status.StartedAt.IsZero() {
		t.Errorf("%+v", a)
	}
	if !b.Spot || b.PerHour != "11.57" || b.Currency != "USD" {
		t.Errorf("%+v: want spot at $11.57", b)
	}
}

// A stop gives the machine back: where none is free at the next start, that is said.
func TestAWSNoCapacity(t *testing.T) {
	d := awsDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.URL.Query().Get("Action") == "StartInstances" {
			d.refuse(w, 507, "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you requested")
			return
		}
		serve(s, w, r, body)
	}
	s := newStandIn(t, d)
	s.boxes[d.ids[0]].state = "stopped"
	p := s.inMemory()
	err := p.Start(t.Context(), d.ids[0])
	if err == nil || !strings.Contains(err.Error(), "InsufficientInstanceCapacity") || !strings.Contains(err.Error(), "no such machine is free") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(p.Can().StopNote(), "InsufficientInstanceCapacity") {
		t.Errorf("before a stop: %q", p.Can().StopNote())
	}
}

// An answer about another instance, or none at all, is no success.
func TestAWSAnswerInside200(t *testing.T) {
	for _, body := range []string{
		`<Response><Errors><Error><Code>IncorrectInstanceState</Code><Message>no</Message></Error></Errors></Response>`,
		`<StopInstancesResponse><instancesSet/></StopInstancesResponse>`,
		`<StopInstancesResponse><instancesSet><item><instanceId>i-0a1b2c3d4e5f60002</instanceId></item></instancesSet></StopInstancesResponse>`,
		`<StartInstancesResponse><instancesSet><item><instanceId>i-0a1b2c3d4e5f60001</instanceId></item></instancesSet></StartInstancesResponse>`,
		`ok`, ``,
	} {
		d := awsDialect()
		serve := d.serve
		d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
			if d.acts(r) {
				w.Write([]byte(body))
				return
			}
			serve(s, w, r, b)
		}
		s := newStandIn(t, d)
		if err := s.inMemory().Stop(t.Context(), d.ids[0]); err == nil {
			t.Errorf("%q is a success", body)
		}
	}
}

// An image that is available and holds no disk saves nothing.
func TestAWSImageIsProven(t *testing.T) {
	d := awsDialect()
	serve, image := d.serve, ""
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, b []byte) {
		if r.URL.Query().Get("Action") == "DescribeImages" {
			fmt.Fprintf(w, `<DescribeImagesResponse><imagesSet><item><imageId>ami-1</imageId>%s</item></imagesSet></DescribeImagesResponse>`, image)
			return
		}
		serve(s, w, r, b)
	}
	p := newStandIn(t, d).inMemory().(provider.Imager)
	const disk = "<blockDeviceMapping><item><ebs><snapshotId>snap-1</snapshotId></ebs></item></blockDeviceMapping>"
	for _, c := range []struct {
		image string
		ready bool
		fails bool
		says  string
	}{
		{"<imageState>available</imageState>" + disk, true, false, "available"},
		{"<imageState>available</imageState>", false, true, "without the snapshot"},
		{"<imageState>pending</imageState>" + disk, false, false, "pending 40%, 7%"},
		{"<imageState>pending</imageState>", false, false, "pending"},
		{"<imageState>failed</imageState><stateReason><message>no disk</message></stateReason>" + disk, false, true, "failed no disk"},
		{disk, false, true, ""},
	} {
		image = c.image
		if st, err := p.SnapshotState(t.Context(), "us-east-1/ami-1"); err != nil || st.Ready != c.ready || st.Failed != c.fails || !strings.Contains(st.Detail, c.says) {
			t.Errorf("%s: %+v, %v", c.image, st, err)
		}
	}
	if st, err := p.SnapshotState(t.Context(), "us-east-1/ami-2"); err == nil {
		t.Errorf("of another image: %+v", st)
	}
}
