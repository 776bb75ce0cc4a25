package provider_test

// The price list of AWS, in the shape of its documentation: products are JSON in JSON.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rentop/remote/provider"
)

// product is an entry of the list, as AWS writes it.
func product(instanceType, operation, tenancy, terms string) string {
	return fmt.Sprintf(`{"product":{"productFamily":"Compute Instance","attributes":{"instanceType":%q,"regionCode":"us-east-1","operation":%q,"tenancy":%q,"capacitystatus":"Used","operatingSystem":"Linux","usagetype":"BoxUsage:p4d.24xlarge","location":"US East (N. Virginia)","servicecode":"AmazonEC2"},"sku":"QXP7RBXZ8P2Q3H5T"},"serviceCode":"AmazonEC2","terms":%s,"version":"20261120182500","publicationDate":"2026-11-20T18:25:00Z"}`, instanceType, operation, tenancy, terms)
}

// onDemand are terms with prices of an hour; the reserved ones have no say.
func onDemand(unit string, usd ...string) string {
	var dims []string
	for i, p := range usd {
		dims = append(dims, fmt.Sprintf(`"QXP7RBXZ8P2Q3H5T.JRTCKXETXF.%d":{"unit":%q,"beginRange":"0","endRange":"Inf","description":"per On Demand Linux p4d.24xlarge Instance Hour","appliesTo":[],"pricePerUnit":{"USD":%q}}`, i, unit, p))
	}
	return `{"OnDemand":{"QXP7RBXZ8P2Q3H5T.JRTCKXETXF":{"priceDimensions":{` + strings.Join(dims, ",") + `},"sku":"QXP7RBXZ8P2Q3H5T","effectiveDate":"2026-11-01T00:00:00Z","offerTermCode":"JRTCKXETXF","termAttributes":{}}},"Reserved":{"QXP7RBXZ8P2Q3H5T.38NPMPTW36":{"priceDimensions":{"x":{"unit":"Hrs","pricePerUnit":{"USD":"11.1000000000"}}}}}}`
}

func writeProducts(w http.ResponseWriter, next string, list ...string) {
	json.NewEncoder(w).Encode(map[string]any{"FormatVersion": "aws_v1", "NextToken": next, "PriceList": append([]string{}, list...)})
}

// awsPriceList answers GetProducts in two pages, with a product beside the right one.
func awsPriceList(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
	var ask struct {
		ServiceCode, FormatVersion, NextToken string
		Filters                               []struct{ Type, Field, Value string }
	}
	if err := json.Unmarshal(body, &ask); err != nil || ask.ServiceCode != "AmazonEC2" || ask.FormatVersion != "aws_v1" || r.Header.Get("X-Amz-Target") != "AWSPriceListService.GetProducts" || len(ask.Filters) != 5 {
		s.t.Errorf("asked the price list %s: %v", body, err)
	}
	if r.URL.Host != "" && r.URL.Host != "api.pricing.us-east-1.amazonaws.com" {
		s.t.Errorf("the price list at %s", r.URL.Host)
	}
	if ask.NextToken == "" {
		writeProducts(w, "more", product("p4d.24xlarge", "RunInstances:0002", "Shared", onDemand("Hrs", "37.1886000000")))
		return
	}
	writeProducts(w, "", product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Hrs", "32.7726000000")))
}

// What leaves a doubt about the price is no price.
func TestAWSListPrice(t *testing.T) {
	t.Parallel()
	right := product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Hrs", "32.7726000000"))
	other := product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Hrs", "30.0000000000"))
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
		{"another kind", []string{product("p5.48xlarge", "RunInstances", "Shared", onDemand("Hrs", "98.32"))}, plain, ""},
		{"another system", []string{product("p4d.24xlarge", "RunInstances:0002", "Shared", onDemand("Hrs", "37.19"))}, plain, ""},
		{"two dimensions", []string{product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Hrs", "32.7726", "1"))}, plain, ""},
		{"another unit", []string{product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Quantity", "32.7726"))}, plain, ""},
		{"zero", []string{product("p4d.24xlarge", "RunInstances", "Shared", onDemand("Hrs", "0.0000000000"))}, plain, ""},
		{"no term", []string{product("p4d.24xlarge", "RunInstances", "Shared", `{}`)}, plain, ""},
		{"no JSON", []string{"{"}, plain, ""},
		{"dedicated", []string{product("p4d.24xlarge", "RunInstances", "Dedicated", onDemand("Hrs", "34.41"))}, "<tenancy>dedicated</tenancy>", "34.41"},
		{"on a host of its own", []string{right}, "<tenancy>host</tenancy>", ""},
		{"paid in advance", []string{right}, plain + "</placement><instanceLifecycle>capacity-block</instanceLifecycle><placement>", ""},
		{"with sold software", []string{right}, plain + "</placement><productCodes><item><productCode>p1</productCode><type>marketplace</type></item></productCodes><placement>", ""},
	} {
		d := awsDialect()
		serve := d.serve
		d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
			if r.Method == http.MethodPost {
				writeProducts(w, "", c.list...)
				return
			}
			serve(s, &replacing{w, plain, c.is}, r, body)
		}
		s := newStandIn(t, d)
		list, err := s.inMemory().(provider.Importer).Import(t.Context())
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
	d := awsDialect()
	serve := d.serve
	d.serve = func(s *standIn, w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.pricing#AccessDeniedException","message":"not authorized to perform: pricing:GetProducts"}`)
			return
		}
		serve(s, w, r, body)
	}
	list, err := newStandIn(t, d).inMemory().(provider.Importer).Import(t.Context())
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
