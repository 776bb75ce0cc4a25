package provider_test

// What the three large clouds have in common: regions, keys of two parts, throttling.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

func largeClouds(t testing.TB) []*cloudtest.Dialect {
	return []*cloudtest.Dialect{cloudtest.AWS(t), cloudtest.Alibaba(t), cloudtest.Tencent(t)}
}

// A region becomes part of a host: what is none is never asked.
func TestCloudImpossibleIDs(t *testing.T) {
	for _, d := range largeClouds(t) {
		s := cloudtest.New(t, d)
		p := s.InMemory()
		_, own, _ := strings.Cut(d.IDs[0], "/")
		for _, id := range []string{"", own, "/" + own, "x.evil.example#/" + own, "evil.example/" + own, "-a/" + own, "a-/" + own, "A/" + own, strings.Repeat("a", 41) + "/" + own,
			"us-east-1/", "us-east-1/i-", "us-east-1/ins-", "us-east-1/x-1", d.IDs[0] + "?x", d.IDs[0] + "&b", d.IDs[0] + "/" + own, d.IDs[0] + `"]`, "us-east-1/../" + own} {
			if err := p.Destroy(t.Context(), id); err == nil {
				t.Errorf("%s: destroyed %q", d.Kind, id)
			}
			if st, err := p.(provider.Imager).SnapshotState(t.Context(), id); err == nil {
				t.Errorf("%s: the snapshot %q is %+v", d.Kind, id, st)
			}
		}
		if len(s.Requests) > 0 {
			t.Errorf("%s: sent %q", d.Kind, s.Requests)
		}
	}
}

// A request that was refused for its rate was not done: it is made again, also one
// that acts. AWS says so with 503, Alibaba with 400, Tencent with 200.
func TestCloudThrottling(t *testing.T) {
	for _, d := range largeClouds(t) {
		left := 2
		d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
			if d.Acts(r) && left > 0 {
				left--
				d.Refuse(w, 503, "Request limit exceeded.")
				return true
			}
			return false
		})
		s := cloudtest.New(t, d)
		if err := s.InMemory().Stop(t.Context(), d.IDs[0]); err != nil || s.Truth(d.IDs[0]) != "stopped" {
			t.Errorf("%s: %v; it is %s", d.Kind, err, s.Truth(d.IDs[0]))
		}
		left = 3
		if err := s.InMemory().Destroy(t.Context(), d.IDs[0]); err == nil || !strings.Contains(err.Error(), "too many requests") || s.Truth(d.IDs[0]) == "gone" {
			t.Errorf("%s: %v; it is %s", d.Kind, err, s.Truth(d.IDs[0]))
		}
	}
}

// What acts is made once, whatever the answer is.
func TestCloudActsOnce(t *testing.T) {
	for _, d := range largeClouds(t) {
		for _, f := range cloudtest.Unsure() {
			s := cloudtest.New(t, d)
			acts := 0
			s.Next = func(r *http.Request) cloudtest.Fault {
				if d.Acts(r) {
					acts++
					return f
				}
				return cloudtest.Fine
			}
			if err := s.InMemory().Destroy(t.Context(), d.IDs[0]); err == nil || acts != 1 || strings.Contains(err.Error(), cloudtest.Key) {
				t.Errorf("%s: fault %d: %v after %d requests", d.Kind, f, err, acts)
			}
		}
	}
}

// A stopped machine has no public address, and another after its next start.
func TestCloudAddressAfterStart(t *testing.T) {
	for _, d := range largeClouds(t) {
		p, id := cloudtest.New(t, d).InMemory(), d.IDs[0]
		first, err := p.(provider.Addresser).Address(t.Context(), id)
		if err != nil {
			t.Fatal(d.Kind, err)
		}
		if err := p.Stop(t.Context(), id); err != nil {
			t.Fatal(d.Kind, err)
		}
		if a, err := p.(provider.Addresser).Address(t.Context(), id); !errors.Is(err, provider.ErrNoAddress) {
			t.Errorf("%s: stopped: %+v, %v", d.Kind, a, err)
		}
		if err := p.Start(t.Context(), id); err != nil {
			t.Fatal(d.Kind, err)
		}
		if second, err := p.(provider.Addresser).Address(t.Context(), id); err != nil || second.Host == first.Host {
			t.Errorf("%s: %+v, %v, and before its stop %+v", d.Kind, second, err, first)
		}
	}
}

