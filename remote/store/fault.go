// What storage says no with, and what to do about it.

package store

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"rentop/remote"
)

// Fault is a refusal of the storage. Its text says what to do.
type Fault struct {
	Status  int
	Code    string // as S3 names it; "" where the answer had none
	Message string
	Skew    time.Duration // the storage's clock less ours; where it was measured
}

func (f *Fault) Error() string {
	what := f.Code
	if what == "" {
		what = fmt.Sprintf("it answered %d", f.Status)
	}
	if f.Message != "" {
		what += " (" + f.Message + ")"
	}
	if cure := f.cure(); cure != "" {
		what += "; " + cure
	}
	return what
}

func (f *Fault) cure() string {
	switch f.Code {
	case "AccessDenied", "Forbidden":
		return "the key may not do this: it needs the permissions that docs/artifacts.md lists"
	case "InvalidAccessKeyId", "InvalidAccessKey", "XAdminUserNotFound":
		return "the key is not known there: is it this service's, and still valid?"
	case "SignatureDoesNotMatch":
		return "the secret does not fit the key's id, or region or addressing in [bucket] are not the bucket's"
	case "RequestTimeTooSkewed":
		if f.Skew != 0 {
			return fmt.Sprintf("this computer's clock and the storage's are %v apart: set the clock, signatures hold for 15 minutes", f.Skew.Abs().Round(time.Second))
		}
		return "this computer's clock is wrong: set it, signatures hold for 15 minutes"
	case "NoSuchBucket":
		return "make the bucket, or correct its name, endpoint or region"
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "the bucket is in another region: set region (and endpoint) for it in [bucket]"
	case "QuotaExceeded", "XMinioStorageFull", "StorageFull", "InsufficientStorage", "AccountQuotaExceeded":
		return "the storage is full: make room or raise its quota, then run it again; parts that are there stay"
	case "UserDisable", "AccountProblem", "InvalidPayer":
		return "the account has a problem, unpaid perhaps: look into its console"
	}
	switch {
	case f.Status == http.StatusInsufficientStorage:
		return "the storage is full: make room or raise its quota, then run it again; parts that are there stay"
	case f.Status == http.StatusForbidden && f.Code == "":
		return "something between refused it, or the key may not do this"
	case f.Status >= 300 && f.Status < 400:
		return "the bucket is elsewhere: set region and endpoint for it in [bucket]"
	}
	return ""
}

// full says whether there is no room.
func (f *Fault) full() bool { return strings.Contains(f.cure(), "is full") }

// expired says whether a URL was signed too long ago: a new one may do.
func (f *Fault) expired() bool {
	said := strings.ToLower(f.Message)
	return f.Code == "ExpiredToken" || f.Code == "RequestExpired" || f.Code == "AccessDenied" && strings.Contains(said, "expired")
}

// passing says whether the same may go well a little later.
func (f *Fault) passing() bool {
	switch f.Code {
	case "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "OperationAborted", "Throttling", "QpsLimitExceeded":
		return true
	}
	return !f.full() && (f.Status >= 500 || f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout)
}

// everywhere says whether no other file would fare better.
func (f *Fault) everywhere() bool {
	switch f.Code {
	case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "XAdminUserNotFound", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "NoSuchBucket", "PermanentRedirect", "AuthorizationHeaderMalformed", "UserDisable":
		return !f.expired()
	}
	return f.full()
}

// told is what the library made of an answer, as ours.
func (c *Client) told(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	r := minio.ToErrorResponse(err)
	if r.Code == "" && r.StatusCode == 0 || r.StatusCode == 0 && r.Server == "" && r.Code == "InternalError" {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // its URL is signed
		}
		return fmt.Errorf("%s does not answer: %s", c.host(), remote.Short(err.Error(), 300))
	}
	f := &Fault{Status: r.StatusCode, Code: remote.Short(r.Code, 60), Message: remote.Short(r.Message, 200), Skew: c.skew()}
	if f.Code == "AccessDenied" && f.Skew.Abs() > 14*time.Minute { // a HEAD's answer has no words
		f.Code, f.Message = "RequestTimeTooSkewed", ""
	}
	return f
}

// faultOf reads the body of an answer that came to the instance: it may be anything.
func faultOf(status int, body []byte) *Fault {
	f := &Fault{Status: status}
	var e struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	if i := strings.Index(string(body), "<Error>"); i >= 0 && xml.Unmarshal(body[i:], &e) == nil {
		f.Code, f.Message = remote.Short(e.Code, 60), remote.Short(e.Message, 200)
	}
	return f
}

// absent says whether err is that nothing is there.
func absent(err error) bool {
	var f *Fault
	return errors.As(err, &f) && (f.Code == "NoSuchKey" || f.Code == "NotFound" || f.Code == "NoSuchUpload" || f.Status == http.StatusNotFound && f.Code != "NoSuchBucket")
}
