//go:build unix

package sync_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"rentop/sync"
)

// seeing counts what a destination's walk brings.
type seeing struct {
	sync.RuledWalker
	seen []string
}

func (s *seeing) WalkRuled(ctx context.Context, root string, r sync.WalkRules, emit func(sync.Entry) error) (int64, error) {
	return s.RuledWalker.WalkRuled(ctx, root, r, func(e sync.Entry) error { s.seen = append(s.seen, e.Path); return emit(e) })
}

func (s *seeing) Walk(ctx context.Context, root string, emit func(sync.Entry) error) error {
	_, err := s.WalkRuled(ctx, root, sync.WalkRules{}, emit)
	return err
}

// TestPushLeavesAlone: a push does not read what the source's rules leave out on
// the instance, but sees all that it has itself.
func TestPushLeavesAlone(t *testing.T) {
	p := newPair(t)
	t.Setenv("HOME", p.home)
	w := &seeing{RuledWalker: newAgent(t).(sync.RuledWalker)}
	p.tr = w
	p.write(p.src+"/.gitignore", "data/\n*.log\n/wandb\nout*\n!outer/\nbuild/\ndeep/er/\n")
	p.write(p.src+"/sub/.gitignore", "!data/\n!*.log\n")
	for _, n := range []string{"a", "outer/x", "sub/data/x", "sub/b.log", "deep/x"} {
		p.write(p.src+"/"+n, n)
	}
	p.write(p.src+"/build", "a file")
	there := p.home + "/proj/"
	for i := range 30 {
		for _, dir := range []string{"data", "wandb", "output", "x.log", "skipped", "node"} {
			p.write(fmt.Sprintf("%s%s/%d", there, dir, i), "x")
		}
	}
	spec := sync.Spec{Direction: sync.Push, Exclude: []string{"skipped"}}
	if r := p.run(spec); r.Files != 8 || len(r.Failed) > 0 {
		t.Fatalf("%+v", r)
	}
	for _, n := range w.seen {
		if n != "node" && !strings.HasPrefix(n, "node/") {
			t.Errorf("read %s", n)
		}
	}
	w.seen = nil
	if r := p.run(spec); r.Files != 0 || r.Unchanged != 8 || len(r.Failed) > 0 {
		t.Errorf("again: %+v", r)
	}
	os.Remove(there + "build")
	p.write(there+"build/made", "x")
	if r := p.run(spec); len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Err.Error(), "not empty") {
		t.Errorf("a folder that is left out is in a file's place: %+v", r)
	}
}
