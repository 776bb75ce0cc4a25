package session

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/sync"
	"rentop/sync/tree"
)

// This file reads what a snapshot holds and brings it to its places.

// restoreRoot is a folder of the instance with what comes below it. Its trash lies in
// it, so that what is in the way is only renamed.
type restoreRoot struct {
	root string // absolute there; "~" until it was looked up
	want []sync.Entry
	sums map[string]string     // SHA-256 of the files
	at   map[string]sync.Entry // by path, once all is there
	// As last compared:
	send    []sync.Entry
	links   []sync.Entry
	folders []sync.Entry
	aside   []sync.Entry
	bytes   int64
	left    map[string]bool // paths that stay as they are, and what would lie below
	gone    map[string]bool // paths of aside: what is below them is not where it will be looked for
}

func (r *restoreRoot) abs(p string) string { return path.Join(r.root, p) }

// skipped says whether p, or a folder of it, stays as it is there.
func (r *restoreRoot) skipped(p string) bool { return r.left[p] || below(p, r.left) }

// below says whether a folder of p is among set.
func below(p string, set map[string]bool) bool {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if set[p] {
			return true
		}
	}
	return false
}

// read goes through the archive and sorts what it holds by roots. The home of the
// login then is the home there; all else keeps its place.
func (r *restorer) read(ctx context.Context, manifest map[string]string) error {
	roots := map[string]*restoreRoot{}
	first := map[string]sync.Entry{} // what hard links may name
	seen := map[string]int{}
	err := r.from.Read(ctx, manifest, func(h *tar.Header, _ io.Reader) error {
		name := path.Join("/", h.Name)
		e := sync.Entry{Mode: fs.FileMode(h.Mode) & fs.ModePerm, ModTime: h.ModTime}
		switch h.Typeflag {
		case tar.TypeReg:
			e.Size, e.From = h.Size, name
		case tar.TypeLink: // a second name: a thing of its own there
			of, ok := first[path.Join("/", h.Linkname)]
			if !ok {
				return fmt.Errorf("%s is a second name of %s, which it does not hold", remote.Short(name, 120), remote.Short(h.Linkname, 120))
			}
			e.Mode, e.Size, e.From, e.Target = of.Mode, of.Size, of.From, of.Target
		case tar.TypeDir:
			e.Mode |= fs.ModeDir
		case tar.TypeSymlink:
			e.Mode, e.Target = fs.ModeSymlink|fs.ModePerm, h.Linkname
		default:
			e.Mode = fs.ModeIrregular
		}
		if e.Mode.Type() == fs.ModeSymlink && e.Target == "" {
			e.Mode = fs.ModeIrregular
		}
		first[name] = e
		if strings.Contains(name+"/", "/.rentop/") || tree.OursIn(name) || e.Mode.Type() == fs.ModeIrregular {
			r.out.Plan.LeftOut++
			return nil
		}
		root, rel := rootOf(name, r.from.Home)
		if rel == "" {
			return nil // the home, or a folder of the root: it is there or is made
		}
		if err := tree.CheckPath(rel); err != nil {
			return fmt.Errorf("%s: %w", remote.Short(name, 120), err)
		}
		e.Path = rel
		at := roots[root]
		if at == nil {
			at = &restoreRoot{root: root, sums: map[string]string{}}
			roots[root] = at
			r.roots = append(r.roots, at)
		}
		if e.Mode.IsRegular() {
			at.sums[rel] = manifest[name]
		}
		if i, twice := seen[name]; twice { // the later one counts
			at.want[i] = e
			return nil
		}
		seen[name] = len(at.want)
		at.want = append(at.want, e)
		return nil
	})
	if err == nil && len(r.roots) == 0 {
		err = errors.New("it holds no files")
	}
	return err
}

// rootOf says below which root a path of the archive lies, and where.
func rootOf(name, home string) (root, rel string) {
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(home, "/")); ok && home != "" && home != "/" && (rest == "" || rest[0] == '/') {
		return "~", strings.TrimPrefix(rest, "/")
	}
	top, rest, deep := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if !deep {
		return "/", top
	}
	return "/" + top, rest
}

