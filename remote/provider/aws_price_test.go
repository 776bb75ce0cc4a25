package provider_test

// The price list of AWS, in the shape of its documentation: products are JSON in JSON.

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
	"rentop/remote/provider/cloudtest"
)

// What leaves a doubt about the price is no price.
func TestAWSListPrice(t *testing.T) {
	t.Parallel()
	right := cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Hrs", "32.7726000000"))
	other := cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Hrs", "30.0000000000"))
	const plain = "<tenancy>default</tenancy>"
	for _, c := range []struct {
		what string
		list []string
		is   string // in place of plain
		want string
	}{
		{"one", []string{right}, plain, "32.7726"},
		{"the same twice", []string{right, right}, plain, "32.7726"},
		{"none", nil, plain, ""},
		{"two prices", []string{right, other}, plain, ""},
		{"another kind", []string{cloudtest.Product("p5.48xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Hrs", "98.32"))}, plain, ""},
		{"another system", []string{cloudtest.Product("p4d.24xlarge", "RunInstances:0002", "Shared", cloudtest.OnDemand("Hrs", "37.19"))}, plain, ""},
		{"two dimensions", []string{cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Hrs", "32.7726", "1"))}, plain, ""},
		{"another unit", []string{cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Quantity", "32.7726"))}, plain, ""},
		{"zero", []string{cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", cloudtest.OnDemand("Hrs", "0.0000000000"))}, plain, ""},
		{"no term", []string{cloudtest.Product("p4d.24xlarge", "RunInstances", "Shared", `{}`)}, plain, ""},
		{"no JSON", []string{"{"}, plain, ""},
		{"dedicated", []string{cloudtest.Product("p4d.24xlarge", "RunInstances", "Dedicated", cloudtest.OnDemand("Hrs", "34.41"))}, "<tenancy>dedicated</tenancy>", "34.41"},
		{"on a host of its own", []string{right}, "<tenancy>host</tenancy>", ""},
		{"paid in advance", []string{right}, plain + "</placement><instanceLifecycle>capacity-block</instanceLifecycle><placement>", ""},
		{"with sold software", []string{right}, plain + "</placement><productCodes><item><productCode>p1</productCode><type>marketplace</type></item></productCodes><placement>", ""},
	} {
		d := cloudtest.AWS(t)
		serve := d.Serve
		d.Serve = func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
			if r.Method == http.MethodPost {
				cloudtest.WriteProducts(w, "", c.list...)
				return
			}
			serve(s, &replacing{w, plain, c.is}, r, body)
		}
		s := cloudtest.New(t, d)
		list, err := s.InMemory().(provider.Importer).Import(t.Context())
		if err != nil || len(list) != 2 {
			t.Fatalf("%s: %v, %v", c.what, list, err)
		}
		if got := list[0].PerHour; got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// A key that may not read prices still lists what it rents.
func TestAWSPriceRefused(t *testing.T) {
	t.Parallel()
	d := cloudtest.AWS(t)
	d.Instead(func(s *cloudtest.StandIn, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.pricing#AccessDeniedException","message":"not authorized to perform: pricing:GetProducts"}`)
			return true
		}
		return false
	})
	list, err := cloudtest.New(t, d).InMemory().(provider.Importer).Import(t.Context())
	if err != nil || len(list) != 2 || list[0].PerHour != "" || list[0].GPU != "A100" {
		t.Errorf("%+v, %v", list, err)
	}
}

// replacing writes with one text in place of another.
type replacing struct {
	http.ResponseWriter
	old, new string
}

func (r *replacing) Write(p []byte) (int, error) {
	_, err := r.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), r.old, r.new)))
	return len(p), err
}
