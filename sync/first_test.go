package sync

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// TestTarThereAndBack moves a tree with strange names by tar, both ways.
func TestTarThereAndBack(t *testing.T) {
	src, home := t.TempDir(), t.TempDir()
	for i := range 300 {
		write(src, fmt.Sprintf("d%d/f%d.txt", i%40, i), fmt.Sprint("hello ", i))
	}
	write(src, "we\nird/-a b\\c\xff", "x")
	write(src, ".hidden", "x")
	r := localSh{home: home}
	tl, err := probe(t.Context(), r)
	if err != nil || tl.base != "" {
		t.Fatal(err, tl)
	}
	tr := newTar(r, tl)
	res, err := Run(context.Background(), tr, Spec{Direction: Push, Local: src, Remote: "proj/x", Verify: true}, nil)
	if err != nil || len(res.Failed) > 0 || !res.Verified {
		t.Fatal(err, res.Failed)
	}
	if out, err := exec.Command("diff", "-r", src, home+"/proj/x").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	p, err := MakePlan(t.Context(), tr, Spec{Direction: Push, Local: src, Remote: "~/proj/x", Delete: true}, nil)
	if err != nil || !p.Empty() {
		t.Fatal(p, err)
	}
	dst := t.TempDir()
	res, err = Run(context.Background(), tr, Spec{Direction: Pull, Local: dst + "/new", Remote: "~/proj/x", Verify: true}, nil)
	if err != nil || len(res.Failed) > 0 || !res.Verified {
		t.Fatal(err, res.Failed)
	}
	if out, err := exec.Command("diff", "-r", src, dst+"/new").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
}
