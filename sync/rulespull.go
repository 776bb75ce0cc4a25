package sync

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rentop/sync/tree"
)

// This file reads a remote tree's ignore files, and finds old temporary files.

// maxRuleFiles bounds how many ignore files of an instance are read.
const maxRuleFiles = 10000

// remoteRules fetches the ignore files among src and makes their rules.
func (pl *planner) remoteRules(ctx context.Context, root string, src []Entry) (*tree.Ignore, error) {
	var files []Entry
	for _, e := range src {
		name := path.Base(e.Path)
		if e.Mode.IsRegular() && e.Size < tree.MaxIgnoreFile && (name == tree.OwnIgnoreFile || name == tree.GitIgnoreFile && pl.s.GitIgnore) {
			files = append(files, e)
		}
	}
	if len(files) == 0 {
		return nil, nil
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
		files[i].From, files[i].Path = files[i].Path, fmt.Sprint(i)
	}
	var failed error
	err = pl.t.Fetch(ctx, root, dir, files, pl.tr, func(e Entry, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("reading %s on the instance: %w", e.From, err)
		}
	})
	if err = errOr(err, failed); err != nil {
		return nil, err
	}
	pl.tr.reset()
	slices.SortStableFunc(files, func(a, b Entry) int { return strings.Count(a.From, "/") - strings.Count(b.From, "/") })
	var g *tree.Ignore
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

// oldLitter are temporary files of earlier runs: small ones from before, and parts
// from before partsBefore that this plan does not go on with. Another transfer into
// the same folder may go on with a younger part.
func oldLitter(litter []Entry, p *Plan, before, partsBefore time.Time) []Entry {
	parts := map[string]bool{}
	for _, a := range p.Actions {
		if a.Op == Send && a.Entry.Size >= largeFile {
			name := partName(a.Entry)
			parts[name], parts[name+journalSuffix] = true, true
		}
	}
	var out []Entry
	for _, e := range litter {
		limit := before
		if strings.Contains(path.Base(e.Path), tree.PartInfix) {
			limit = partsBefore
		}
		if !parts[e.Path] && e.ModTime.Before(limit) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(b.Path, a.Path) })
	return out
}
