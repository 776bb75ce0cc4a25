package provider_test

// Every provider passes the suite against a real server that speaks its dialect, and
// tells nothing untrue through stories of faults.

import (
	"net/http/httptest"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
	"rentop/remote/provider/providertest"
)

func TestConforms(t *testing.T) {
	for _, cloud := range cloudtest.Clouds() {
		t.Run(cloud.Kind, func(t *testing.T) {
			t.Parallel()
			d := cloud.Make(t)
			providertest.Run(t, func(t *testing.T) providertest.Harness {
				s := cloudtest.New(t, d)
				server := httptest.NewServer(s)
				t.Cleanup(server.Close)
				return providertest.Harness{
					Provider: s.Over(server.URL, nil, nil), ID: d.IDs[0], Missing: d.IDs[2], Secret: cloudtest.Key, Other: d.IDs[1],
					Break: s.Break, Hang: s.Hang, OtherAccount: s.Forget,
					Lag:   func() func() { s.Lag(); return s.Settle },
					Truth: func(id string) provider.State { return cloudtest.StateOf(s.Truth(id)) },
				}
			})
		})
	}
}

func TestFaults(t *testing.T) {
	for _, cloud := range cloudtest.Providers() {
		t.Run(cloud.Kind, func(t *testing.T) {
			t.Parallel()
			chaos(t, cloud.Make(t))
		})
	}
}
