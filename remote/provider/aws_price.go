package provider

// What an instance of AWS costs: a spot instance by EC2's history of spot prices, any
// other by the price list,
// https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html.
// Whatever leaves a doubt about which price holds is not known.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func (e ec2) prices(ctx context.Context, in *Instance) {
	v, ok := in.read.(*awsInstance)
	if !ok || in.Status.State != Running && in.Status.State != Stopped {
		return
	}
	region, _ := placed(in.ID)
	switch {
	case v.Life == "spot" && in.Status.State == Running && (v.Runs == "" || v.Runs == "RunInstances"): // Linux
		in.PerHour, in.Currency = e.spotPrice(ctx, region, v), "USD"
	case v.Life == "" && len(v.Products) == 0:
		in.PerHour, in.Currency = e.listPrice(ctx, region, v)
	}
}

// spotPrice is the price that holds now: of a range, the API tells also the last
// change before it.
func (e ec2) spotPrice(ctx context.Context, region string, v *awsInstance) string {
	now := e.now().UTC().Format(time.RFC3339)
	found, err := awsList[struct {
		Price string `xml:"spotPrice"`
		Zone  string `xml:"availabilityZone"`
	}](ctx, e, region, "DescribeSpotPriceHistory", "spotPriceHistorySet", "InstanceType.1", v.Type, "AvailabilityZone", v.Zone,
		"ProductDescription.1", "Linux/UNIX", "StartTime", now, "EndTime", now)
	if err != nil || len(found) != 1 || found[0].Zone != v.Zone {
		return ""
	}
	return price(amount(jsonNumber(found[0].Price)))
}

// awsTenancy is a tenancy in the price list's words. A dedicated host is paid as a
// whole, not by its instances.
var awsTenancy = map[string]string{"": "Shared", "default": "Shared", "dedicated": "Dedicated"}

// listPrice is the price of an hour on demand, without what an account has agreed on:
// "" where the list does not have exactly one for just this machine.
func (e ec2) listPrice(ctx context.Context, region string, v *awsInstance) (perHour, currency string) {
	tenancy := awsTenancy[v.Tenancy]
	if v.Runs == "" || tenancy == "" {
		return "", ""
	}
	want := map[string]string{"instanceType": v.Type, "regionCode": region, "operation": v.Runs, "tenancy": tenancy, "capacitystatus": "Used"}
	home, currency := awsHome, "USD"
	if strings.HasPrefix(region, "cn-") { // a partition, and a list, of its own
		home, currency = "cn-northwest-1", "CNY"
	}
	products, err := e.products(ctx, home, want)
	if err != nil {
		return "", ""
	}
	for _, p := range products {
		if !p.is(want) {
			continue
		}
		one := p.onDemand(currency)
		if one == "" || perHour != "" && perHour != one {
			return "", ""
		}
		perHour = one
	}
	if perHour == "" {
		return "", ""
	}
	return perHour, currency
}

// awsProduct is an entry of the price list, as far as it matters.
type awsProduct struct {
	Product struct {
		Attributes map[string]string `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			Dimensions map[string]struct {
				Unit  string            `json:"unit"`
				Price map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// is compares what was asked for: a filter that the service does not know must not
// widen the answer.
func (p awsProduct) is(want map[string]string) bool {
	for name, value := range want {
		if p.Product.Attributes[name] != value {
			return false
		}
	}
	return true
}

// onDemand is the one price by the hour; "" where there are none or several.
func (p awsProduct) onDemand(currency string) string {
	if len(p.Terms.OnDemand) != 1 {
		return ""
	}
	for _, term := range p.Terms.OnDemand {
		if len(term.Dimensions) != 1 {
			return ""
		}
		for _, d := range term.Dimensions {
			if d.Unit == "Hrs" {
				return price(amount(jsonNumber(d.Price[currency])))
			}
		}
	}
	return ""
}

// products asks the price list, which is in few regions and knows all of them.
func (e ec2) products(ctx context.Context, home string, want map[string]string) ([]awsProduct, error) {
	type filter struct{ Type, Field, Value string }
	ask := struct {
		ServiceCode, FormatVersion string
		Filters                    []filter
		MaxResults                 int
		NextToken                  string `json:",omitempty"`
	}{ServiceCode: "AmazonEC2", FormatVersion: "aws_v1", MaxResults: 100}
	for name, value := range want {
		ask.Filters = append(ask.Filters, filter{"TERM_MATCH", name, value})
	}
	var out []awsProduct
	for range maxPages {
		var answer struct {
			PriceList []string
			NextToken string
		}
		if err := e.askPrices(ctx, home, ask, &answer); err != nil {
			return nil, err
		}
		for _, text := range answer.PriceList { // JSON in JSON
			var p awsProduct
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				return nil, fmt.Errorf("a product of the price list is not what its documentation says (%s)", shape(err))
			}
			out = append(out, p)
		}
		if ask.NextToken = answer.NextToken; ask.NextToken == "" {
			return out, nil
		}
	}
	return nil, errManyPages
}

func (e ec2) askPrices(ctx context.Context, home string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	base := e.base
	if e.own {
		base = "https://api.pricing." + home + ".amazonaws.com"
		if strings.HasPrefix(home, "cn-") {
			base += ".cn"
		}
	}
	req, err := http.NewRequestWithContext(scoped(asking(ctx), "pricing", home), http.MethodPost, base+"/", bytes.NewReader(body))
	if err != nil {
		return errors.New("the request could not be made")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AWSPriceListService.GetProducts")
	got, err := e.exchange(req)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("the answer is not what its documentation says (%s); nothing is known", shape(err))
	}
	return nil
}
