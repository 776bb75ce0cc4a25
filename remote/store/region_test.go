package store

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"rentop/remote"
	"rentop/remote/store/storetest"
)

// TestSeen: only the same provider's instance in the bucket's own region has it inside.
func TestSeen(t *testing.T) {
	t.Parallel()
	oss := Place{Endpoint: "https://oss-cn-hangzhou.aliyuncs.com"}
	cos := Place{Endpoint: "https://cos.ap-shanghai.myqcloud.com"}
	for _, c := range []struct {
		place        Place
		kind, region string
		internal     string
		inRegion     bool
	}{
		{oss, "alibaba", "cn-hangzhou", "https://oss-cn-hangzhou-internal.aliyuncs.com", false},
		{oss, "alibaba", "cn-beijing", "", false},
		{oss, "", "", "", false},
		{oss, "tencent", "cn-hangzhou", "", false},
		{Place{Endpoint: oss.Endpoint, Internal: "https://mine"}, "alibaba", "cn-hangzhou", "https://mine", false},
		{cos, "tencent", "ap-shanghai", "", true},
		{cos, "tencent", "ap-guangzhou", "", false},
		{cos, "aws", "ap-shanghai", "", false},
		{Place{Region: "us-west-2"}, "aws", "us-west-2", "", true},
		{Place{}, "aws", "us-east-1", "", false}, // no region is written: AWS is asked for it, and it may be any
		{Place{Endpoint: "https://s3.us-west-2.amazonaws.com"}, "aws", "us-west-2", "", true},
		{Place{Endpoint: "https://s3.cn-north-1.amazonaws.com.cn"}, "aws", "cn-north-1", "", true},
		{Place{Region: "us-west-2"}, "aws", "us-east-1", "", false},
		{Place{Endpoint: "https://minio.example"}, "aws", "us-east-1", "", false},
		{Place{Region: "us-west-2"}, "aws", "", "", false},
	} {
		got := c.place.Seen(c.kind, c.region)
		if got.Internal != c.internal || got.InRegion != c.inRegion {
			t.Errorf("%+v from %s %s: %q, %v", c.place, c.kind, c.region, got.Internal, got.InRegion)
		}
	}
}

// TestRouteInRegion: a name that should lead inside is believed by the address that it
// leads to.
func TestRouteInRegion(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	for _, in := range []bool{true, false} {
		c, err := Open(Place{Bucket: storetest.Bucket, Endpoint: s.URL, InRegion: in}, testKey, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if host, is, err := c.Route(t.Context(), remote.Local{}); err != nil || is != in || host == "" {
			t.Errorf("in region %v: %s %v %v", in, host, is, err)
		}
		c.Close()
	}
	for addr, inside := range map[string]bool{"10.0.0.1": true, "169.254.0.47": true, "100.100.2.1": true, "172.20.0.1": true, "192.168.1.1": true, "100.128.0.1": false, "43.1.2.3": false, "2001:db8::1": false} {
		if within(netip.MustParseAddr(addr)) != inside {
			t.Errorf("%s is inside: %v", addr, !inside)
		}
	}
	if within(netip.Addr{}) {
		t.Error("an address that is not known is inside")
	}
}
