package session

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/sync"
)

// This file decides which files on an instance are finished. A file that is still
// being written looks like any other, so one is taken only after its size and
// time have stood still; a checkpoint of several files only as a whole; and where
// the trainer writes something last, that is waited for.

// unproven is how many times longer a checkpoint must stand still whose trainer
// leaves no mark that it is whole: between two of its files a minute may pass.
const unproven = 6

// settler watches the files of one folder from look to look.
type settler struct {
	quiet time.Duration
	seen  map[string]sighting // by path
}

// sighting is a file as it was first seen.
type sighting struct {
	size  int64
	mtime time.Time
	since time.Time
}

func newSettler(d time.Duration) *settler {
	return &settler{quiet: d, seen: map[string]sighting{}}
}

// unit is what is taken as a whole.
type unit struct {
	files    []sync.Action
	youngest time.Time // since when its last file stands still
	marked   bool      // what is written last is there
	whole    bool      // all parts of a sharded file are there
	marks    []sync.Action
}

// folders that trainers write a checkpoint into: Hugging Face, DeepSpeed,
// Megatron-LM, and the usual own ones.
var checkpointDir = regexp.MustCompile(`^(checkpoint[-_]\d+|global_step\d+|iter_\d+|(epoch|step)[-_=]?\d+)$`)

// shardName is a part of a file: model-00002-of-00005.safetensors.
var shardName = regexp.MustCompile(`^(.*)-(\d{3,6})-of-(\d{3,6})(\.[A-Za-z]+)$`)

// shardSet is shardName with the number cut out.
var shardSet = regexp.MustCompile(`^(.*?)(\d{3,6})(\.[A-Za-z]+)$`)

// beingWritten are names that writers rename when they are done.
var beingWritten = regexp.MustCompile(`(?i)(\.tmp|\.temp|\.part|\.partial|\.incomplete|\.lock)$`)

// unitOf names the whole that p belongs to: its checkpoint's folder, else p itself,
// or a sharded file's name without the number.
func unitOf(p string) (name string, folder bool) {
	for i := range len(p) {
		if p[i] == '/' && checkpointDir.MatchString(path.Base(p[:i])) {
			return p[:i], true
		}
	}
	if m := shardName.FindStringSubmatch(path.Base(p)); m != nil {
		return path.Join(path.Dir(p), m[1]+"-of-"+m[3]+m[4]), false
	}
	return p, false
}

// mark says whether a trainer writes p when all the rest is there: transformers
// trainer_state.json (Trainer._save_checkpoint) and the index of shards
// (save_pretrained), torch.distributed.checkpoint .metadata.
func mark(p string) bool {
	b := path.Base(p)
	return b == "trainer_state.json" || b == ".metadata" || strings.HasSuffix(b, ".safetensors.index.json") || strings.HasSuffix(b, ".bin.index.json")
}

// whole marks are those after which nothing of the folder follows.
func wholeMark(p string) bool { return mark(p) && !strings.HasSuffix(p, ".index.json") }