// compare looks at what is there, and decides what comes.
func (r *restorer) compare(ctx context.Context, t sync.Transport) error {
	p := &r.out.Plan
	p.Files, p.Bytes, p.Equal, p.Differ = 0, 0, 0, nil
	var err error
	if r.home, _, err = t.Resolve(ctx, "~"); err != nil {
		return err
	}
	for _, root := range r.roots {
		if err := r.compareRoot(ctx, t, root); err != nil {
			return err
		}
		p.Files += len(root.send) + len(root.links)
		p.Bytes += root.bytes
	}
	slices.SortFunc(p.Differ, func(a, b Occupied) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

func (r *restorer) compareRoot(ctx context.Context, t sync.Transport, root *restoreRoot) error {
	abs, _, err := t.Resolve(ctx, root.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root.root = abs
	have, err := r.have(ctx, t, root)
	if err != nil {
		return err
	}
	root.send, root.links, root.folders, root.aside, root.bytes = nil, nil, nil, nil, 0
	root.left, root.gone = map[string]bool{}, map[string]bool{}
	made := map[string]bool{}
	slices.SortStableFunc(root.want, func(a, b sync.Entry) int { return tree.Compare(a.Path, b.Path) })
	for _, e := range root.want {
		r.above(root, e, have, made)
		if root.skipped(e.Path) {
			continue
		}
		if made[e.Path] && e.Mode.IsDir() {
			continue
		}
		e.Target = r.target(e.Target)
		now, there := have[e.Path]
		there = there && !below(e.Path, root.gone)
		why := ""
		switch {
		case !there:
		case e.Mode.IsDir() && now.Mode.IsDir():
			continue
		case e.Mode.Type() != now.Mode.Type():
			why = "a " + tree.TypeName(now.Mode) + " is there"
		case e.Target != "" && e.Target == now.Target, e.Mode.IsRegular() && now.SHA256 != "" && now.SHA256 == root.sums[e.Path]:
			r.out.Plan.Equal++
			continue
		case e.Mode.IsRegular() && now.ModTime.After(e.ModTime) && !tree.SameTime(now.ModTime, e.ModTime):
			why = "a newer one is there"
		default:
			why = "its content differs"
		}
		if why != "" {
			r.occupied(root, now, e, why)
			if root.left[e.Path] {
				continue
			}
		}
		switch {
		case e.Mode.IsDir():
			made[e.Path] = true
			e.Mode |= 0o700 // what is in it comes after it
			root.folders = append(root.folders, e)
		case e.Target != "":
			root.links = append(root.links, e)
		default:
			root.send = append(root.send, e)
			root.bytes += e.Size
		}
	}
	return nil
}

// above sees to the folders of e that the archive does not name.
func (r *restorer) above(root *restoreRoot, e sync.Entry, have map[string]sync.Entry, made map[string]bool) {
	var missing []string
	for d := path.Dir(e.Path); d != "." && !made[d]; d = path.Dir(d) {
		now, there := have[d]
		there = there && !below(d, root.gone)
		if there && now.Mode.IsDir() {
			break
		}
		if there && !root.skipped(d) {
			r.occupied(root, now, e, "a "+tree.TypeName(now.Mode)+" is where a folder was")
		}
		missing = append(missing, d)
	}
	for _, d := range slices.Backward(missing) {
		if !root.skipped(d) {
			made[d] = true
			root.folders = append(root.folders, sync.Entry{Path: d, Mode: fs.ModeDir | 0o755})
		}
	}
}

// target is where a symlink points there: into the home, where it pointed into it.
func (r *restorer) target(t string) string {
	if root, rel := rootOf(t, r.from.Home); root == "~" && path.IsAbs(t) {
		return path.Join(r.home, rel)
	}
	return t
}

// occupied is a thing in the way: it stays, or goes to the trash.
func (r *restorer) occupied(root *restoreRoot, now, comes sync.Entry, why string) {
	what := refused
	if r.spec.fate != nil {
		what = r.spec.fate(root.abs(now.Path), now, comes)
	} else if r.spec.Overwrite && !now.Mode.IsDir() {
		what = aside
	}
	if r.spec.fate == nil || what == refused {
		r.out.Plan.Differ = append(r.out.Plan.Differ, Occupied{root.abs(now.Path), why})
	}
	if what == aside {
		root.aside = append(root.aside, now)
		root.gone[now.Path] = true
		return
	}
	root.left[now.Path] = true // a folder in the way is never removed
}

// have is what is there at the paths and folders that are wanted, files of equal size
// with their SHA-256.
func (r *restorer) have(ctx context.Context, t sync.Transport, root *restoreRoot) (map[string]sync.Entry, error) {
	size := map[string]int64{}
	for _, e := range root.want {
		size[e.Path] = e.Size
		for d := path.Dir(e.Path); d != "."; d = path.Dir(d) {
			if _, known := size[d]; known {
				break
			}
			size[d] = 0
		}
	}
	paths := make([]string, 0, len(size))
	for p := range size {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	have := map[string]sync.Entry{}
	err := t.Stat(ctx, root.root, paths, func(e sync.Entry) error { have[e.Path] = e; return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return have, nil // the root is not there yet
	}
	if err != nil {
		return nil, err
	}
	paths = paths[:0]
	for p, e := range have {
		if e.Mode.IsRegular() && root.sums[p] != "" && e.Size == size[p] {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	sums, err := hashes(ctx, t, root.root, paths, nil)
	for p, sum := range sums {
		e := have[p]
		e.SHA256 = sum
		have[p] = e
	}
	return have, err
}

// stage unpacks what will be sent, under numbers: no name of the archive is a name of
// this computer.
func (r *restorer) stage(ctx context.Context) (dir string, err error) {
	dir = r.staged()
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dir, err
	}
	type part struct {
		number string
		size   int64
	}
	need := map[string]part{} // by name in the archive
	for _, root := range r.roots {
		for i, e := range root.send {
			p, ok := need[e.From]
			if !ok {
				p = part{strconv.Itoa(len(need) + 1), e.Size}
				need[e.From] = p
			}
			root.send[i].From = p.number
		}
	}
	if len(need) == 0 {
		return dir, nil
	}
	r.meter.begin("unpack", len(need), 0)
	err = r.from.Read(ctx, nil, func(h *tar.Header, body io.Reader) error {
		p, wanted := need[path.Join("/", h.Name)]
		if !wanted || h.Typeflag != tar.TypeReg || h.Size != p.size { // of two with one name the later counts; there is room for it alone
			return nil
		}
		to := filepath.Join(dir, p.number)
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, body)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		r.meter.counted(0)
		return os.Chtimes(to, h.ModTime, h.ModTime) // a transport sends what is as it was listed
	})
	return dir, err
}

// bring makes room, folders and files of one root.
func (r *restorer) bring(ctx context.Context, t sync.Transport, root *restoreRoot, dir string) error {
	if len(root.send)+len(root.links)+len(root.folders)+len(root.aside) == 0 {
		return nil
	}
	trash, err := sync.Aside(ctx, t, root.root, root.aside, r.s.f.opt.Now())
	if trash != "" {
		r.out.Trash = append(r.out.Trash, root.abs(trash))
	}
	if err != nil {
		return err
	}
	root.aside = nil
	if err := sync.MakeFolders(ctx, t, root.root, root.folders); err != nil {
		return err
	}
	fail := func(p string, err error) {
		r.out.Failed = append(r.out.Failed, sync.Failure{Path: root.abs(p), Err: err})
	}
	if len(root.send) > 0 {
		err = t.Send(ctx, filepath.ToSlash(dir), root.root, root.send, r.meter, func(e sync.Entry, err error) {
			switch {
			case err != nil:
				fail(e.Path, err)
			case e.SHA256 != root.sums[e.Path]:
				fail(e.Path, errors.New("what arrived is not what the snapshot holds"))
			default:
				r.out.Files++
				r.out.Bytes += e.Size
				r.meter.counted(0)
			}
		})
		if err != nil {
			return err
		}
	}
	acts := make([]sync.Action, len(root.links))
	for i, e := range root.links {
		acts[i] = sync.Action{Op: sync.Link, Entry: e, Why: "new"}
	}
	if len(acts) == 0 {
		return nil
	}
	return t.Apply(ctx, root.root, acts, func(a sync.Action, err error) {
		if err != nil {
			fail(a.Entry.Path, err)
		}
	})
}
