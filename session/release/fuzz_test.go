// What an instance answers is hostile: no answer may crash the checklist, and
// none that is cut short may be taken for whole.

package release

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"strings"
	"testing"

	"rentop/remote"
)

type answerErr struct{ out []byte }

func (a answerErr) Run(_ context.Context, c remote.Cmd) error {
	for _, b := range bytes.SplitAfter(a.out, []byte("7")) { // in pieces
		if _, err := c.Stdout.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("h /root\x00f 12 1.0 2.0 /root/a\nb\x00g /root/p/.git\x00c /opt/conda/conda-meta\x00r /x/hub\x00n /fs (nfs)\x00e 3\x00"))
	f.Add([]byte("f 12 1 2 ../../x\x00e 0\x00"))
	f.Add([]byte("f -1 1 2 /x\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		m := newMachine(Deps{Instance: "x", Runner: answerErr{out}}.filled(), CheckOnly, "r")
		m.runner = m.d.Runner
		s, err := m.scan(t.Context())
		if err != nil {
			return
		}
		if i := bytes.LastIndex(out, []byte("\x00e ")); !bytes.HasPrefix(out, []byte("e ")) && i < 0 {
			t.Errorf("believed without an end: %q", out)
		}
		for _, g := range s.files {
			if !path.IsAbs(g.path) || g.size < 0 || strings.Contains(g.path, "/../") {
				t.Errorf("believed: %+v", g)
			}
			s.ownedByPackages(g.path)
		}
	})
}

func FuzzGit(f *testing.F) {
	f.Add([]byte("t /p\x00o abc\x00u 0\x00s 1\x00w  M a.py\x00k H a.py\x00k H b.py\x00e \x00E \x00"))
	f.Add([]byte("X \x00"))
	f.Add([]byte("t /p\x00x broken\x00e \x00E \x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		m := newMachine(Deps{Instance: "x", Runner: answerErr{out}}.filled(), CheckOnly, "r")
		m.runner = m.d.Runner
		trees, err := m.readGit(t.Context(), []string{"/p"})
		c := m.checkGit(trees, err)
		if err != nil && c.State != Unknown || err == nil && len(trees) != 1 {
			t.Errorf("%v: %+v", err, c)
		}
		if strings.ContainsAny(c.Summary.String(), "\x1b\n") {
			t.Errorf("not cleaned: %q", c.Summary.String())
		}
	})
}

func FuzzHashes(f *testing.F) {
	f.Add([]byte(strings.Repeat("a", 64) + " /a\x00end\x00"))
	f.Add([]byte("short /a\x00end\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		sums, err := remoteHash(t.Context(), answerErr{out}, []string{"/a", "/b"}, nil)
		if err == nil && !bytes.HasSuffix(out, []byte("end\x00")) {
			// Only an end as the last word makes it whole, or records that repeat
			// what was asked for after it.
			if !bytes.Contains(out, []byte("end\x00")) {
				t.Errorf("believed without an end: %q", out)
			}
		}
		for p := range sums {
			if p != "/a" && p != "/b" {
				t.Errorf("not asked for: %q", p)
			}
		}
	})
}

func FuzzEnv(f *testing.F) {
	f.Add("system.txt\x00x\x00failed\x00y\x00end\x00\x00")
	f.Add("../x\x00x\x00end\x00\x00")
	f.Fuzz(func(t *testing.T, out string) {
		files, _, err := readEnv(t.Context(), answer(out))
		if err != nil {
			return
		}
		for name := range files {
			if strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") || len(name) > 200 {
				t.Errorf("a file name: %q", name)
			}
		}
	})
}

func FuzzList(f *testing.F) {
	f.Add([]byte("d /root/out\x00f 1 2 3 ./a\x00l ./b\x00e \x00"))
	f.Add([]byte("m \x00"))
	f.Add([]byte("d /r\x00f 1 2 3 ./../../etc/passwd\x00e \x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		m := newMachine(Deps{Instance: "x", Base: "/here", Runner: answerErr{out}}.filled(), CheckOnly, "r")
		m.runner = m.d.Runner
		list, _, err := m.matchArtifact(t.Context(), Artifact{Path: "~/out", To: "dst"})
		if err != nil {
			return
		}
		for _, l := range list {
			if l.local != "" && !strings.HasPrefix(l.local, "/here/dst") {
				t.Errorf("%q leaves the destination: %q", l.path, l.local)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add(strings.Repeat("a", 64) + "  x\n")
	f.Add(`\` + strings.Repeat("a", 64) + `  x\ny` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		mf, err := parseManifest([]byte(text))
		if err != nil {
			return
		}
		again, err := parseManifest(manifestText(mf))
		if err != nil || !maps.Equal(mf, again) {
			t.Errorf("%q is not the same again: %v", text, err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, true)
	f.Add([]byte{0x1f, 0x8b, 8, 0}, false)
	f.Fuzz(func(t *testing.T, b []byte, z bool) {
		suffix := ".tar.gz"
		if z {
			suffix = ".tar.zst"
		}
		_, _ = unpack(t.Context(), bytes.NewReader(b), suffix, nil)
	})
}

func TestRecordsAreBounded(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxRecord+1)
	err := records(t.Context(), answerErr{long}, "", nil, func([]byte) error { return nil })
	if !errors.Is(err, remote.ErrTooLong) {
		t.Error(err)
	}
}
