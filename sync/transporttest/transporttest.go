// Package transporttest is what every sync.Transport must pass. The instance of
// a test is this machine, so that its side can be looked at directly.
package transporttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/sync"
)

// Env is one transport under test.
type Env struct {
	Transport sync.Transport
	Home      string            // the login's home folder, as this process sees it; empty
	Exact     bool              // keeps times finer than a second
	Small     string            // a folder on the instance with about 1 MB of space; "" skips
	NoSmall   bool              // a full disk is proven with another Env of the same transport
	Brief     bool              // what only the programs there decide, not the shell, is proven with another Env
	Own       func(path string) // gives a file made by the test to the login; nil: it is
	Unsafe    bool              // the transport lives on this machine: no interruption between the sides
}

// Run runs the suite; open makes a fresh instance for each test.
func Run(t *testing.T, open func(t *testing.T) Env) {
	for _, c := range []struct {
		name string
		fn   func(*testing.T, *suite)
	}{
		{"resolve", resolve}, {"names", names}, {"attributes", attributes}, {"missing root", missingRoot},
		{"apply", apply}, {"failures", failures}, {"replace", replace}, {"interrupt", interrupt}, {"resume", resume},
		{"disk full", diskFull}, {"escape", escape}, {"changed", changed}, {"many", many}, {"again", again},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t)
			s := &suite{T: t, Env: e, src: t.TempDir(), root: filepath.Join(e.Home, "root")}
			if err := os.Mkdir(s.root, 0o777); err != nil {
				t.Fatal(err)
			}
			os.Chmod(s.root, 0o777)
			c.fn(t, s)
			s.noLitter()
		})
	}
}

type suite struct {
	*testing.T
	Env
	src, root   string
	Interrupted bool // this test killed scripts at any moment
}

// meter counts.
type meter struct {
	mu            stdsync.Mutex
	content, wire int64
	hook          func(content int64)
}

func (m *meter) Content(n int64) {
	m.mu.Lock()
	m.content += n
	c, hook := m.content, m.hook
	m.mu.Unlock()
	if hook != nil {
		hook(c)
	}
}

// Reading is for transports that count later than they read.
func (m *meter) Reading(int64) { m.Content(0) }

func (m *meter) Wire(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wire += n
}
func (m *meter) Current(string) {}

func (s *suite) file(dir, name string, data []byte) sync.Entry {
	s.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		s.Fatal(err)
	}
	os.Chmod(filepath.Dir(p), 0o777)
	defer s.own(p)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		s.Fatal(err)
	}
	fi, err := os.Stat(p)
	if err != nil {
		s.Fatal(err)
	}
	return sync.Entry{Path: name, Size: fi.Size(), Mode: 0o644, ModTime: fi.ModTime()}
}

func (s *suite) send(ctx context.Context, files []sync.Entry, m *meter) (map[string]error, error) {
	got := map[string]error{}
	err := s.Transport.Send(ctx, s.src, s.root, files, m, s.collect(got))
	return got, err
}

func (s *suite) fetch(ctx context.Context, dst string, files []sync.Entry, m *meter) (map[string]error, error) {
	got := map[string]error{}
	err := s.Transport.Fetch(ctx, s.root, dst, files, m, s.collect(got))
	return got, err
}

func (s *suite) collect(got map[string]error) func(sync.Entry, error) {
	return func(e sync.Entry, err error) {
		if _, twice := got[e.Path]; twice {
			s.Errorf("%q was reported twice", e.Path)
		}
		if err == nil && len(e.SHA256) != 64 {
			s.Errorf("%q was reported without a sum", e.Path)
		}
		got[e.Path] = err
	}
}

func (s *suite) own(p string) {
	if s.Own != nil && strings.HasPrefix(p, s.Home+"/") {
		s.Own(filepath.Dir(p))
		s.Own(p)
	}
}

func (s *suite) dirs(dir string, names ...string) {
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(dir, n), 0o777); err != nil {
			s.Fatal(err)
		}
		os.Chmod(filepath.Join(dir, n), 0o777)
		s.own(filepath.Join(dir, n))
	}
}

// noLitter looks for temporary files. What a cut left is swept by the next run,
// which each test has made; parts of large files are gone once they are whole.
func (s *suite) noLitter() {
	s.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		var found []string
		filepath.WalkDir(s.Home, func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.Contains(d.Name(), ".rentop-") {
				if d.IsDir() && strings.HasSuffix(d.Name(), ".ctl") && s.Interrupted {
					return fs.SkipDir // a script killed before it could write its pid: a later run sweeps it after a minute
				}
				found = append(found, p)
			}
			return nil
		})
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) { // the instance may still be cleaning after a cut
			s.Errorf("left behind: %q", found)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *suite) want(file string, data []byte) {
	s.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		s.Error(err)
	} else if !bytes.Equal(got, data) {
		s.Errorf("%s: %d bytes, want %d, or with other content", file, len(got), len(data))
	}
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	r.Read(b)
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
