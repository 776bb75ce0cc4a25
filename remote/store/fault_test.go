package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/store/storetest"
)

// TestResumeAfterKill: this process is killed when each part has arrived; the next
// run sends no part again.
func TestResumeAfterKill(t *testing.T) {
	if at := os.Getenv("STORE_KILL_AT"); at != "" {
		saveUntilKilled(t, at)
		return
	}
	t.Parallel()
	c, s := bucket(t, "ckpt", Options{})
	dir, list := there(t, map[string]int{"model.pt": 21 << 20}) // in five parts
	for n := range 5 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestResumeAfterKill$")
		cmd.Env = append(os.Environ(), "STORE_KILL_AT="+s.Endpoint, "STORE_FILE="+filepath.Join(dir, "model.pt"))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("it was not killed: %v\n%s", err, out)
		}
		open, err := c.unfinished(t.Context(), "model.pt")
		if err != nil || len(open) != 1 {
			t.Fatalf("after kill %d: %v, %v", n, open, err)
		}
		have, err := c.listParts(t.Context(), "model.pt", open[0].id)
		if err != nil || len(have) != n+1 {
			t.Fatalf("after kill %d there are %d parts, %v", n, len(have), err)
		}
	}
	one := save(t, c, remote.Local{}, list)["model.pt"]
	if one.Err != nil || one.Kept != 21<<20 || one.Sent != 0 || one.Proof.How != ByStorage {
		t.Errorf("%+v", one)
	}
}

func saveUntilKilled(t *testing.T, endpoint string) {
	c := client(t, endpoint, "ckpt", Options{})
	c.hands = 1
	name := os.Getenv("STORE_FILE")
	f := file(t, filepath.Dir(name), filepath.Base(name))
	kept := int64(0)
	if open, err := c.unfinished(t.Context(), f.Rel); err == nil && len(open) > 0 {
		have, _ := c.listParts(t.Context(), f.Rel, open[0].id)
		kept = int64(len(have))
	}
	n := int64(0)
	_ = c.Save(context.Background(), remote.Local{}, []File{f}, Saving{Sent: func(int64) {
		if n++; n > kept { // the first new one
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
	}})
}

// TestFullBucket: a bucket on a disk of a few MiB.
func TestFullBucket(t *testing.T) {
	t.Parallel()
	needtest.That(t, os.Getuid() == 0, "root, to mount a small disk")
	mount := needtest.Program(t, "mount")
	root := t.TempDir()
	if out, err := exec.Command(mount, "-t", "tmpfs", "-o", "size=13m", "tmpfs", root).CombinedOutput(); err != nil {
		needtest.Done(t, fmt.Errorf("%w: %s", err, out), "the right to mount a small disk")
	}
	t.Cleanup(func() { exec.Command("umount", "-l", root).Run() })
	s := storetest.Start(t, root)
	c := client(t, s.Endpoint, "", Options{Sleep: func(context.Context, time.Duration) error { return nil }})
	_, list := there(t, map[string]int{"big": 21 << 20})
	var one Saved
	err := c.Save(t.Context(), remote.Local{}, list, Saving{Done: func(s Saved) { one = s }})
	if err == nil {
		err = one.Err
	}
	if err == nil || !strings.Contains(err.Error(), "the storage is full") {
		t.Errorf("21 MiB into 13: %v", err)
	}
	if _, herr := c.head(t.Context(), "big"); !absent(herr) {
		t.Errorf("a part of it is an object: %v", herr)
	}
}

// TestClockSkew: a request that was signed an hour ago, refused by the real server.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, "")
	hour := func() time.Time { return time.Now().Add(-time.Hour) }
	c := client(t, s.Endpoint, "", Options{Transport: backdated{http.DefaultTransport}, Now: hour})
	_, list := there(t, map[string]int{"f": 100})
	err := c.Save(t.Context(), remote.Local{}, list, Saving{})
	if err == nil || !strings.Contains(err.Error(), "RequestTimeTooSkewed") || !strings.Contains(err.Error(), "set the clock") || !strings.Contains(err.Error(), " apart") {
		t.Errorf("an hour off: %v", err)
	}
}

// backdated signs each request anew, as if it were an hour ago (AWS Signature V4).
type backdated struct{ next http.RoundTripper }

