package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/store/storetest"
)

var testKey = Key{ID: storetest.KeyID, Secret: storetest.Secret}

// bucket is a client of a real server, which cuts in parts of 5 MiB.
func bucket(t testing.TB, prefix string, o Options) (*Client, *storetest.Server) {
	t.Helper()
	needtest.Program(t, "curl")
	s := storetest.Start(t, "")
	return client(t, s.Endpoint, prefix, o), s
}

func client(t testing.TB, endpoint, prefix string, o Options) *Client {
	t.Helper()
	c, err := Open(Place{Bucket: storetest.Bucket, Prefix: prefix, Endpoint: endpoint}, testKey, o)
	if err != nil {
		t.Fatal(err)
	}
	c.part = func(int64) int64 { return minPart }
	t.Cleanup(c.Close)
	return c
}

// there writes files of random bytes on "the instance".
func there(t testing.TB, sizes map[string]int) (dir string, list []File) {
	t.Helper()
	dir = t.TempDir()
	rnd := rand.NewChaCha8([32]byte{7})
	for name, n := range sizes {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, n)
		rnd.Read(text)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		list = append(list, file(t, dir, name))
	}
	return dir, list
}

func file(t testing.TB, dir, name string) File {
	st, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return File{Path: filepath.Join(dir, name), Rel: name, Size: st.Size(), ModTime: st.ModTime()}
}

func save(t testing.TB, c *Client, r remote.Runner, list []File) map[string]Saved {
	t.Helper()
	out := map[string]Saved{}
	if err := c.Save(t.Context(), r, list, Saving{Done: func(s Saved) { out[s.File.Rel] = s }}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSaveAndProve(t *testing.T) {
	t.Parallel()
	c, s := bucket(t, "run 7/ä", Options{})
	dir, list := there(t, map[string]int{"a.txt": 11, "empty": 0, "sub/two words é 'q' $x \\.bin": 3 << 20, "big.safetensors": 11<<20 + 5, "even": 10 << 20})
	for rel, one := range save(t, c, remote.Local{}, list) {
		if one.Err != nil || one.Already || one.Proof.How != ByStorage {
			t.Errorf("%s: %+v", rel, one)
		}
		want, _ := os.ReadFile(filepath.Join(dir, rel))
		got, err := os.ReadFile(filepath.Join(s.Root, storetest.Bucket, "run 7/ä", rel))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes there, %d here, %v", rel, len(got), len(want), err)
		}
	}
	sums := map[string]string{}
	for rel, one := range save(t, c, remote.Local{}, list) {
		if !one.Already || one.Sent != 0 {
			t.Errorf("%s was sent again: %+v", rel, one)
		}
		sums[rel] = one.SHA256
	}
	if err := c.WriteManifest(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("sha256sum", "-c", "--strict", ManifestName)
	check.Dir = filepath.Join(s.Root, storetest.Bucket, "run 7/ä")
	if out, err := check.CombinedOutput(); err != nil || bytes.Count(out, []byte(": OK")) != len(list) {
		t.Errorf("sha256sum -c: %v\n%s", err, out)
	}

	// One byte there, one byte in the bucket, one object gone.
	for i, f := range list {
		switch f.Rel {
		case "a.txt":
			os.WriteFile(f.Path, []byte("other words"), 0o644)
		case "even":
			c.Remove(t.Context(), f.Rel)
		case "big.safetensors":
			text, _ := os.ReadFile(f.Path)
			text[9<<20] ^= 1
			os.WriteFile(f.Path, text, 0o644)
			list[i] = file(t, dir, f.Rel)
		}
	}
	proofs, err := c.Prove(t.Context(), remote.Local{}, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		bad := f.Rel == "a.txt" || f.Rel == "even" || f.Rel == "big.safetensors"
		if (proofs[i].Problem != nil) != bad {
			t.Errorf("%s: %v", f.Rel, proofs[i].Problem)
		}
	}
	if again := save(t, c, remote.Local{}, list); again["even"].Already || again["sub/two words é 'q' $x \\.bin"].Sent != 0 || again["big.safetensors"].Err != nil {
		t.Errorf("%+v", again)
	}
	proofs, err = c.Prove(t.Context(), remote.Local{}, list, nil)
	for i, p := range proofs {
		if err != nil || p.Problem != nil {
			t.Errorf("%s: %v %v", list[i].Rel, p.Problem, err)
		}
	}
}

// TestPython: an instance without curl.
func TestPython(t *testing.T) {
	t.Parallel()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	needtest.Done(t, err, "python3")
	bin := t.TempDir()
	for _, name := range []string{"sh", "sha256sum", "stat", "dd", "head", "tail", "tr"} {
		os.Symlink(needtest.Program(t, name), filepath.Join(bin, name))
	}
	os.Symlink(strings.TrimSpace(string(python)), filepath.Join(bin, "python3"))
	c, s := bucket(t, "", Options{})
	dir, list := there(t, map[string]int{"small é": 70_000, "big": 11<<20 + 1})
	bare := bareRunner(bin)
	for rel, one := range save(t, c, bare, list) {
		want, _ := os.ReadFile(filepath.Join(dir, rel))
		got, err := os.ReadFile(filepath.Join(s.Root, storetest.Bucket, rel))
		if one.Err != nil || err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %+v %v", rel, one, err)
		}
	}
	os.Remove(filepath.Join(bin, "python3"))
	_, more := there(t, map[string]int{"new": 3})
	if err := c.Save(t.Context(), bare, more, Saving{}); !errors.Is(err, ErrNoTool) {
		t.Errorf("without a tool: %v", err)
	}
}

// bareRunner has the programs of one folder and no other.
type bareRunner string

func (b bareRunner) Run(ctx context.Context, c remote.Cmd) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Script)
	cmd.Env, cmd.WaitDelay = []string{"PATH=" + string(b)}, time.Second/4
	cmd.Stdin, cmd.Stdout = c.Stdin, c.Stdout
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return &remote.ExitError{Code: exit.ExitCode()}
	}
	return err
}