// A region that cannot be read makes no shorter list; an instance of another region
// is still told about.
func TestCloudRegions(t *testing.T) {
	d := cloudtest.Tencent(t)
	down := false
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		switch {
		case r.Header.Get("X-TC-Action") == "DescribeRegions":
			all := []any{}
			for i := range 20 {
				all = append(all, map[string]any{"Region": fmt.Sprintf("ap-%d", i), "RegionState": "AVAILABLE"})
			}
			cloudtest.SendJSON(w, 200, map[string]any{"Response": map[string]any{"RequestId": "r", "RegionSet": append(all, map[string]any{"Region": "ap-beijing", "RegionState": "AVAILABLE"})}})
		case r.Header.Get("X-TC-Region") == "ap-7" && down:
			d.Refuse(w, 500, "down")
		case r.Header.Get("X-TC-Region") != "ap-beijing":
			cloudtest.SendJSON(w, 200, map[string]any{"Response": map[string]any{"RequestId": "r", "TotalCount": 0, "InstanceSet": []any{}}})
		default:
			return false
		}
		return true
	})
	s := cloudtest.New(t, d)
	p := s.InMemory()
	if list, err := p.(provider.Importer).Import(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	down = true
	if list, err := p.(provider.Importer).Import(t.Context()); err == nil || !strings.Contains(err.Error(), "ap-7") {
		t.Errorf("%+v, %v", list, err)
	}
	s.Boxes[d.IDs[0]].State = "gone"
	if st, err := p.Status(t.Context(), d.IDs[0]); err != nil || st.State != provider.Gone {
		t.Errorf("%+v, %v: another region's fault does not matter here", st, err)
	}
}

// Both parts of a key are in variables, or in the keyring with ":" between; neither
// is told.
func TestCloudKeys(t *testing.T) {
	env := map[string]string{}
	k := provider.Keys{Getenv: func(n string) string { return env[n] }}
	_, _, err := k.Find("aws")
	if !errors.Is(err, provider.ErrNoKey) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,") {
		t.Errorf("%v", err)
	}
	env["AWS_ACCESS_KEY_ID"] = cloudtest.CloudID
	if _, _, err := k.Find("aws"); err == nil || errors.Is(err, provider.ErrNoKey) || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY is not") {
		t.Errorf("%v", err)
	}
	env["AWS_SECRET_ACCESS_KEY"] = cloudtest.Key
	if key, from, err := k.Find("aws"); err != nil || key.Reveal() != cloudtest.CloudID+":"+cloudtest.Key || from != "AWS_ACCESS_KEY_ID" {
		t.Errorf("%q from %s, %v", key.Reveal(), from, err)
	}
	env["AWS_SESSION_TOKEN"] = "token=="
	if key, _, err := k.Find("aws"); err != nil || key.Reveal() != cloudtest.CloudID+":"+cloudtest.Key+":token==" {
		t.Errorf("%q, %v", key.Reveal(), err)
	}
	for _, bad := range []string{cloudtest.Key, ":" + cloudtest.Key, cloudtest.CloudID + ":"} {
		if err := k.Save("tencent", provider.Secret(bad)); err == nil || !strings.Contains(err.Error(), "ID:SECRET") || strings.Contains(err.Error(), cloudtest.Key) {
			t.Errorf("%v", err)
		}
	}
}

// answers gives every request the same answer.
type answers []byte

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// Whatever an answer holds, nothing panics, and what is told is clean.
func FuzzCloudAnswers(f *testing.F) {
	for _, text := range []string{
		`<DescribeRegionsResponse><regionInfo><item><regionName>us-east-1</regionName></item></regionInfo></DescribeRegionsResponse>`,
		`<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><instanceState><name>stopped</name></instanceState><tagSet><item><key>Name</key><value>&#27;[31m</value></item></tagSet></item></instancesSet></item></reservationSet></DescribeInstancesResponse>`,
		`<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code></Error></Errors></Response>`,
		`{"RequestId":"r","Regions":{"Region":[{"RegionId":"cn-a"}]},"Instances":{"Instance":[{"InstanceId":"i-1","Status":"Stopped","GPUAmount":-1}]},"Disks":{"Disk":[null]}}`,
		`{"Response":{"RequestId":"r","RegionSet":[{"Region":"ap-a","RegionState":"AVAILABLE"}],"TotalCount":1,"InstanceSet":[{"InstanceId":"ins-1","InstanceState":"STOPPED","GPUInfo":{"GPUCount":0.5}}],"DiskSet":[null]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for kind, id := range map[string]string{"aws": "us-east-1/i-1", "alibaba": "cn-a/i-1", "tencent": "ap-a/ins-1"} {
			p, err := provider.New(kind, provider.Options{Key: func() (string, error) { return cloudtest.CloudID + ":" + cloudtest.Key, nil }, Transport: answers(text), Sleep: func(ctx context.Context, _ time.Duration) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			clean := func(texts ...string) {
				for _, s := range texts {
					if strings.ContainsFunc(s, unicode.IsControl) {
						t.Errorf("%s: %q holds control characters", kind, s)
					}
				}
			}
			st, err := p.Status(t.Context(), id)
			clean(st.Detail, fmt.Sprint(err))
			if err == nil && st.State == provider.Gone {
				t.Errorf("%s: gone, by a key that has not seen it", kind)
			}
			list, err := p.(provider.Importer).Import(t.Context())
			clean(fmt.Sprint(err))
			for _, in := range list {
				clean(in.ID, in.Name, in.GPU, in.Region, in.Address.SSH(), in.PerHour)
			}
			left, err := p.Leftovers(t.Context(), id, provider.Stopped)
			clean(fmt.Sprint(err))
			for _, l := range left {
				clean(l.ID, l.Name, l.Note, l.Kind)
			}
			b, err := p.(provider.Balancer).Balance(t.Context())
			clean(b.Cash, b.Currency, fmt.Sprint(err))
			if s := p.Stop(t.Context(), id); s != nil {
				clean(s.Error())
			}
		}
	})
}