func (b backdated) RoundTrip(req *http.Request) (*http.Response, error) {
	at := time.Now().Add(-time.Hour).UTC()
	stamp, day := at.Format("20060102T150405Z"), at.Format("20060102")
	req = req.Clone(req.Context())
	req.Header.Set("X-Amz-Date", stamp)
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	req.Header.Set("X-Amz-Content-Sha256", empty)
	canonical := strings.Join([]string{req.Method, req.URL.EscapedPath(), req.URL.Query().Encode(),
		"host:" + req.URL.Host, "x-amz-content-sha256:" + empty, "x-amz-date:" + stamp, "", "host;x-amz-content-sha256;x-amz-date", empty}, "\n")
	scope := day + "/us-east-1/s3/aws4_request"
	key := []byte("AWS4" + storetest.Secret)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request"} {
		key = mac(key, part)
	}
	sum := sha256.Sum256([]byte(canonical))
	sig := mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(sum[:]))
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+storetest.KeyID+"/"+scope+", SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="+hex.EncodeToString(sig))
	return b.next.RoundTrip(req)
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// fewChannels is a server that allows one worker at a time.
type fewChannels struct {
	remote.Runner
	one chan struct{}
}

func (f fewChannels) Run(ctx context.Context, cmd remote.Cmd) error {
	if cmd.Script != curlScript {
		return f.Runner.Run(ctx, cmd)
	}
	select {
	case f.one <- struct{}{}:
		defer func() { <-f.one }()
		return f.Runner.Run(ctx, cmd)
	default:
		return &remote.BusyError{Limit: 1}
	}
}

func TestFewChannels(t *testing.T) {
	t.Parallel()
	c, _ := bucket(t, "", Options{})
	_, list := there(t, map[string]int{"a": 10, "b": 20, "c": 30, "d": 40, "big": 11 << 20})
	for rel, one := range save(t, c, fewChannels{remote.Local{}, make(chan struct{}, 1)}, list) {
		if one.Err != nil {
			t.Errorf("%s: %v", rel, one.Err)
		}
	}
}

// TestHostileInstance: a URL does for its own part and its own bytes only.
func TestHostileInstance(t *testing.T) {
	t.Parallel()
	c, s := bucket(t, "mine", Options{})
	_, list := there(t, map[string]int{"f": 100})
	all, err := c.readSums(t.Context(), remote.Local{}, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	to, err := c.signPut(t.Context(), list[0], all[0].whole)
	if err != nil {
		t.Fatal(err)
	}
	put := func(url, body string, headers []string) int {
		req, err := http.NewRequest(http.MethodPut, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	text, _ := os.ReadFile(list[0].Path)
	for what, code := range map[string]int{
		"other bytes":    put(to.url, strings.Repeat("x", 100), to.headers),
		"no checksum":    put(to.url, string(text), nil),
		"another object": put(strings.Replace(to.url, "/mine/f", "/mine/g", 1), string(text), to.headers),
		"another method": func() int {
			resp, err := http.Get(to.url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}(),
	} {
		if code < 400 {
			t.Errorf("%s: %d", what, code)
		}
	}
	if code := put(to.url, string(text), to.headers); code != 200 {
		t.Errorf("what was signed: %d", code)
	}
	if left, _ := os.ReadDir(filepath.Join(s.Root, storetest.Bucket, "mine")); len(left) != 1 {
		t.Errorf("in the bucket: %v", left)
	}
}

// TestNoSecretInSight: no URL and no key is in a list of processes or in an error.
func TestNoSecretInSight(t *testing.T) {
	t.Parallel()
	c, _ := bucket(t, "", Options{})
	_, list := there(t, map[string]int{"big": 21 << 20})
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 1)
	go func() {
		defer close(seen)
		for ctx.Err() == nil {
			all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, p := range all {
				if text, _ := os.ReadFile(p); strings.Contains(string(text), "X-Amz-Signature") || strings.Contains(string(text), storetest.Secret) {
					seen <- string(text)
					return
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	one := save(t, c, remote.Local{}, list)["big"]
	cancel()
	if line, bad := <-seen; bad {
		t.Errorf("in the list of processes: %.200s", line)
	}
	if one.Err != nil || strings.Contains(fmt.Sprintf("%v %+v %#v", testKey, testKey, testKey), storetest.Secret) {
		t.Errorf("%v, %v", one.Err, testKey)
	}
}
