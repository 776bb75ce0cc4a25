package cloudtest

// The price list of AWS, in the shape of its documentation: products are JSON in JSON.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Product is an entry of the list, as AWS writes it.
func Product(instanceType, operation, tenancy, terms string) string {
	return fmt.Sprintf(`{"product":{"productFamily":"Compute Instance","attributes":{"instanceType":%q,"regionCode":"us-east-1","operation":%q,"tenancy":%q,"capacitystatus":"Used","operatingSystem":"Linux","usagetype":"BoxUsage:p4d.24xlarge","location":"US East (N. Virginia)","servicecode":"AmazonEC2"},"sku":"QXP7RBXZ8P2Q3H5T"},"serviceCode":"AmazonEC2","terms":%s,"version":"20261120182500","publicationDate":"2026-11-20T18:25:00Z"}`, instanceType, operation, tenancy, terms)
}

// OnDemand are terms with prices of an hour; the reserved ones have no say.
func OnDemand(unit string, usd ...string) string {
	var dims []string
	for i, p := range usd {
		dims = append(dims, fmt.Sprintf(`"QXP7RBXZ8P2Q3H5T.JRTCKXETXF.%d":{"unit":%q,"beginRange":"0","endRange":"Inf","description":"per On Demand Linux p4d.24xlarge Instance Hour","appliesTo":[],"pricePerUnit":{"USD":%q}}`, i, unit, p))
	}
	return `{"OnDemand":{"QXP7RBXZ8P2Q3H5T.JRTCKXETXF":{"priceDimensions":{` + strings.Join(dims, ",") + `},"sku":"QXP7RBXZ8P2Q3H5T","effectiveDate":"2026-11-01T00:00:00Z","offerTermCode":"JRTCKXETXF","termAttributes":{}}},"Reserved":{"QXP7RBXZ8P2Q3H5T.38NPMPTW36":{"priceDimensions":{"x":{"unit":"Hrs","pricePerUnit":{"USD":"11.1000000000"}}}}}}`
}

// WriteProducts answers with a page of the list.
func WriteProducts(w http.ResponseWriter, next string, list ...string) {
	json.NewEncoder(w).Encode(map[string]any{"FormatVersion": "aws_v1", "NextToken": next, "PriceList": append([]string{}, list...)})
}

// awsPriceList answers GetProducts in two pages, with a product beside the right one.
func awsPriceList(s *StandIn, w http.ResponseWriter, r *http.Request, body []byte) {
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
		WriteProducts(w, "more", Product("p4d.24xlarge", "RunInstances:0002", "Shared", OnDemand("Hrs", "37.1886000000")))
		return
	}
	WriteProducts(w, "", Product("p4d.24xlarge", "RunInstances", "Shared", OnDemand("Hrs", "32.7726000000")))
}
