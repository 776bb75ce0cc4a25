package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"rentop/remote"
	"rentop/remote/agent"
	agentlink "rentop/remote/agent/link"
	"rentop/remote/provider"
	"rentop/remote/store"
	"rentop/session/config"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// This file opens the destinations of artifacts that are no folder here.

// place is what release.Deps.Place asks for.
func (s *Session) place(to string) (release.Place, error) {
	if store.IsURL(to) {
		c, err := s.bucket(to)
		if err != nil {
			return nil, err
		}
		return bucketPlace{c}, nil
	}
	name, dir, _ := strings.Cut(to, ":")
	other, err := s.f.Session(name)
	if err != nil {
		return nil, fmt.Errorf("the destination %s: %w", remote.Short(to, 120), err)
	}
	return instancePlace{from: s, to: other, dir: dir}, nil
}

// bucket opens the place that an s3:// URL names, with the key of this computer.
func (s *Session) bucket(to string) (*store.Client, error) {
	p, err := s.f.Config().Place(to)
	if err != nil {
		return nil, err
	}
	key, err := store.Keys{Secrets: s.f.opt.Secrets}.Find(p.Bucket)
	if err != nil {
		return nil, err
	}
	p = p.Seen(s.cfg().Provider, provider.RegionOf(s.cfg().Provider, s.providerID()))
	o := store.Options{Now: s.f.opt.Now}
	if s.f.Config().Transfer.MayUseAgent() {
		o.Helper = s.storeHelper
	}
	return store.Open(p, key, o)
}

// storeHelper starts the helper that speaks to storage.
func (s *Session) storeHelper(ctx context.Context) (agentlink.Link, error) {
	conn, facts, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	h, err := agent.Open(ctx, conn, facts, "store", agent.Options{Binaries: agent.Store(), MaxStripes: 1})
	if missing := (*agent.MissingError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("%w (%w)", store.ErrNoTool, err)
	}
	if err != nil {
		return nil, err
	}
	return &helperLink{h.Link(), h}, nil
}

// SaveBucketKey keeps the key of a bucket in the OS keyring.
func (f *Fleet) SaveBucketKey(bucket string, key store.Key) error {
	return store.Keys{Secrets: f.opt.Secrets}.Save(bucket, key)
}

// bucketPlace is a prefix of a bucket.
type bucketPlace struct{ c *store.Client }

func (b bucketPlace) Close() error { b.c.Close(); return nil }

func storeFiles(files []release.Found) []store.File {
	out := make([]store.File, len(files))
	for i, f := range files {
		out[i] = store.File{Path: f.Path, Rel: f.Rel, Size: f.Size, ModTime: f.ModTime}
	}
	return out
}

func (b bucketPlace) Prove(ctx context.Context, r remote.Runner, files []release.Found, progress func(int)) ([]release.PlaceProof, error) {
	proofs, err := b.c.Prove(ctx, r, storeFiles(files), progress)
	out := make([]release.PlaceProof, len(proofs))
	for i, p := range proofs {
		out[i] = release.PlaceProof{SHA256: p.SHA256, Version: p.Version, Problem: placeProblem(p.Problem)}
	}
	return out, err
}

// placeProblem is what stands against a file at a place.
func placeProblem(err error) phrase.Text {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrMissing):
		return phrase.Say("artifacts.notthere")
	case errors.Is(err, store.ErrChanged):
		return phrase.Say("artifacts.moving.there")
	}
	return phrase.Plain(err.Error())
}

func (b bucketPlace) Look(ctx context.Context, files []release.Found) ([]string, error) {
	rels := make([]string, len(files))
	for i, f := range files {
		rels[i] = f.Rel
	}
	return b.c.Look(ctx, rels)
}

func (b bucketPlace) Save(ctx context.Context, r remote.Runner, files []release.Found, done func(release.Found, error)) error {
	_, err := b.save(ctx, r, files, func(s store.Saved) {
		done(release.Found{Path: s.File.Path, Rel: s.File.Rel, Size: s.File.Size, ModTime: s.File.ModTime}, s.Err)
	}, nil)
	return err
}

// save brings files there and writes what was proven into the manifest beside them.
func (b bucketPlace) save(ctx context.Context, r remote.Runner, files []release.Found, done func(store.Saved), sent func(int64)) (proven map[string]string, err error) {
	proven = map[string]string{}
	err = b.c.Save(ctx, r, storeFiles(files), store.Saving{Sent: sent, Done: func(s store.Saved) {
		if s.Err == nil {
			proven[s.File.Rel] = s.SHA256
		}
		done(s)
	}})
	if len(proven) > 0 && ctx.Err() == nil {
		err = errors.Join(err, b.c.WriteManifest(ctx, proven))
	}
	return proven, err
}

// list names what is there. Times are those of arrival.
func (b bucketPlace) list(ctx context.Context, each func(release.Found)) error {
	return b.c.List(ctx, "", func(o store.Listed) error {
		each(release.Found{Rel: o.Rel, Size: o.Size, ModTime: o.Modified})
		return nil
	})
}

