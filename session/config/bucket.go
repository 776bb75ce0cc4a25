package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/store"
)

// Bucket is where a bucket of s3://NAME/… is. Its keys are in the environment or the
// OS keyring.
type Bucket struct {
	Endpoint   string `toml:"endpoint,omitempty"`   // https://host; "" is AWS
	Internal   string `toml:"internal,omitempty"`   // the same without public traffic, from the provider's own network
	Region     string `toml:"region,omitempty"`     // "": us-east-1
	Addressing string `toml:"addressing,omitempty"` // path or host
}

// Place is the place in a bucket that an s3:// URL names.
func (f *File) Place(to string) (store.Place, error) {
	name, prefix, err := store.ParseURL(to)
	if err != nil {
		return store.Place{}, err
	}
	b := f.Bucket[name]
	return store.Place{Bucket: name, Prefix: prefix, Endpoint: b.Endpoint, Internal: b.Internal, Region: b.Region, Addressing: b.Addressing}, nil
}

func (f *File) checkBuckets() string {
	for name, b := range f.Bucket {
		p := store.Place{Bucket: name, Endpoint: b.Endpoint, Internal: b.Internal, Region: b.Region, Addressing: b.Addressing}
		if _, _, err := store.ParseURL("s3://" + name); err != nil {
			return fmt.Sprintf("bucket.%s: %v", remote.Short(name, 64), err)
		}
		if err := p.Check(); err != nil {
			return fmt.Sprintf("bucket.%s: %v", name, err)
		}
	}
	return ""
}

// otherPlace is a destination that is no folder here: a URL, or INSTANCE:PATH (one
// letter is a Windows drive).
var otherPlace = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://|^[A-Za-z0-9_.-]{2,}:`)

// Elsewhere says whether to is a bucket or a path on another instance.
func Elsewhere(to string) bool { return otherPlace.MatchString(to) }

func (a Artifact) check(own string) string {
	if a.Path == "" || a.To == "" {
		return "each artifact needs path (on the instance) and to"
	}
	if u, err := url.Parse(a.To); err == nil && len(u.Scheme) > 1 && strings.Contains(a.To, "://") {
		if u.Scheme != "s3" {
			return fmt.Sprintf("to = %q: a local folder, s3://bucket/path, or INSTANCE:PATH", remote.Clean(a.To))
		}
		if _, _, err := store.ParseURL(a.To); err != nil {
			return "to: " + err.Error()
		}
	} else if name, path, _ := strings.Cut(a.To, ":"); Elsewhere(a.To) && (name == own || path == "") {
		return fmt.Sprintf("to = %q: name another instance and a path there", remote.Clean(a.To))
	}
	if a.Every != "" {
		if d, err := time.ParseDuration(a.Every); err != nil || d < time.Second {
			return fmt.Sprintf(`every is a time such as "5m", not %q`, remote.Clean(a.Every))
		}
	}
	if a.Keep < 0 {
		return "keep is how many checkpoints stay at the destination, the newest; leave it out for all"
	}
	return ""
}
