// Package hand is the helper's "store" service: it carries out signed requests on an
// instance that has neither curl nor python3. It knows no key and follows no redirect.
package hand

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/agent/serve"
)

// Message is the kind of both sides' messages: a Job there, an Answer back.
const Message byte = 1

// Job is one signed request: to put N bytes of a file from At on, to take an object
// into a file, or, without a path, to get it and hash it.
type Job struct {
	URL     string
	Headers []string // "name: value"
	Path    []byte   // as the instance has it, in whatever bytes
	Size    int64    // that the file must have
	At, N   int64
	Take    bool `json:",omitempty"`
}

// Answer is what came of a job.
type Answer struct {
	Status  int    // of HTTP; 0 where there was none
	Broke   string // why there was none
	Body    string // its beginning
	SHA256  string // of what was got
	Changed bool   // the file has another size
}

const maxBody = 1000

// Main runs the helper's command line with this one service.
func Main(ctx context.Context, args []string) int {
	return serve.Main(ctx, args, map[string]serve.Service{"store": Serve})
}

// Serve carries out one job after another until ctx or the link ends.
func Serve(ctx context.Context, l link.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, ForceAttemptHTTP2: true}
	defer t.CloseIdleConnections()
	c := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		m, err := l.Recv()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		var j Job
		if m.Kind != Message || json.Unmarshal(m.Payload, &j) != nil {
			return errors.New("a message that is no job")
		}
		m.Free()
		text, err := json.Marshal(do(ctx, c, j))
		if err != nil {
			return err
		}
		if err := l.Send(Message, text); err != nil {
			return err
		}
	}
}

func do(ctx context.Context, c *http.Client, j Job) (a Answer) {
	if j.Take {
		return take(ctx, c, j)
	}
	method, body := http.MethodGet, io.Reader(nil)
	if len(j.Path) > 0 {
		f, err := os.Open(string(j.Path))
		if err != nil {
			return Answer{Changed: true}
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() != j.Size {
			return Answer{Changed: true}
		}
		method, body = http.MethodPut, io.NewSectionReader(f, j.At, j.N)
		if j.N == 0 {
			body = http.NoBody
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, j.URL, body)
	if err != nil {
		return Answer{Broke: "the request could not be made"} // the error would show the URL
	}
	req.ContentLength = j.N
	for _, h := range j.Headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		return Answer{Broke: unwrapped(err).Error()}
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	if method == http.MethodGet && a.Status == http.StatusOK {
		h := sha256.New()
		if _, err := io.Copy(h, resp.Body); err != nil {
			return Answer{Broke: err.Error()}
		}
		a.SHA256 = hex.EncodeToString(h.Sum(nil))
		return a
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil && a.Status < 300 {
		return Answer{Broke: fmt.Sprintf("the answer was cut: %v", err)}
	}
	a.Body = string(text)
	return a
}

// unwrapped is an error of a request without its URL.
func unwrapped(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// take gets an object of Size bytes into a file, from where that ends on.
func take(ctx context.Context, c *http.Client, j Job) Answer {
	f, err := os.OpenFile(string(j.Path), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return Answer{Broke: err.Error()}
	}
	a := Answer{Status: http.StatusOK}
	if err := takeInto(ctx, c, j, f, &a); err != nil {
		a.Broke = err.Error()
	}
	if err := f.Close(); err != nil && a.Broke == "" {
		a.Broke = err.Error()
	}
	return a
}

func takeInto(ctx context.Context, c *http.Client, j Job, f *os.File, a *Answer) error {
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > j.Size {
		if have, err = 0, f.Truncate(0); err != nil {
			return err
		}
	}
	if have == j.Size {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.URL, nil)
	if err != nil {
		return errors.New("the request could not be made")
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	resp, err := c.Do(req)
	if err != nil {
		return unwrapped(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		if have, err = 0, f.Truncate(0); err != nil {
			return err
		}
	case http.StatusPartialContent:
	default:
		a.Status = resp.StatusCode
		return nil
	}
	_, err = io.Copy(io.NewOffsetWriter(f, have), io.LimitReader(resp.Body, j.Size-have))
	return err
}