// instancePlace is a folder on another instance.
type instancePlace struct {
	from, to *Session
	dir      string
}

func (instancePlace) Close() error { return nil }

// both opens a plain transport to either end and resolves the folder.
func (p instancePlace) both(ctx context.Context) (from, to sync.Transport, dir string, end func(), err error) {
	from, to, end, err = CopySpec{From: p.from, To: p.to}.openRelay(ctx)
	if err != nil {
		return nil, nil, "", nil, err
	}
	dir, _, err = to.Resolve(ctx, p.dir)
	if dir == "" {
		end()
		return nil, nil, "", nil, fmt.Errorf("%s: %s: %w", p.to.Name(), remote.Short(p.dir, 120), err)
	}
	return from, to, dir, end, nil
}

func hashes(ctx context.Context, t sync.Transport, root string, paths []string, progress func(int)) (map[string]string, error) {
	out := map[string]string{}
	n := 0
	err := t.Hash(ctx, root, paths, func(path, sum string, err error) {
		if n++; progress != nil {
			progress(n)
		}
		if err == nil {
			out[path] = sum
		}
	})
	return out, err
}

func (p instancePlace) Prove(ctx context.Context, _ remote.Runner, files []release.Found, progress func(int)) ([]release.PlaceProof, error) {
	from, to, dir, end, err := p.both(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	here, there := make([]string, len(files)), make([]string, len(files))
	for i, f := range files {
		here[i], there[i] = strings.TrimPrefix(f.Path, "/"), f.Rel
	}
	a, err := hashes(ctx, from, "/", here, progress)
	if err != nil {
		return nil, err
	}
	versions, err := p.versions(ctx, to, dir, there)
	if err != nil {
		return nil, err
	}
	b, err := hashes(ctx, to, dir, there, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := make([]release.PlaceProof, len(files))
	for i := range files {
		o := &out[i]
		o.SHA256, o.Version = a[here[i]], versions[there[i]]
		switch sum := b[there[i]]; {
		case o.SHA256 == "":
			o.Problem = phrase.Say("artifacts.unreadable")
		case o.Version == "":
			o.Problem = phrase.Say("artifacts.notthere")
		case sum != o.SHA256:
			o.Problem = phrase.Say("artifacts.otherthere")
		}
	}
	return out, nil
}

// versions are sizes and times of files there, by path.
func (p instancePlace) versions(ctx context.Context, t sync.Transport, dir string, rels []string) (map[string]string, error) {
	out := map[string]string{}
	err := t.Stat(ctx, dir, rels, func(e sync.Entry) error {
		if e.Mode.IsRegular() {
			out[e.Path] = fmt.Sprint(e.Size, " ", e.ModTime.UnixNano())
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // the folder is not made yet
		err = nil
	}
	return out, err
}

func (p instancePlace) Look(ctx context.Context, files []release.Found) ([]string, error) {
	_, to, dir, end, err := p.both(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	rels := make([]string, len(files))
	for i, f := range files {
		rels[i] = f.Rel
	}
	versions, err := p.versions(ctx, to, dir, rels)
	out := make([]string, len(files))
	for i, rel := range rels {
		out[i] = versions[rel]
	}
	return out, err
}

// Save copies through this machine's memory, folder by folder: what a folder holds
// beside is left out of its plan.
func (p instancePlace) Save(ctx context.Context, _ remote.Runner, files []release.Found, done func(release.Found, error)) error {
	bases := map[string][]release.Found{}
	var order []string
	for _, f := range files {
		base := strings.TrimSuffix(f.Path, "/"+f.Rel)
		if base == f.Path {
			done(f, errors.New("its place there cannot be told"))
			continue
		}
		if bases[base] == nil {
			order = append(order, base)
		}
		bases[base] = append(bases[base], f)
	}
	for _, base := range order {
		if err := p.saveBelow(ctx, base, bases[base], done); err != nil {
			return err
		}
	}
	return nil
}

func (p instancePlace) saveBelow(ctx context.Context, base string, files []release.Found, done func(release.Found, error)) error {
	c := CopySpec{From: p.from, To: p.to, FromPath: path.Join("/", base), ToPath: p.dir, Checksum: true}
	want := map[string]bool{}
	for _, f := range files {
		want[f.Rel] = true
	}
	res, err := p.from.f.Copy(ctx, c, func(plan *sync.Plan) error {
		*plan = *only(plan, want, false)
		return nil
	}, nil)
	if res == nil {
		return err
	}
	failed := map[string]error{}
	for _, f := range res.Failed {
		failed[f.Path] = f.Err
	}
	if err == nil {
		for _, f := range files {
			done(f, failed[f.Rel])
		}
	}
	return err
}

// artifactsOf are the configured ones, as a release wants them.
func artifactsOf(in config.Instance) []release.Artifact {
	var out []release.Artifact
	for _, a := range in.Artifacts {
		to := a.To
		if !config.Elsewhere(to) {
			to = expandHome(to)
		}
		out = append(out, release.Artifact{Path: a.Path, To: to, Keep: a.Keep})
	}
	return out
}
