// What a provider's own instances have of a bucket in their region.

package store

import "strings"

// Seen is the place as an instance of that provider in that region sees it: without
// public traffic, where the bucket is there too. An internal address that is
// configured stays. Sources: OSS, "access OSS by internal endpoints"; COS, "internal and
// public access"; AWS, "data transfer" on the page of S3's prices.
func (p Place) Seen(kind, region string) Place {
	endpoint := p.Endpoint
	if endpoint == "" {
		endpoint = awsEndpoint
	}
	u, err := hostOf(endpoint)
	if err != nil || region == "" {
		return p
	}
	switch host := u.Hostname(); kind {
	case "alibaba":
		own := "oss-" + region
		if p.Internal == "" && host == own+".aliyuncs.com" {
			p.Internal = u.Scheme + "://" + own + "-internal.aliyuncs.com"
		}
	case "tencent": // its names lead inside from there
		p.InRegion = host == "cos."+region+".myqcloud.com"
	case "aws":
		p.InRegion = p.Endpoint == "" && p.Region == region || strings.TrimSuffix(host, ".cn") == "s3."+region+".amazonaws.com"
	}
	return p
}
