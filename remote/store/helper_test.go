package store

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/agenttest"
	"rentop/remote/agent/link"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/remote/store/hand"
	"rentop/remote/store/storetest"
)

// noPrograms is an instance with neither curl nor python3.
type noPrograms struct{ remote.Runner }

func (n noPrograms) Run(ctx context.Context, c remote.Cmd) error {
	if c.Script == curlScript || c.Script == pythonScript {
		c.Script = "echo none"
	}
	return n.Runner.Run(ctx, c)
}

// TestHelper: the helper's own service does the work over a link, read-backs too.
func TestHelper(t *testing.T) {
	t.Parallel()
	served := make(chan error, 64)
	began := 0
	o := Options{Helper: func(ctx context.Context) (link.Link, error) {
		x, y := net.Pipe()
		far := link.New(y, link.Options{MaxStripes: 1})
		began++
		go func() {
			err := hand.Serve(context.Background(), far)
			far.Close()
			served <- err
		}()
		return link.New(x, link.Options{MaxStripes: 1}), nil
	}}
	c, s := bucket(t, "p", o)
	c.hands = 1
	_, list := there(t, map[string]int{"empty": 0, "small \xc3\xa9": 70_000, "big": 11<<20 + 3})
	for rel, one := range save(t, c, noPrograms{remote.Local{}}, list) {
		if one.Err != nil || one.Proof.How != ByStorage {
			t.Errorf("%q: %+v", rel, one)
		}
	}
	silent, err := Open(Place{Bucket: c.place.Bucket, Prefix: "p", Endpoint: s.Endpoint}, testKey, Options{Transport: silentSums{c.own}, Helper: o.Helper})
	if err != nil {
		t.Fatal(err)
	}
	silent.part, silent.hands = c.part, 1
	proofs, err := silent.Prove(t.Context(), noPrograms{remote.Local{}}, list, nil)
	for i, p := range proofs {
		if p.Problem != nil || p.How != ReadBack {
			t.Errorf("%q: %+v", list[i].Rel, p)
		}
	}
	if err != nil || len(proofs) != len(list) {
		t.Error(err)
	}
	for range began {
		if err := <-served; err != nil {
			t.Errorf("a helper ended with %v", err)
		}
	}
	// What it is refused is told as from curl.
	_, more := there(t, map[string]int{"new": 5})
	wrong, err := Open(Place{Bucket: c.place.Bucket, Endpoint: s.Endpoint}, testKey, Options{Helper: o.Helper})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	p := newPool(t.Context(), noPrograms{remote.Local{}}, 1, o.Helper)
	defer p.close()
	all, err := wrong.readSums(t.Context(), remote.Local{}, more, nil)
	if err != nil {
		t.Fatal(err)
	}
	all[0].whole[0] ^= 1
	if one := wrong.saveOne(t.Context(), p, more[0], all[0], Saving{}); !errors.Is(one.Err, ErrChanged) {
		t.Errorf("other bytes than were signed for: %v", one.Err)
	}
}

// TestHelperOverSSH: the real program, brought to a real server.
func TestHelperOverSSH(t *testing.T) {
	t.Parallel()
	srv := sshtest.Start(t, sshtest.Options{Files: map[string]string{"out/a b.txt": "artifact"}})
	conn := dialtest.Conn(t, srv, srv.Addr)
	binaries := agenttest.Store(t)
	c, s := bucket(t, "", Options{Helper: func(ctx context.Context) (link.Link, error) {
		h, err := agent.Open(ctx, conn, nil, "store", agent.Options{Binaries: binaries, MaxStripes: 1})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { h.Close() })
		return h.Link(), nil
	}})
	c.hands = 1
	f := File{Path: filepath.Join(srv.Home, "out/a b.txt"), Rel: "a b.txt", Size: 8}
	if one := save(t, c, noPrograms{conn}, []File{f})["a b.txt"]; one.Err != nil || one.Sent != 8 {
		t.Errorf("%+v", one)
	}
	if text, err := os.ReadFile(filepath.Join(s.Root, storetest.Bucket, "a b.txt")); string(text) != "artifact" {
		t.Errorf("%q %v", text, err)
	}
}

func TestNoHelper(t *testing.T) {
	t.Parallel()
	c, _ := bucket(t, "", Options{Helper: func(context.Context) (link.Link, error) { return nil, ErrNoTool }})
	_, list := there(t, map[string]int{"f": 3})
	if err := c.Save(t.Context(), noPrograms{remote.Local{}}, list, Saving{}); !errors.Is(err, ErrNoTool) || !strings.Contains(err.Error(), "install -y curl") {
		t.Error(err)
	}
}
