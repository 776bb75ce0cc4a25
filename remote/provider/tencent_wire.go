package provider

// How Tencent Cloud is asked: its own common client over our HTTP client, refusals
// inside HTTP 200, lists by their offset.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common"
	tchttp "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/http"
	"github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/common/profile"

	"rentop/remote"
)

// tencentCodes: https://cloud.tencent.com/document/api/213/30435, as errors.go of its client has them (2026-08).
func tencentCodes() codes {
	return codes{
		absent: []string{"InvalidInstanceId.NotFound", "ResourceNotFound.InvalidInstanceIdNotFound", "InvalidImageId.NotFound"},
		state: []string{"InvalidInstanceState", "InvalidInstance.NotSupported", "OperationDenied.InstanceOperationInProgress", "UnsupportedOperation", "MutexOperation",
			"InvalidImageName.Duplicate", "FailedOperation.InvalidImageState"},
		stock:  []string{"ResourceInsufficient", "ResourcesSoldOut", "ResourceUnavailable"},
		clock:  []string{"AuthFailure.SignatureExpire"},
		key:    []string{"AuthFailure.SecretIdNotFound", "AuthFailure.SignatureFailure", "AuthFailure.InvalidSecretId", "AuthFailure.TokenFailure", "AuthFailure.InvalidAuthorization"},
		rights: []string{"AuthFailure.UnauthorizedOperation", "UnauthorizedOperation"},
		slow:   []string{"RequestLimitExceeded"},
	}
}

func tencentError(body []byte) (code, said string) {
	var v struct {
		Response struct {
			Error struct{ Code, Message string }
		}
	}
	if json.Unmarshal(body, &v) != nil {
		return "", ""
	}
	return v.Response.Error.Code, v.Response.Error.Message
}

// tencentWire carries one request of the client, and keeps why it failed: the
// client's own errors quote whole answers.
type tencentWire struct {
	w   *web
	err error
}

func (t *tencentWire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	resp, err := t.w.RoundTrip(req)
	if err == nil {
		body, err = io.ReadAll(resp.Body) // whole and bounded: see once
	}
	if err == nil {
		err = t.w.judge(resp, body) // a redirect too: the client would follow it
	}
	if err != nil {
		t.err = err
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// tencentAnswer takes an answer as it is.
type tencentAnswer struct{ body []byte }

func (a *tencentAnswer) ParseErrorFromHTTPResponse(body []byte) error { // it was judged already
	a.body = body
	return nil
}

func (a *tencentAnswer) UnmarshalJSON([]byte) error { return nil }

// request asks a service for an action, and reads what is in Response into out.
func (t tencent) request(ctx context.Context, region, service, version, action string, in map[string]any, out any) error {
	key, err := t.key()
	if err != nil {
		return err
	}
	p, err := pairOf(key)
	if err != nil {
		return err
	}
	how := profile.NewClientProfile()
	how.Language = "en-US"
	how.HttpProfile.ReqTimeout = 0 // each try has its own
	how.HttpProfile.Scheme = "https"
	how.HttpProfile.Endpoint = service + ".tencentcloudapi.com"
	if !t.own {
		how.HttpProfile.Scheme, how.HttpProfile.Endpoint, _ = strings.Cut(t.base, "://")
	}
	req := tchttp.NewCommonRequest(service, version, action)
	req.SetContext(ctx)
	if in == nil {
		in = map[string]any{}
	}
	if err := req.SetActionParameters(in); err != nil {
		return errors.New("the request could not be made")
	}
	wire, answer := &tencentWire{w: t.web}, &tencentAnswer{}
	client := common.NewCommonClient(common.NewTokenCredential(p.id, p.secret, p.token), region, how).WithHttpTransport(wire)
	err = client.Send(req, answer)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case wire.err != nil:
		return wire.err
	case err != nil:
		return t.hide(errors.New("the client says: " + remote.Short(err.Error(), 120)))
	}
	var whole struct {
		Response json.RawMessage
	}
	var id struct{ RequestId string } // each answer has it
	err = json.Unmarshal(answer.body, &whole)
	if err == nil {
		err = json.Unmarshal(whole.Response, &id)
	}
	if err == nil && id.RequestId == "" {
		err = errNoList
	}
	if err == nil {
		err = json.Unmarshal(whole.Response, out)
	}
	if err != nil {
		return fmt.Errorf("the answer is not what its documentation says (%s); nothing is known", remote.Short(shape(err), 120))
	}
	return nil
}

func (t tencent) ask(ctx context.Context, region, service, action string, in map[string]any, out any) error {
	return t.request(asking(ctx), region, service, cvmVersion, action, in, out)
}

// tencentFilter is one condition of a list.
func tencentFilter(name string, values ...string) map[string]any {
	return map[string]any{"Filters": []any{map[string]any{"Name": name, "Values": values}}}
}

// tencentPages reads a whole list called set.
func tencentPages[T any](ctx context.Context, t tencent, region, service, action, set string, in map[string]any) ([]T, error) {
	var out []T
	for range maxPages {
		more := map[string]any{"Offset": len(out), "Limit": tencentPage}
		for k, v := range in {
			more[k] = v
		}
		var answer map[string]json.RawMessage
		if err := t.ask(ctx, region, service, action, more, &answer); err != nil {
			return nil, err
		}
		var page []T
		var total *int
		if json.Unmarshal(answer["TotalCount"], &total) != nil || total == nil || json.Unmarshal(answer[set], &page) != nil {
			return nil, errNoList
		}
		if out = append(out, page...); len(out) >= *total {
			return out, nil
		}
		if len(page) == 0 {
			return nil, fmt.Errorf("the list has %d entries of %d; nothing is known", len(out), *total)
		}
	}
	return nil, errManyPages
}
