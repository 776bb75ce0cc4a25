// The calls that this computer makes itself: all but the content.

package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"rentop/remote"
	"rentop/remote/agent/link"
)

// Options of Open. The zero value is the real world.
type Options struct {
	Transport http.RoundTripper // nil: ours, closed by Close
	Now       func() time.Time  // nil: time.Now
	Sleep     func(context.Context, time.Duration) error
	// Helper starts the service of package hand on the instance, where neither curl nor
	// python3 is; nil: there is none.
	Helper func(context.Context) (link.Link, error)
}

// Client speaks to one place. It may be used from several goroutines.
type Client struct {
	place  Place
	public *minio.Core
	signer atomic.Pointer[minio.Core] // of the URLs that the instance gets
	own    *http.Transport            // nil where Options gave one
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	skewed atomic.Int64 // the storage's clock less ours
	plain  atomic.Bool  // the storage refuses checksums
	part   func(size int64) int64
	valid  time.Duration
	hands  int // workers on the instance
	helper func(context.Context) (link.Link, error)
}

// Open checks a place and a key. Nothing is asked yet.
func Open(p Place, k Key, o Options) (*Client, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	c := &Client{place: p, now: o.Now, sleep: o.Sleep, part: partSize, valid: validFor, hands: workers, helper: o.Helper}
	if c.now == nil {
		c.now = time.Now
	}
	if c.sleep == nil {
		c.sleep = remote.Sleep
	}
	next := o.Transport
	if next == nil {
		c.own = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: lookers, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, ForceAttemptHTTP2: true}
		next = c.own
	}
	var err error
	if c.public, err = c.core(p.Endpoint, k, next); err != nil {
		return nil, err
	}
	c.signer.Store(c.public)
	if p.Internal != "" {
		inner, err := c.core(p.Internal, k, next)
		if err != nil {
			return nil, err
		}
		c.signer.Store(inner) // until Reach says that it does not get there
	}
	return c, nil
}

// Close ends idle connections.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Place is what was opened.
func (c *Client) Place() Place { return c.place }

func (c *Client) core(endpoint string, k Key, next http.RoundTripper) (*minio.Core, error) {
	region := c.place.Region
	if endpoint == "" {
		endpoint = awsEndpoint // asks for the region where none is set
	} else if region == "" {
		region = "us-east-1"
	}
	u, err := hostOf(endpoint)
	if err != nil {
		return nil, err
	}
	return minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(k.ID, k.Secret, k.Token),
		Secure: u.Scheme == "https", Region: region, Transport: watching{c, next},
		BucketLookup: c.place.lookup(u.Hostname()), MaxRetries: 3,
	})
}

// watching sees the storage's clock.
type watching struct {
	c    *Client
	next http.RoundTripper
}

func (w watching) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil {
		if at, perr := http.ParseTime(resp.Header.Get("Date")); perr == nil {
			w.c.skewed.Store(int64(at.Sub(w.c.now())))
		}
	}
	return resp, err
}

// skew is the storage's clock less ours, where that matters.
func (c *Client) skew() time.Duration {
	if d := time.Duration(c.skewed.Load()); d.Abs() > time.Minute {
		return d
	}
	return 0
}

func (c *Client) host() string { return c.public.EndpointURL().Host }

// ready asks for something that is answered in words: a HEAD is refused without any.
func (c *Client) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range c.public.ListObjectsIter(ctx, c.place.Bucket, minio.ListObjectsOptions{Prefix: c.place.Prefix, MaxKeys: 1}) {
		err := c.told(o.Err)
		if f := (*Fault)(nil); err == nil || errors.As(err, &f) && f.Code == "AccessDenied" {
			return nil // a key may be for objects alone
		}
		return fmt.Errorf("%s: %w", c.place.URL(), err)
	}
	return ctx.Err()
}