// sift leaves in plan only what is finished, at the time now. It returns the
// plan of the marks, which follow when all else is there, and how many files wait.
func (c *settler) sift(plan *sync.Plan, now time.Time) (first, last *sync.Plan, waiting int) {
	units := map[string]*unit{}
	shards := map[string]map[int]bool{}
	seen := map[string]sighting{}
	var order []string
	for _, a := range plan.Actions {
		if a.Op != sync.Send {
			continue
		}
		e := a.Entry
		at, ok := c.seen[e.Path]
		if !ok || at.size != e.Size || !at.mtime.Equal(e.ModTime) {
			at = sighting{e.Size, e.ModTime, now}
		}
		seen[e.Path] = at
		if temporary(e.Path) {
			waiting++
			continue
		}
		name, folder := unitOf(e.Path)
		u := units[name]
		if u == nil {
			u = &unit{whole: true, marked: !folder}
			units[name] = u
			order = append(order, name)
		}
		if m := shardName.FindStringSubmatch(path.Base(e.Path)); m != nil {
			i, _ := strconv.Atoi(m[2])
			set := name + "\x00" + path.Join(path.Dir(e.Path), m[1]) + m[3] + m[4]
			if shards[set] == nil {
				shards[set] = map[int]bool{}
			}
			shards[set][i] = true
		}
		if at.since.After(u.youngest) {
			u.youngest = at.since
		}
		if mark(e.Path) {
			u.marks = append(u.marks, a)
			u.marked = u.marked || wholeMark(e.Path)
		} else {
			u.files = append(u.files, a)
		}
	}
	c.seen = seen
	for set, have := range shards {
		name, rest, _ := strings.Cut(set, "\x00")
		if !allShards(plan.Local(), rest, have) {
			units[name].whole = false
		}
	}
	keep, keepLast := map[string]bool{}, map[string]bool{}
	for _, name := range order {
		u := units[name]
		wait := c.quiet
		if !u.marked && !markedHere(plan.Local(), name) {
			wait *= unproven
		}
		if !u.whole || now.Sub(u.youngest) < wait {
			waiting += len(u.files) + len(u.marks)
			continue
		}
		for _, a := range u.files {
			keep[a.Entry.Path] = true
		}
		for _, a := range u.marks {
			keepLast[a.Entry.Path] = true
		}
	}
	return only(plan, keep, true), only(plan, keepLast, false), waiting
}

// temporary says whether a part of p is a name for what is not finished.
func temporary(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if beingWritten.MatchString(part) || strings.HasPrefix(part, "tmp-checkpoint-") {
			return true
		}
	}
	return false
}

// allShards says whether each part of a sharded file is among have or here already.
// set is its path with the number cut out.
func allShards(local, set string, have map[int]bool) bool {
	m := shardSet.FindStringSubmatch(set)
	if m == nil {
		return true
	}
	if local == "" { // all that there is, is among have
		local = os.DevNull
	}
	n, _ := strconv.Atoi(m[2])
	first := 1
	if have[0] {
		first, n = 0, n-1
	}
	for i := first; i <= n; i++ {
		name := m[1] + "-" + padded(i, len(m[2])) + "-of-" + m[2] + m[3]
		if have[i] {
			continue
		}
		if _, err := os.Lstat(filepath.Join(local, filepath.FromSlash(name))); err != nil {
			return false
		}
	}
	return true
}

func padded(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(width-len(s), 0)) + s
}

// markedHere says whether the checkpoint's last file was pulled before.
func markedHere(local, dir string) bool {
	if local == "" {
		return false
	}
	for _, name := range []string{"trainer_state.json", ".metadata"} {
		if fi, err := os.Lstat(filepath.Join(local, filepath.FromSlash(dir), name)); err == nil && fi.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// only is a plan with those files of p. Folders come with what is in them; all else
// comes with rest.
func only(p *sync.Plan, files map[string]bool, rest bool) *sync.Plan {
	out := *p
	out.Bytes = 0
	need := map[string]bool{}
	for f := range files {
		for d := path.Dir(f); d != "." && !need[d]; d = path.Dir(d) {
			need[d] = true
		}
	}
	out.Actions = slices.DeleteFunc(slices.Clone(p.Actions), func(a sync.Action) bool {
		switch {
		case a.Op == sync.Send && files[a.Entry.Path]:
			out.Bytes += a.Entry.Size
			return false
		case a.Op == sync.Send:
			return true
		case a.Op == sync.Mkdir:
			return !need[a.Entry.Path]
		case a.Op == sync.Delete: // what is in the way of a file that is finished
			return !files[a.Entry.Path] && !need[a.Entry.Path]
		}
		return !rest || a.Op == sync.Link && !parentHere(p.Local(), a.Entry.Path, need)
	})
	return &out
}

// parentHere says whether the folder of a symlink is there or comes.
func parentHere(local, p string, need map[string]bool) bool {
	d := path.Dir(p)
	if d == "." || need[d] {
		return true
	}
	fi, err := os.Lstat(filepath.Join(local, filepath.FromSlash(d)))
	return err == nil && fi.Mode()&fs.ModeType == fs.ModeDir
}
