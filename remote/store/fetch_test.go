package store

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/remote/store/hand"
)

// withoutCurl is an instance that has python3 alone.
type withoutCurl struct{ remote.Runner }

func (w withoutCurl) Run(ctx context.Context, c remote.Cmd) error {
	if c.Script == curlScript {
		c.Script = "echo none"
	}
	return w.Runner.Run(ctx, c)
}

// TestFetch: what was saved comes back as it was, with its time, and goes on where it
// was cut; what is not what was saved gets no name.
func TestFetch(t *testing.T) {
	t.Parallel()
	c, s := bucket(t, "run 7/ä", Options{Helper: func(context.Context) (link.Link, error) {
		x, y := net.Pipe()
		far := link.New(y, link.Options{MaxStripes: 1})
		go func() { _ = hand.Serve(context.Background(), far); far.Close() }()
		return link.New(x, link.Options{MaxStripes: 1}), nil
	}})
	dir, list := there(t, map[string]int{"a.txt": 11, "empty": 0, "sub/two words é 'q' $x \\.bin": 3 << 20, "big.safetensors": 11<<20 + 5, "bad": 100})
	old := time.Unix(1700000000, 123456789)
	sums := map[string]string{}
	for i, f := range list {
		if err := os.Chtimes(f.Path, old, old); err != nil {
			t.Fatal(err)
		}
		list[i] = file(t, dir, f.Rel)
	}
	for rel, one := range save(t, c, remote.Local{}, list) {
		sums[rel] = one.SHA256
	}
	delete(sums, "big.safetensors") // only the storage's sum of its parts is left
	if err := c.WriteManifest(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]remote.Runner{"curl": remote.Local{}, "python3": withoutCurl{remote.Local{}}, "helper": noPrograms{remote.Local{}}} {
		to := t.TempDir()
		if err := os.Mkdir(filepath.Join(to, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		stored, err := c.Stored(t.Context())
		if err != nil || len(stored) != len(list) {
			t.Fatalf("%d, %v", len(stored), err)
		}
		var want []Wanted
		for _, o := range stored {
			if o.Rel == "bad" {
				o.SHA256 = sums["a.txt"]
			}
			w := Wanted{o, filepath.Join(to, o.Rel)}
			if want = append(want, w); o.Rel == "big.safetensors" {
				half, err := os.ReadFile(filepath.Join(s.Root, "runs/run 7/ä", o.Rel))
				if err == nil {
					err = os.WriteFile(partOf(w), half[:5<<20], 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		err = c.Fetch(t.Context(), r, want, nil, func(w Wanted, err error) {
			is, rerr := os.ReadFile(w.Path)
			if w.Rel == "bad" {
				if err == nil || rerr == nil {
					t.Errorf("%s: what is another got its name", name)
				}
				return
			}
			was, _ := os.ReadFile(filepath.Join(dir, w.Rel))
			if st, serr := os.Stat(w.Path); err != nil || rerr != nil || serr != nil || !bytes.Equal(is, was) || !st.ModTime().Equal(old) {
				t.Errorf("%s: %s: %v %v %d bytes of %d", name, w.Rel, err, rerr, len(is), len(was))
			}
		})
		if err != nil {
			t.Error(name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(to, ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}
