//go:build unix

package sync

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/sync/tree"
)

// cutSh is a local sh whose stdin ends after so many bytes.
type cutSh struct {
	home string
	cut  int
	sent int
}

func (c *cutSh) Run(ctx context.Context, cmd remote.Cmd) error {
	x := exec.CommandContext(ctx, "/bin/sh", "-c", cmd.Script)
	x.Dir = c.home
	if cmd.Stdin != nil {
		var b bytes.Buffer
		b.ReadFrom(cmd.Stdin)
		c.sent = max(c.sent, b.Len())
		b.Truncate(min(c.cut, b.Len()))
		x.Stdin = &b
	}
	x.Stdout, x.Stderr = cmd.Stdout, cmd.Stderr
	err := x.Run()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return &remote.ExitError{Code: e.ExitCode()}
	}
	return err
}

// TestCutStreamsRemoveNothing ends the streams of the dangerous scripts at every
// place: no half path is ever taken for a whole one.
func TestCutStreamsRemoveNothing(t *testing.T) {
	home := t.TempDir()
	check := func(what string, cut int) {
		t.Helper()
		for _, n := range []string{"data/deep/keep", "keep"} {
			if _, err := os.Stat(filepath.Join(home, n)); err != nil {
				t.Fatalf("%s cut at %d: %s is gone", what, cut, n)
			}
		}
	}
	os.MkdirAll(home+"/data/deep", 0o755)
	os.WriteFile(home+"/data/deep/keep", nil, 0o644)
	os.WriteFile(home+"/keep", nil, 0o644)
	p := &program{}
	p.b.WriteString("rm -rf -- ./data/deep/.rentop-tmp-1 ./keep.not\n")
	p.group("rm -f --", "rm -f --", []string{word("keep.not"), word("data/deep/keep.not")})
	for cut := len(programStart); cut < len(p.text())-1; cut++ {
		r := &cutSh{home: home, cut: cut}
		s := shell{r: r}
		if err := s.runProgram(t.Context(), home, p, nil); err == nil {
			t.Fatalf("a program cut at %d passed", cut)
		}
		check("a program", cut)
	}
	src := t.TempDir()
	os.MkdirAll(src+"/data/deep", 0o755)
	os.WriteFile(src+"/data/deep/new", bytes.Repeat([]byte("x"), 1500), 0o644)
	e := Entry{Path: "data/deep/new", Size: 1500, Mode: 0o644}
	for _, gnu := range []bool{true, false} {
		tr := newTar(nil, tools{gnuTar: gnu, gnuFind: true})
		for cut := 0; ; cut += 256 {
			r := &cutSh{home: home, cut: cut}
			tr.shell.r = r
			from := func(_ context.Context, b *batch, tw *tar.Writer) error { return b.local(tw, src) }
			b := tr.batch(tree.TmpPrefix+"t", from, home, nil, newTracker(Local{}, t1, nil), func(Entry, error) {})
			// the list of folders is cut by blocks of tar: one ends after "./data/deep"
			pad := 512 - len("./data/deep") - len(".//"+b.tmp+"\x00")
			long := strings.Repeat("x", pad/2) + "/" + strings.Repeat("y", pad-pad/2-1)
			b.files = []Entry{{Path: long + "/f", From: "data/deep/new", Size: 1500, Mode: 0o644}, e}
			b.send(t.Context())
			check("a batch", cut)
			if cut > r.sent {
				break
			}
			if found, _ := filepath.Glob(home + "/.rentop-*"); len(found) > 0 {
				t.Errorf("cut at %d: left %q", cut, found)
			}
			os.Remove(home + "/data/deep/new")
		}
	}
	if _, err := os.Stat(home + "/data/deep/new"); err != nil {
		t.Error("the whole stream did not arrive", err)
	}
}
