package provider

// What the three large clouds have in common: a key of two parts that signs and is
// never sent, regions, and refusals that are told by codes. Their ids are
// "REGION/ID" here: an id alone does not say whom to ask.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

// regionsAtOnce bounds the questions that are under way together.
const regionsAtOnce = 8

// pair is a key of two parts; a session's, which ends, has a token too.
type pair struct{ id, secret, token string }

func pairOf(key string) (pair, error) {
	parts := strings.SplitN(key, ":", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return pair{}, errors.New("this key has two parts: write them as ID:SECRET")
	}
	p := pair{id: parts[0], secret: parts[1]}
	if len(parts) == 3 {
		p.token = parts[2]
	}
	return p, nil
}

// placed cuts an id into its region and the provider's own id.
func placed(id string) (region, own string) {
	region, own, ok := strings.Cut(id, "/")
	if !ok {
		return "", id
	}
	return region, own
}

// RegionOf is the region in an instance's id; "" where such ids have none.
func RegionOf(kind, id string) string {
	switch kind {
	case "aws", "alibaba", "tencent":
		region, _ := placed(id)
		return region
	}
	return ""
}

// checkPlaced says what is wrong with an id; its region becomes part of a host.
func checkPlaced(id, prefix string) string {
	region, own := placed(id)
	if region == "" || len(region) > 40 || strings.Trim(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(region, "-") != region {
		return `an id here has its region before it, like "REGION/` + prefix + `…": copy it from rentop import`
	}
	if !strings.HasPrefix(own, prefix) || own == prefix {
		return `an id here begins with "` + prefix + `" after its region: copy it from rentop import`
	}
	return idOf(own, lettersDigits+"-")
}

// everywhere lists all regions. One that cannot be read is an error: the list would
// be shorter than what costs money.
func everywhere(ctx context.Context, regions []string, list func(ctx context.Context, region string) ([]Instance, error)) ([]Instance, error) {
	if len(regions) == 0 {
		return nil, errNoList
	}
	found := make([][]Instance, len(regions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(regionsAtOnce)
	for i, region := range regions {
		g.Go(func() error {
			if why := checkPlaced(region+"/i-0", "i-"); why != "" {
				return fmt.Errorf("it names an impossible region, %q", remote.Short(region, 40))
			}
			var err error
			if found[i], err = list(ctx, region); err != nil {
				return fmt.Errorf("in %s: %w", region, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// codes are the beginnings of a service's codes by what they mean for us; what is
// in none of them is told as it is.
type codes struct {
	absent []string // of an instance or a snapshot, never of a key
	state  []string // what was wanted may be so already
	stock  []string // no machine is free
	key    []string
	rights []string
	clock  []string
	slow   []string // too many requests: nothing was done
}

// read has w tell refusals and throttling by the codes that told finds in an answer;
// it gives the HTTP status that they mean, and no code where there is none.
func (c codes) read(w *web, told func(status int, body []byte) (means int, code, said string)) {
	w.refusal = func(status int, body []byte) error {
		status, code, said := told(status, body)
		if code == "" {
			return nil
		}
		return c.refusal(status, code, said)
	}
	w.slowed = func(status int, body []byte) bool {
		_, code, _ := told(status, body)
		return has(c.slow, code)
	}
}

// imaged makes an image of a name that no other has. The same name again is the
// same image: create may have done it and its answer been lost.
func imaged(region, name, currency string, named func() (Snapshot, bool, error), create func() (id string, err error)) (Snapshot, error) {
	if s, ok, err := named(); ok || err != nil {
		return s, err
	}
	id, err := create()
	if errors.Is(err, errState) { // the name may be taken by now
		if s, ok, err := named(); ok && err == nil {
			return s, nil
		}
	}
	switch {
	case err != nil:
		return Snapshot{}, err
	case id == "":
		return Snapshot{}, errors.New("the answer names no image; look in the console")
	}
	return Snapshot{ID: region + "/" + text(id), Name: name, Currency: currency}, nil
}

func has(list []string, code string) bool {
	return slices.ContainsFunc(list, func(c string) bool { return strings.HasPrefix(code, c) })
}

// refusal says what a code means and what to do about it.
func (c codes) refusal(status int, code, said string) error {
	what := "it refused: " + remote.Short(strings.TrimSpace(code+" "+said), 200)
	switch {
	case has(c.absent, code):
		return fmt.Errorf("%s: %w", what, errAbsent)
	case has(c.slow, code) || status == rateLimited:
		return errors.New(what + "; too many requests, wait a minute")
	case has(c.stock, code):
		return refused(what + "; no such machine is free now: it stays as it is, its disks cost on; try again later, or release it")
	case has(c.clock, code):
		return errors.New(what + "; the clock of this computer is wrong")
	case has(c.key, code):
		return errors.New(what + "; the key is not accepted: make a new one in the provider's console")
	case has(c.rights, code):
		return errors.New(what + "; the key may not do this: give it the permission in the provider's console")
	case has(c.state, code):
		return refused(what)
	case status >= http.StatusInternalServerError:
		return errors.New(what + "; the provider has a fault, what it did is not known")
	}
	return errors.New(what)
}

// imageName names an image after its instance too: what it was made of is not told
// for all images, and the same name again is the same image.
func imageName(name, own string, longest int) string {
	name, end := plainName(name), "-"+own
	if len(name)+len(end) > longest {
		name = name[:max(0, longest-len(end))]
	}
	return name + end
}

// yes and no are answers of a *bool.
func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }
