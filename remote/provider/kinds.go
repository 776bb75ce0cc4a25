package provider

// The providers that have an API, by name. A new one is a line here.

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// API describes a provider that is reached with a key.
type API struct {
	Kind    string // as in provider = "…"
	Title   string // its own name
	Env     string // the variable that may hold the key
	Console string // where a key is made
	Billed  string // what is counted, as in rate.billed; "" where not known
	Minimum string // the least that each start is billed, as in rate.minimum
	// Parts are the variables of a key's further parts, nil for a key of one part.
	// All but the last must be there; a kept key has them with ":" between.
	Parts []string
	make  func(Options) (driver, error)
}

// APIs lists them, sorted by Kind.
func APIs() []API {
	return []API{
		{"alibaba", "Alibaba Cloud ECS", "ALIBABA_CLOUD_ACCESS_KEY_ID", "https://ram.console.aliyun.com/manage/ak", "second", "",
			[]string{"ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"}, newAlibaba},
		{"autodl", "AutoDL", "AUTODL_TOKEN", "https://www.autodl.com/console/account/setting", "second", "", nil, newAutoDL},
		{"aws", "AWS EC2", "AWS_ACCESS_KEY_ID", "https://console.aws.amazon.com/iam", "second", "60s",
			[]string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, newAWS},
		{"digitalocean", "DigitalOcean", "DIGITALOCEAN_TOKEN", "https://cloud.digitalocean.com/account/api/tokens", "second", "60s", nil, newDigitalOcean},
		{"hyperstack", "Hyperstack", "HYPERSTACK_API_KEY", "https://console.hyperstack.cloud/api-keys", "minute", "", nil, newHyperstack},
		{"lambda", "Lambda", "LAMBDA_API_KEY", "https://cloud.lambda.ai/api-keys", "minute", "", nil, newLambda},
		{"runpod", "RunPod", "RUNPOD_API_KEY", "https://console.runpod.io/user/settings", "second", "", nil, newRunPod},
		{"tencent", "Tencent Cloud CVM", "TENCENTCLOUD_SECRET_ID", "https://console.cloud.tencent.com/cam/capi", "second", "",
			[]string{"TENCENTCLOUD_SECRET_KEY", "TENCENTCLOUD_TOKEN"}, newTencent},
		{"vast", "Vast.ai", "VAST_API_KEY", "https://console.vast.ai/account", "second", "", nil, newVast},
	}
}

// KeyForm is how a person writes the key where it is one line: "API key", or its
// parts.
func (a API) KeyForm() string {
	if a.Parts == nil {
		return "API key"
	}
	return "API key as ID:SECRET"
}

// FindAPI gives the provider of that kind.
func FindAPI(kind string) (API, bool) {
	all := APIs()
	i := slices.IndexFunc(all, func(a API) bool { return a.Kind == kind })
	if i < 0 {
		return API{}, false
	}
	return all[i], true
}

// Kinds are the names, for messages and completion.
func Kinds() []string {
	var out []string
	for _, a := range APIs() {
		out = append(out, a.Kind)
	}
	return out
}

func envOf(kind string) string {
	a, ok := FindAPI(kind)
	if !ok {
		return strings.ToUpper(kind) + "_API_KEY"
	}
	return a.Env
}

// Options say what a provider with an API is made of.
type Options struct {
	Key func() (string, error) // asked before each request
	// Seen remembers over restarts what the key has seen; nil: for this process.
	Seen Seen
	// The rest is for tests: nothing is the provider's own.
	Base      string
	Transport http.RoundTripper
	Sleep     func(context.Context, time.Duration) error
	Now       func() time.Time
}

// New makes the provider of that kind. It asks nothing yet: a missing key is an
// error of the first call.
func New(kind string, o Options) (Provider, error) {
	a, ok := FindAPI(kind)
	if !ok {
		return nil, fmt.Errorf("the provider %q is not known; there are %s", kind, strings.Join(Kinds(), ", "))
	}
	if o.Seen == nil {
		o.Seen = &seen{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d, err := a.make(o)
	if err != nil {
		return nil, err
	}
	who := func() (string, error) {
		key, err := o.Key()
		if err != nil {
			return "", err
		}
		return fingerprint(key), nil
	}
	return &rented{d: d, who: who, seen: o.Seen}, nil
}
