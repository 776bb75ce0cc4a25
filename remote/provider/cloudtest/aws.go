package cloudtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// CloudID is the part of a large cloud's key that is told.
const CloudID = "AKIA0123456789ABCDEF"

// awsSigned signs the request again as its service would, and compares.
func awsSigned(r *http.Request) bool {
	auth := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	_, scope, _ := strings.Cut(auth, "Credential="+CloudID+"/")
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
	cred := aws.Credentials{AccessKeyID: CloudID, SecretAccessKey: Key}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), cred, again, hex.EncodeToString(sum[:]), service, parts[1], at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == auth
}

// AWS checks each signature by AWS's own signer.
func AWS(testing.TB) *Dialect {
	codes := map[int][2]any{401: {401, "AuthFailure"}, 404: {400, "InvalidInstanceID.NotFound"}, 409: {400, "IncorrectInstanceState"}, 503: {503, "RequestLimitExceeded"}, 507: {500, "InsufficientInstanceCapacity"}, 500: {500, "InternalError"}}
	refuse := func(w http.ResponseWriter, status int, say string) {
		w.WriteHeader(codes[status][0].(int))
		fmt.Fprintf(w, `<?xml version="1.0"?><Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>`, codes[status][1], html.EscapeString(say))
	}
	d := &Dialect{
		Kind: "aws", IDs: [3]string{"us-east-1/i-0a1b2c3d4e5f60001", "us-east-1/i-0a1b2c3d4e5f60002", "us-east-1/i-0ffffffffffffffff"}, Refuse: refuse, key: CloudID + ":" + Key, hosts: true,
		Acts: func(r *http.Request) bool {
			return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Query().Get("Action"), "Describe")
		},
		Auth: awsSigned,
	}
	d.Serve = func(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
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
			boxes := s.Live()
			next := ""
			switch {
			case q.Has("InstanceId.1"):
				boxes = []*Box{s.find(id)}
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
			for _, im := range s.Images {
				if (!q.Has("ImageId.1") || q.Get("ImageId.1") == im.ID) && (!q.Has("Filter.1.Value.1") || q.Get("Filter.1.Value.1") == im.Name) {
					fmt.Fprintf(&set, `<item><imageId>%s</imageId><name>%s</name><imageState>available</imageState><blockDeviceMapping><item><ebs><snapshotId>snap-1</snapshotId><volumeSize>100</volumeSize></ebs></item></blockDeviceMapping></item>`, im.ID, im.Name)
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
			_, own, _ := strings.Cut(d.IDs[0], "/")
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
			for _, im := range s.Images {
				if im.Name == q.Get("Name") {
					refuse(w, 409, "in use")
					return
				}
			}
			im := &Image{fmt.Sprintf("ami-%d", len(s.Images)+1), q.Get("Name"), id}
			if !s.drop {
				s.Images[im.ID] = im
			}
			answer("<imageId>" + im.ID + "</imageId>")
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

func awsXML(b *Box) string {
	_, own, _ := strings.Cut(b.ID, "/")
	ip := ""
	if b.State == "running" {
		ip = fmt.Sprintf("<ipAddress>54.1.1.%d</ipAddress>", 10+b.power)
	}
	life := ""
	if b.Volume == "spot" {
		life = "<instanceLifecycle>spot</instanceLifecycle>"
	}
	return fmt.Sprintf(`<item><instanceId>%s</instanceId><imageId>ami-ubuntu</imageId><instanceState><code>16</code><name>%s</name></instanceState><instanceType>p4d.24xlarge</instanceType><launchTime>%s</launchTime><placement><availabilityZone>us-east-1b</availabilityZone><tenancy>default</tenancy></placement>%s%s<platformDetails>Linux/UNIX</platformDetails><usageOperation>RunInstances</usageOperation><tagSet><item><key>Name</key><value>%s</value></item></tagSet></item>`,
		own, b.State, b.started.Format(time.RFC3339), ip, life, b.Name)
}