// TestReadBack: storage that tells no SHA-256.
func TestReadBack(t *testing.T) {
	t.Parallel()
	c, s := bucket(t, "p", Options{Transport: silentSums{http.DefaultTransport}})
	_, list := there(t, map[string]int{"small": 70_000, "big": 11 << 20})
	for rel, one := range save(t, c, remote.Local{}, list) {
		if one.Err != nil || one.Proof.How != ReadBack {
			t.Errorf("%s: %+v", rel, one)
		}
	}
	os.WriteFile(filepath.Join(s.Root, storetest.Bucket, "p/small"), make([]byte, 70_000), 0o644)
	proofs, err := c.Prove(t.Context(), remote.Local{}, list, nil)
	for i, p := range proofs {
		if err != nil || (p.Problem != nil) != (list[i].Rel == "small") {
			t.Errorf("%s: %v %v", list[i].Rel, p, err)
		}
	}
}

// silentSums takes the storage's checksums out of its answers to us.
type silentSums struct{ next http.RoundTripper }

func (s silentSums) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(req)
	if err == nil {
		for name := range resp.Header {
			if strings.HasPrefix(strings.ToLower(name), "x-amz-checksum") {
				resp.Header.Del(name)
			}
		}
	}
	return resp, err
}

func TestExpiredURLIsSignedAnew(t *testing.T) {
	t.Parallel()
	c, _ := bucket(t, "", Options{})
	_, list := there(t, map[string]int{"f": 70_000})
	c.valid, c.hands = 2*time.Second, 1
	if out := save(t, c, slowStart{remote.Local{}}, list); out["f"].Err != nil {
		t.Error(out["f"].Err)
	}
}

// slowStart begins a worker so late that the first URL for it has expired.
type slowStart struct{ remote.Runner }

func (s slowStart) Run(ctx context.Context, cmd remote.Cmd) error {
	if cmd.Script == curlScript {
		time.Sleep(3100 * time.Millisecond)
	}
	return s.Runner.Run(ctx, cmd)
}

// TestInternal: the internal address is taken where the instance reaches it, and the
// public one where it does not.
func TestInternal(t *testing.T) {
	t.Parallel()
	s := storetest.Start(t, "")
	_, list := there(t, map[string]int{"f": 100})
	for internal, used := range map[string]bool{strings.Replace(s.Endpoint, "127.0.0.1", "localhost", 1): true, "http://127.0.0.1:1": false} {
		c, err := Open(Place{Bucket: storetest.Bucket, Prefix: internal[7:12], Endpoint: s.Endpoint, Internal: internal}, testKey, Options{})
		if err != nil {
			t.Fatal(err)
		}
		host, is, err := c.Route(t.Context(), remote.Local{})
		if err != nil || is != used || used != strings.HasPrefix(host, "localhost") {
			t.Errorf("%s: %s %v %v", internal, host, is, err)
		}
		if one := save(t, c, remote.Local{}, list)["f"]; one.Err != nil {
			t.Errorf("%s: %v", internal, one.Err)
		}
		c.Close()
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	_, s := bucket(t, "", Options{})
	_, list := there(t, map[string]int{"f": 100})
	for name, x := range map[string]struct {
		place Place
		key   Key
		want  string
	}{
		"no bucket":    {Place{Bucket: "nothere", Endpoint: s.Endpoint}, testKey, "make the bucket"},
		"wrong secret": {Place{Bucket: storetest.Bucket, Endpoint: s.Endpoint}, Key{ID: storetest.KeyID, Secret: "x"}, "the secret does not fit"},
		"wrong key":    {Place{Bucket: storetest.Bucket, Endpoint: s.Endpoint}, Key{ID: "other", Secret: "x"}, "not known there"},
		"no server":    {Place{Bucket: storetest.Bucket, Endpoint: "http://127.0.0.1:1"}, testKey, "does not answer"},
	} {
		c, err := Open(x.place, x.key, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Save(t.Context(), remote.Local{}, list, Saving{})
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "X-Amz") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
}

// TestWrongChecksum: what is not what was hashed is not taken by the storage.
func TestWrongChecksum(t *testing.T) {
	t.Parallel()
	c, s := bucket(t, "", Options{})
	_, list := there(t, map[string]int{"big": 11 << 20})
	p := newPool(t.Context(), remote.Local{}, 1, nil)
	defer p.close()
	all, err := c.readSums(t.Context(), remote.Local{}, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	all[0].parts[1] = all[0].parts[0]
	one := c.saveOne(t.Context(), p, list[0], all[0], Saving{})
	if !errors.Is(one.Err, ErrChanged) {
		t.Errorf("a part with another's sum: %v", one.Err)
	}
	if _, err := os.Stat(filepath.Join(s.Root, storetest.Bucket, "big")); err == nil {
		t.Error("it is in the bucket all the same")
	}
}

func ExampleParseURL() {
	bucket, prefix, err := ParseURL("s3://runs/llama/7b/")
	fmt.Println(bucket, prefix, err)
	// Output: runs llama/7b <nil>
}
