package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// Off costs as much as running: in the state, in the price, before the choice.
func TestDigitalOceanOffIsCharged(t *testing.T) {
	s := cloudtest.New(t, cloudtest.DigitalOcean(t))
	p := s.InMemory()
	id := s.IDs[0]
	left, err := p.Leftovers(t.Context(), id, provider.Stopped)
	if err != nil || len(left) != 3 || left[0].Kind != "instance" || left[0].PerMonth != "4920.2" {
		t.Errorf("%+v, %v: want the droplet at 730 h of $6.74, its address and volume", left, err)
	}
	if err := p.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	st, err := p.Status(t.Context(), id)
	if err != nil || st.State != provider.Stopped || st.Billed == nil || !*st.Billed {
		t.Errorf("%+v, %v: want stopped and billed", st, err)
	}
	list, err := p.(provider.Importer).Import(t.Context())
	if err != nil || list[0].PerHour != "6.74" || list[0].WhileStopped != "6.74" || list[0].GPU != "nvidia_h100" {
		t.Errorf("%+v, %v", list, err)
	}
	if !strings.Contains(p.Can().StopKeepsCharging, "as much") {
		t.Error(p.Can().StopKeepsCharging)
	}
}

// What stays is told with its price before the end, and looked for after it.
func TestDigitalOceanLeftovers(t *testing.T) {
	s := cloudtest.New(t, cloudtest.DigitalOcean(t))
	p := s.InMemory()
	id := s.IDs[0]
	left, err := p.Leftovers(t.Context(), id, provider.Gone)
	if got := fmt.Sprint(left); err != nil || got != "[{ip 6186 45.55.96.47 4 USD } {volume v-1 data 10 USD }]" {
		t.Errorf("%v, %v", got, err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	left, err = p.Leftovers(t.Context(), id, provider.Gone)
	if got := fmt.Sprint(left); err != nil || got != "[{volume v-2 old  USD 50 GB, on no droplet} {ip 45.55.96.47   USD on no droplet}]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDigitalOceanBalanceIsOwed(t *testing.T) {
	b, err := cloudtest.New(t, cloudtest.DigitalOcean(t)).InMemory().(provider.Balancer).Balance(t.Context())
	if err != nil || b.Cash != "-23.44" {
		t.Errorf("%+v, %v", b, err)
	}
}

// The recorded examples themselves are as the recorded model says.
func TestDigitalOceanExamples(t *testing.T) {
	d := cloudtest.DigitalOcean(t)
	for name, ex := range cloudtest.YAML(t, "resources_droplets_responses_examples.yml") {
		text, err := json.Marshal(ex.(map[string]any)["value"])
		if err != nil {
			t.Fatal(err)
		}
		if name == "droplet_create_response" || name == "droplet_multi_create_response" {
			continue
		}
		if err := d.Shaped(nil, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
