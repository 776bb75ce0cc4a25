// Where a bucket is.

package store

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"rentop/remote"
)

// Place is a bucket and a prefix in it.
type Place struct {
	Bucket string
	Prefix string // without a slash at either end; may be ""
	// Endpoint is the service's address, "https://host"; "" is AWS.
	Endpoint string
	// Internal is the address that reaches it without public traffic; "" where there
	// is none. It is used where the instance reaches it.
	Internal   string
	Region     string // "": us-east-1
	Addressing string // path, host or "": host where the service wants it
	// InRegion says that the instance is the same provider's, in the bucket's region,
	// where the usual address is without public traffic.
	InRegion bool
}

const awsEndpoint = "https://s3.amazonaws.com"

// IsURL says whether a destination is meant to be a bucket.
func IsURL(to string) bool { return strings.HasPrefix(to, "s3://") }

// ParseURL reads s3://bucket/prefix.
func ParseURL(to string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(to, "s3://")
	if !ok {
		return "", "", fmt.Errorf("%q is not s3://bucket/prefix", remote.Short(to, 120))
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	if err := s3utils.CheckValidBucketNameStrict(bucket); err != nil {
		return "", "", fmt.Errorf("%q names no bucket: 3 to 63 small letters, digits, dots and hyphens", remote.Short(to, 120))
	}
	prefix = strings.Trim(prefix, "/")
	if prefix != "" && (path.Clean("/"+prefix) != "/"+prefix || remote.Clean(prefix) != prefix || len(prefix) > maxKeySize/2) {
		return "", "", fmt.Errorf("the prefix in %q has an empty part, a . or .., or a character that cannot be shown", remote.Short(to, 120))
	}
	return bucket, prefix, nil
}

// Check says what is wrong with an address.
func (p Place) Check() error {
	for _, e := range []string{p.Endpoint, p.Internal} {
		if _, err := hostOf(e); e != "" && err != nil {
			return err
		}
	}
	if p.Addressing != "" && p.Addressing != "path" && p.Addressing != "host" {
		return fmt.Errorf("addressing is path (host/bucket/key) or host (bucket.host/key), not %q", remote.Short(p.Addressing, 40))
	}
	return nil
}

// URL is the place as it is configured.
func (p Place) URL() string { return "s3://" + path.Join(p.Bucket, p.Prefix) }

// key is the object's name for a path below the prefix.
func (p Place) key(rel string) string { return path.Join(p.Prefix, rel) }

// hostOf is the host of an endpoint.
func hostOf(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("an endpoint is https://host or http://host:port without a path, not %q", remote.Short(endpoint, 120))
	}
	return u, nil
}

// lookup is how the bucket is named to the host. OSS and COS know it in the host only.
func (p Place) lookup(host string) minio.BucketLookupType {
	switch {
	case p.Addressing == "path":
		return minio.BucketLookupPath
	case p.Addressing == "host" || p.Endpoint == "" || strings.HasSuffix(host, ".aliyuncs.com") || strings.HasSuffix(host, ".myqcloud.com") || strings.HasSuffix(host, ".amazonaws.com"):
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupPath
}

// checkName refuses what cannot be the name of an object, or what other programs
// would not bring back to its place.
func checkName(rel string) error {
	switch {
	case rel == "" || strings.HasPrefix(rel, "/") || path.Clean(rel) != rel || rel == ".." || strings.HasPrefix(rel, "../"):
		return errors.New("its path leads out of the destination")
	case rel == ManifestName:
		return fmt.Errorf("%s is the name of the manifest that rentop writes beside the artifacts; rename it", ManifestName)
	case s3utils.CheckValidObjectName(rel) != nil || strings.ContainsAny(rel, "\x00\r\n"):
		return errors.New("its name cannot be that of an object: it is not UTF-8, or has a line end")
	}
	return nil
}