// object is what the storage says of one.
type object struct {
	size     int64
	etag     string
	sum      string // SHA-256 as S3 writes it: base64, of parts with -N behind; "" where it tells none
	modified time.Time
	mtime    time.Time // of the file that was saved; zero where it was not kept
}

// whole is the SHA-256 of all of it, hex; "" where the storage tells none, or of parts.
func (o object) whole() string {
	b, err := base64.StdEncoding.DecodeString(o.sum)
	if err != nil || len(b) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(b)
}

// version names exactly this content as the storage sees it.
func (o object) version() string {
	return strconv.FormatInt(o.size, 10) + " " + o.etag + " " + o.modified.UTC().Format(time.RFC3339)
}

// head asks for an object by its path below the prefix; absent is its error's kind.
func (c *Client) head(ctx context.Context, rel string) (object, error) {
	info, err := c.public.StatObject(ctx, c.place.Bucket, c.place.key(rel), minio.StatObjectOptions{Checksum: true})
	if err != nil {
		return object{}, c.told(err)
	}
	return object{size: info.Size, etag: info.ETag, sum: info.ChecksumSHA256, modified: info.LastModified, mtime: parseMtime(info.UserMetadata["Mtime"])}, nil
}

// Listed is an object below the prefix.
type Listed struct {
	Rel      string
	Size     int64
	Modified time.Time
}

