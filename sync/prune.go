package sync

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"rentop/sync/tree"
)

// This file spares a push the folders at its destination that it will not touch:
// data sets and environments that were made there and that the source's rules name.

// untouched are rules for the destination's walk: folders directly in its root that
// the source leaves out whatever lies deeper. Rules further down could take back what
// those of the root say of anything else.
func (j *job) untouched() (r WalkRules, any bool) {
	if len(j.s.Include) > 0 {
		return r, false
	}
	var text []byte
	if !j.s.NoIgnore {
		for _, name := range []string{tree.GitIgnoreFile, tree.OwnIgnoreFile} { // the latter wins
			text = append(append(text, ruleText(filepath.Join(j.local, name))...), '\n')
		}
	}
	for _, p := range j.s.Exclude {
		text = append(append(text, p...), '\n')
	}
	here, err := os.ReadDir(j.local)
	if err != nil {
		return r, false
	}
	var others []string // a folder in the place of one of these is to be seen
	for _, d := range here {
		if !d.IsDir() {
			others = append(others, d.Name())
		}
	}
	r.Exclude = tree.LeftOutFolders(text, others)
	return r, len(r.Exclude) > 0
}

// ruleText is what an ignore file holds; like git, no symlink's.
func ruleText(name string) []byte {
	fi, err := os.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, tree.MaxIgnoreFile))
	if err != nil {
		return nil
	}
	return text
}

// walkTouched is walkThere for the destination of a push.
func (j *job) walkTouched(ctx context.Context, emit func(Entry) error) error {
	w, can := optional[RuledWalker](j.t)
	if !can || j.s.Delete {
		return j.walkThere(ctx, emit)
	}
	rules, any := j.untouched()
	if !any {
		return j.walkThere(ctx, emit)
	}
	_, err := w.WalkRuled(ctx, j.remote, rules, emit)
	return err
}
