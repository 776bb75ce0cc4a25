package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rentop/sync/tree"
)

// This file walks the two ends of a pull. What the instance's ignore files say is
// read there where the transport can, else they are fetched first.

// maxRuleFiles bounds how many ignore files of an instance are read.
const maxRuleFiles = 10000

func (j *job) pullFeeds(ctx context.Context, o *Options) (src, dst *feed, err error) {
	dst = sorted(nil)
	if j.one != nil {
		src = sorted([]Entry{*j.one})
		if e, is := j.lookHere(j.one.Path); is {
			dst = sorted([]Entry{e})
		}
		return src, dst, nil
	}
	ruled, canRule := optional[RuledWalker](j.t)
	noRules := j.s.NoIgnore && len(j.s.Include)+len(j.s.Exclude) == 0
	var there *tree.Ignore
	switch {
	case noRules:
		src = newFeed(ctx, func(ctx context.Context, emit func(Entry) error) error { return j.source(ctx, j.walkThere, emit) })
	case canRule && !o.Delete:
		rules := WalkRules{GitIgnore: j.s.GitIgnore && !j.s.NoIgnore, OwnIgnore: !j.s.NoIgnore, Include: j.s.Include, Exclude: j.s.Exclude}
		src = newFeed(ctx, func(ctx context.Context, emit func(Entry) error) error {
			return j.source(ctx, func(ctx context.Context, emit func(Entry) error) (err error) {
				j.ignored, err = ruled.WalkRuled(ctx, j.remote, rules, emit)
				return err
			}, emit)
		})
	default:
		if src, there, err = j.ruledHere(ctx); err != nil {
			return sorted(nil), dst, err
		}
	}
	if j.fresh {
		return src, dst, nil
	}
	here := &tree.Rules{}
	if o.Delete && !j.s.NoIgnore {
		// What a push leaves here (secrets, data sets) exists nowhere else.
		w := tree.Options{GitIgnore: true, OwnIgnore: true, Rules: here}
		if _, err := tree.Walk(ctx, j.local, w, func(Entry) error { return nil }); err != nil {
			return src, dst, err
		}
	}
	o.Protected = func(p string, isDir bool) bool { return there.Excluded(p, isDir) || here.Excluded(p, isDir) }
	dst = newFeed(ctx, func(ctx context.Context, emit func(Entry) error) error {
		_, err := tree.Walk(ctx, j.local, tree.Options{}, func(e Entry) error {
			if t := e.Mode.Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
				return nil // a file may replace it, and nothing deletes it
			}
			return j.atDestination(e, emit)
		})
		return err
	})
	return src, dst, nil
}

// source walks the source of a pull and drops what is ours.
func (j *job) source(ctx context.Context, walk func(context.Context, func(Entry) error) error, emit func(Entry) error) error {
	err := walk(ctx, func(e Entry) error {
		if tree.OursIn(e.Path) {
			return nil
		}
		j.tr.scanned(1)
		return emit(e)
	})
	var part *ListError
	if errors.As(err, &part) {
		j.incomplete = part.Error()
		return nil
	}
	return err
}

// ruledHere lists the source of a pull, fetches its ignore files and applies them.
func (j *job) ruledHere(ctx context.Context) (*feed, *tree.Ignore, error) {
	var list []Entry
	if err := j.source(ctx, j.walkThere, func(e Entry) error { list = append(list, e); return nil }); err != nil {
		return nil, nil, err
	}
	rules := tree.Patterns(j.s.Include, j.s.Exclude)
	if !j.s.NoIgnore {
		var err error
		if rules, err = j.remoteRules(ctx, rules, list); err != nil {
			return nil, nil, err
		}
	}
	kept := list[:0]
	for _, e := range list {
		if rules.Excluded(e.Path, e.Mode.IsDir()) && !(e.Mode.IsDir() && rules.Reaches(e.Path)) {
			j.ignored++
			continue
		}
		kept = append(kept, e)
	}
	clear(list[len(kept):])
	return sorted(kept), rules, nil
}

// remoteRules fetches the ignore files among src and adds their rules.
func (j *job) remoteRules(ctx context.Context, g *tree.Ignore, src []Entry) (*tree.Ignore, error) {
	var files []Entry
	for _, e := range src {
		name := path.Base(e.Path)
		if e.Mode.IsRegular() && e.Size < tree.MaxIgnoreFile && (name == tree.OwnIgnoreFile || name == tree.GitIgnoreFile && j.s.GitIgnore) {
			files = append(files, e)
		}
	}
	if len(files) == 0 {
		return g, nil
	}
	if len(files) > maxRuleFiles {
		return nil, fmt.Errorf("the instance holds %d ignore files, more than rentop reads", len(files))
	}
	dir, err := os.MkdirTemp("", "rentop-rules-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// numbered, since this file system may not hold their names
	for i := range files {
		files[i].From, files[i].Path, files[i].Link = files[i].Path, fmt.Sprint(i), ""
	}
	var failed error
	err = j.t.Fetch(ctx, j.remote, dir, files, j.tr, func(e Entry, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("reading %s on the instance: %w", e.From, err)
		}
	})
	if err = errOr(err, failed); err != nil {
		return nil, err
	}
	j.tr.reset()
	slices.SortStableFunc(files, func(a, b Entry) int { return strings.Count(a.From, "/") - strings.Count(b.From, "/") })
	for _, e := range files {
		data, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			return nil, err
		}
		base := path.Dir(e.From)
		if base == "." {
			base = ""
		}
		g = g.With(path.Base(e.From), base, data)
	}
	return g, nil
}