// List reads all below a folder of the place; "" is the place itself.
func (c *Client) List(ctx context.Context, dir string, emit func(Listed) error) error {
	prefix := c.place.key(dir)
	if prefix != "" {
		prefix += "/"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := len(c.place.Prefix)
	if root > 0 {
		root++
	}
	for o := range c.public.ListObjectsIter(ctx, c.place.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return c.told(o.Err)
		}
		if len(o.Key) <= root {
			continue
		}
		if err := emit(Listed{o.Key[root:], o.Size, o.LastModified}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Remove deletes one object. One that is gone is no error.
func (c *Client) Remove(ctx context.Context, rel string) error {
	err := c.told(c.public.RemoveObject(ctx, c.place.Bucket, c.place.key(rel), minio.RemoveObjectOptions{}))
	if absent(err) {
		return nil
	}
	return err
}

// Read is a small object, of at most max bytes; absent is its error's kind.
func (c *Client) read(ctx context.Context, rel string, max int64) ([]byte, error) {
	body, _, _, err := c.public.GetObject(ctx, c.place.Bucket, c.place.key(rel), minio.GetObjectOptions{})
	if err != nil {
		return nil, c.told(err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, max+1))
	if err != nil {
		return nil, c.told(err)
	}
	if int64(len(text)) > max {
		return nil, fmt.Errorf("%s is longer than %d bytes", rel, max)
	}
	return text, nil
}

// write puts a small object that is made here.
func (c *Client) write(ctx context.Context, rel, text string) error {
	_, err := c.public.Client.PutObject(ctx, c.place.Bucket, c.place.key(rel), strings.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "text/plain; charset=utf-8", DisableMultipart: true, SendContentMd5: true})
	return c.told(err)
}

// upload is a multipart upload that was begun and not ended.
type upload struct {
	id    string
	begun time.Time
}

// unfinished lists the uploads of one object, the newest first.
func (c *Client) unfinished(ctx context.Context, rel string) ([]upload, error) {
	key := c.place.key(rel)
	r, err := c.public.ListMultipartUploads(ctx, c.place.Bucket, key, "", "", "", 1000)
	if err != nil {
		if err = c.told(err); absent(err) {
			return nil, nil
		}
		return nil, err
	}
	var out []upload
	for _, u := range r.Uploads {
		if u.Key == key {
			out = append(out, upload{u.UploadID, u.Initiated})
		}
	}
	for i := range out { // few: one, mostly
		for j := i + 1; j < len(out); j++ {
			if out[j].begun.After(out[i].begun) {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out, nil
}

// begin starts a multipart upload.
func (c *Client) begin(ctx context.Context, f File) (id string, err error) {
	meta := map[string]string{mtimeHeader: mtime(f.ModTime)}
	if !c.plain.Load() {
		meta["X-Amz-Checksum-Algorithm"] = "SHA256"
	}
	id, err = c.public.NewMultipartUpload(ctx, c.place.Bucket, c.place.key(f.Rel), minio.PutObjectOptions{UserMetadata: meta})
	if err = c.told(err); c.refusesSums(err) {
		return c.begin(ctx, f)
	}
	return id, err
}

// listParts is what is there of an upload, by number.
func (c *Client) listParts(ctx context.Context, rel, id string) (map[int]minio.ObjectPart, error) {
	out := map[int]minio.ObjectPart{}
	for marker := 0; ; {
		r, err := c.public.ListObjectParts(ctx, c.place.Bucket, c.place.key(rel), id, marker, 1000)
		if err != nil {
			return nil, c.told(err)
		}
		for _, p := range r.ObjectParts {
			out[p.PartNumber] = p
		}
		if !r.IsTruncated || r.NextPartNumberMarker <= marker {
			return out, nil
		}
		marker = r.NextPartNumberMarker
	}
}

func (c *Client) complete(ctx context.Context, rel, id string, list []minio.CompletePart) error {
	_, err := c.public.CompleteMultipartUpload(ctx, c.place.Bucket, c.place.key(rel), id, list, minio.PutObjectOptions{})
	return c.told(err)
}

func (c *Client) abort(ctx context.Context, rel, id string) error {
	return c.told(c.public.AbortMultipartUpload(ctx, c.place.Bucket, c.place.key(rel), id))
}

// signed is a URL with the headers that its signature wants.
type signed struct {
	url     string
	headers []string // "name: value"
}

// sign makes a URL for one request by the instance.
func (c *Client) sign(ctx context.Context, method, rel string, query url.Values, headers http.Header) (signed, error) {
	u, err := c.signer.Load().PresignHeader(ctx, method, c.place.Bucket, c.place.key(rel), c.valid, query, headers)
	if err != nil {
		return signed{}, c.told(err)
	}
	s := signed{url: u.String()}
	for name := range headers {
		s.headers = append(s.headers, strings.ToLower(name)+": "+headers.Get(name))
	}
	return s, nil
}

// signPart lets one part with one SHA-256 (raw) go into an upload.
func (c *Client) signPart(ctx context.Context, rel, id string, number int, sum []byte) (signed, error) {
	return c.sign(ctx, http.MethodPut, rel, url.Values{"uploadId": {id}, "partNumber": {strconv.Itoa(number)}}, c.sumHeader(sum))
}

// signPut lets one object with one SHA-256 (raw) be written.
func (c *Client) signPut(ctx context.Context, f File, sum []byte) (signed, error) {
	h := c.sumHeader(sum)
	h.Set(mtimeHeader, mtime(f.ModTime))
	return c.sign(ctx, http.MethodPut, f.Rel, nil, h)
}

func (c *Client) sumHeader(sum []byte) http.Header {
	h := http.Header{}
	if !c.plain.Load() {
		h.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum))
	}
	return h
}

// refusesSums says, once, that the storage does not know checksums; what was asked
// for is asked again without.
func (c *Client) refusesSums(err error) bool {
	var f *Fault
	if !errors.As(err, &f) || c.plain.Load() {
		return false
	}
	if f.Code == "NotImplemented" || f.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(f.Message), "x-amz-checksum") {
		c.plain.Store(true)
		return true
	}
	return false
}

// mtimeHeader is where rclone keeps a file's time, in seconds.
const mtimeHeader = "X-Amz-Meta-Mtime"

func mtime(t time.Time) string {
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}

// parseMtime reads what mtime wrote; zero where it did not.
func parseMtime(text string) time.Time {
	sec, frac, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || s <= 0 {
		return time.Time{}
	}
	n, err := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	if err != nil || n < 0 {
		n = 0
	}
	return time.Unix(s, n)
}
