package provider_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// EBS volumes that outlive the instance and Elastic IPs are told before a destroy,
// all disks before a stop, and afterwards what nothing has.
func TestAWSLeavesVolumesAndAddresses(t *testing.T) {
	s := cloudtest.New(t, cloudtest.AWS(t))
	p := s.InMemory()
	_, own, _ := strings.Cut(s.IDs[0], "/")
	s.Images["ami-9"] = &cloudtest.Image{ID: "ami-9", Name: "before-" + own, Box: s.IDs[0]} // of snap-1
	for _, c := range []struct {
		after provider.State
		want  []string
	}{
		{provider.Gone, []string{"volume us-east-1/vol-data ", "ip us-east-1/eipalloc-1 3.65", "image us-east-1/ami-9 ", "snapshot us-east-1/snap-2 "}},
		{provider.Stopped, []string{"disk us-east-1/vol-root ", "volume us-east-1/vol-data ", "ip us-east-1/eipalloc-1 3.65", "image us-east-1/ami-9 ", "snapshot us-east-1/snap-2 "}},
	} {
		if got := leftOf(t, p, s.IDs[0], c.after); !slices.Equal(got, c.want) {
			t.Errorf("after %s: %q, want %q", c.after, got, c.want)
		}
	}
	if err := p.Destroy(t.Context(), s.IDs[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := leftOf(t, p, s.IDs[0], provider.Gone), []string{"volume us-east-1/vol-data ", "ip us-east-1/eipalloc-2 3.65", "image us-east-1/ami-9 "}; !slices.Equal(got, want) {
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
	s := cloudtest.New(t, cloudtest.AWS(t))
	s.Boxes[s.IDs[1]].Volume = "spot"
	list, err := s.InMemory().(provider.Importer).Import(t.Context())
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
	d := cloudtest.AWS(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.URL.Query().Get("Action") == "StartInstances" {
			d.Refuse(w, 507, "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you requested")
			return true
		}
		return false
	})
	s := cloudtest.New(t, d)
	s.Boxes[d.IDs[0]].State = "stopped"
	p := s.InMemory()
	err := p.Start(t.Context(), d.IDs[0])
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
		d := cloudtest.AWS(t)
		d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
			if d.Acts(r) {
				w.Write([]byte(body))
				return true
			}
			return false
		})
		s := cloudtest.New(t, d)
		if err := s.InMemory().Stop(t.Context(), d.IDs[0]); err == nil {
			t.Errorf("%q is a success", body)
		}
	}
}

// An image that is available and holds no disk saves nothing.
func TestAWSImageIsProven(t *testing.T) {
	d := cloudtest.AWS(t)
	image := ""
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, b []byte) bool {
		if r.URL.Query().Get("Action") == "DescribeImages" {
			fmt.Fprintf(w, `<DescribeImagesResponse><imagesSet><item><imageId>ami-1</imageId>%s</item></imagesSet></DescribeImagesResponse>`, image)
			return true
		}
		return false
	})
	p := cloudtest.New(t, d).InMemory().(provider.Imager)
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
