package session

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/release"
	"rentop/sync/whole"
)

// This file knows checkpoints among an artifact's files: which are the newest, and
// whether one is whole by its own format.

// checkpointFile is a checkpoint in one file: ckpt-100.pt, epoch=3-step=900.ckpt,
// model_step_500.safetensors.
var checkpointFile = regexp.MustCompile(`(?i)(ckpt|checkpoint|step|epoch|iter)[-_=]?\d+[^/]*\.(pt|pth|ckpt|bin|safetensors)$`)

// checkpointOf names the checkpoint that a file belongs to; "" for none.
func checkpointOf(rel string) string {
	if name, folder := unitOf(rel); folder {
		return name
	}
	if checkpointFile.MatchString(path.Base(rel)) {
		name, _ := unitOf(rel)
		return name
	}
	return ""
}

// newestCheckpoints leaves the files of the newest keep checkpoints of each folder, by
// the time of their last file, and all that belongs to none.
func newestCheckpoints(files []release.Found, keep int) []release.Found {
	gone := map[string]bool{}
	for _, name := range oldCheckpoints(files, keep) {
		gone[name] = true
	}
	return slices.DeleteFunc(slices.Clone(files), func(f release.Found) bool { return gone[checkpointOf(f.Rel)] })
}

// oldCheckpoints names those beyond the newest keep of each folder.
func oldCheckpoints(files []release.Found, keep int) []string {
	last := map[string]time.Time{}
	for _, f := range files {
		if name := checkpointOf(f.Rel); name != "" && !f.ModTime.Before(last[name]) {
			last[name] = f.ModTime
		}
	}
	byDir := map[string][]string{}
	for name := range last {
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], name)
	}
	var old []string
	for _, names := range byDir {
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(last[b].Compare(last[a]), cmp.Compare(len(b), len(a)), strings.Compare(b, a))
		})
		if keep > 0 && len(names) > keep {
			old = append(old, names[keep:]...)
		}
	}
	slices.Sort(old)
	return old
}

// rangeScript prints bytes of a file from whole blocks: dd with single bytes would
// take minutes.
const rangeScript = `LC_ALL=C; f=%s
dd if="$f" bs=65536 skip=%d count=%d 2>/dev/null`

const rangeBlock = 65536

// wholeThere says whether a file on the instance is complete by its format.
func wholeThere(ctx context.Context, r remote.Runner, f release.Found) error {
	return whole.Check(f.Rel, f.Size, func(at, n int64) ([]byte, error) {
		skip := at / rangeBlock
		count := (at+n-1)/rangeBlock - skip + 1
		out, err := remote.Output(ctx, r, fmt.Sprintf(rangeScript, remote.Quote(f.Path), skip, count))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", remote.Short(f.Path, 120), err)
		}
		at -= skip * rangeBlock
		if int64(len(out)) < at+n {
			return nil, fmt.Errorf("read %s: it is shorter than it was", remote.Short(f.Path, 120))
		}
		return out[at : at+n], nil
	})
}
