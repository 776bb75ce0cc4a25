package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/release"
)

// This file takes snapshots outside of a release, and lists those that there are.

// SnapshotSpec is a snapshot as a person asks for it.
type SnapshotSpec struct {
	Kind  release.SnapshotKind // "": the provider's own where it makes one and no path is named, else a portable one
	Paths []string             // portable: what to keep; none: what is unsaved, the folders of sync and of jobs, the artifacts
	Wait  bool                 // until the provider says that its own is whole
}

// Snapshot is one that can be gone back to.
type Snapshot struct {
	Kind     release.SnapshotKind
	ID       string // the provider's id, or a portable one's name
	Instance string // its name then
	At       time.Time
	State    SnapshotState
	Detail   string // the provider's own word, or why nothing is known
	Portable *release.Portable
	Provider string // its kind, of its own snapshots
	PerMonth string // decimal; "" where not known
	Currency string
}

// SnapshotState is what is known of a snapshot now.
type SnapshotState string

const (
	SnapshotHere    SnapshotState = "here"  // a portable one; it is read again before it is used
	SnapshotReady   SnapshotState = "ready" // the provider says that it is whole
	SnapshotMaking  SnapshotState = "making"
	SnapshotFailed  SnapshotState = "failed"
	SnapshotUnknown SnapshotState = "unknown" // the provider does not tell, or could not be asked
)

// snapshotData is the Data of ledger.Snapshot: written before it is asked for without
// an id, and after it.
type snapshotData struct {
	Run        string `json:"run"`
	Provider   string `json:"provider"`
	ProviderID string `json:"provider_id"`
	ID         string `json:"id,omitempty"`
	PerMonth   string `json:"per_month,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Error      string `json:"error,omitempty"`
}

// TakeSnapshot takes one. say hears how far it is. A portable one that was cut off goes
// on, also where rentop was killed: what came is read again and not brought again.
func (s *Session) TakeSnapshot(ctx context.Context, spec SnapshotSpec, say func(phrase.Text)) (Snapshot, error) {
	kind := spec.Kind
	if kind == "" {
		kind = release.PortableSnapshot
		if p := s.prov(); p != nil && p.Can().Snapshot && len(spec.Paths) == 0 {
			kind = release.ProviderSnapshot
		}
	}
	deps := s.releaseDeps(ctx)
	deps.Changed = func(v release.View) {
		for _, c := range v.Checks {
			if c.State == release.Active && len(c.Summary) > 0 {
				say(c.Summary)
			}
		}
	}
	defer s.f.work()()
	if kind == release.ProviderSnapshot {
		return s.takeProvider(ctx, deps, spec.Wait)
	}
	held, err := s.f.alone("snapshot-"+s.uid, "a snapshot of it")
	if err != nil {
		return Snapshot{}, err
	}
	defer held.Unlock()
	var beside []string
	if len(spec.Paths) == 0 {
		if beside, err = s.workPaths(ctx, deps); err != nil {
			return Snapshot{}, err
		}
	}
	var p release.Portable
	err = s.again(ctx, func() (err error) {
		p, err = release.TakePortable(ctx, deps, spec.Paths, beside)
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	return hereSnapshot(p, s.cfg().Name), nil
}

func hereSnapshot(p release.Portable, name string) Snapshot {
	return Snapshot{Kind: release.PortableSnapshot, ID: p.Name(), Instance: cmp.Or(p.Instance, name), At: p.At, State: SnapshotHere, Portable: &p}
}

func (s *Session) takeProvider(ctx context.Context, deps release.Deps, wait bool) (Snapshot, error) {
	out := Snapshot{Kind: release.ProviderSnapshot, Instance: s.cfg().Name, At: s.f.opt.Now().UTC(), State: SnapshotUnknown, Provider: s.cfg().Provider}
	d := snapshotData{Run: jobID("snapshot"), Provider: out.Provider, ProviderID: s.providerID()}
	if err := s.keepSnapshot(ctx, d); err != nil {
		return out, err // what is not written down might be paid for and never seen
	}
	got, err := release.TakeProvider(ctx, deps, wait)
	out.ID, out.PerMonth, out.Currency = got.ID, got.PerMonth, got.Currency
	d.ID, d.PerMonth, d.Currency = got.ID, got.PerMonth, got.Currency
	if err != nil {
		d.Error = remote.Short(err.Error(), 300)
	}
	err = errors.Join(err, s.keepSnapshot(context.WithoutCancel(ctx), d))
	if err != nil {
		return out, err
	}
	s.tellState(ctx, &out)
	return out, nil
}

func (s *Session) keepSnapshot(ctx context.Context, d snapshotData) error {
	_, err := s.f.ledger.Append(ctx, ledger.NewEvent(ledger.Snapshot, s.uid, "rentop", d))
	return err
}

// tellState asks the provider about its own snapshot.
func (s *Session) tellState(ctx context.Context, out *Snapshot) {
	im, tells := s.prov().(provider.Imager)
	if !tells || out.ID == "" {
		out.Detail = "its provider does not tell; look in its console"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	st, err := im.SnapshotState(ctx, out.ID)
	switch {
	case err != nil:
		out.Detail = remote.Short(err.Error(), 200)
	case st.Failed:
		out.State, out.Detail = SnapshotFailed, st.Detail
	case st.Ready:
		out.State, out.Detail = SnapshotReady, st.Detail
	default:
		out.State, out.Detail = SnapshotMaking, st.Detail
	}
}

// workPaths are the folders that a person works in there: those of sync and of jobs,
// and the artifacts' files. Not the home itself.
func (s *Session) workPaths(ctx context.Context, deps release.Deps) ([]string, error) {
	var out []string
	for _, pair := range s.cfg().Sync {
		out = append(out, pair.Remote)
	}
	jobs, err := s.listJobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		out = append(out, j.Dir)
	}
	for _, a := range deps.Artifacts {
		files, err := deps.Find(ctx, a)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for the artifact %s: %w", remote.Short(a.Path, 120), err)
		}
		for _, f := range files {
			out = append(out, f.Path)
		}
	}
	return slices.DeleteFunc(out, func(p string) bool {
		p = path.Clean(p)
		return p == "." || p == "~" || p == "/"
	}), nil
}

// Snapshots lists those of an instance, or of all where name is "", the newest first:
// portable ones that are here, also of instances that are gone from the config, and
// those that rentop asked providers for.
func (f *Fleet) Snapshots(ctx context.Context, name string) ([]Snapshot, error) {
	dir := filepath.Join(f.opt.Dirs.State, "snapshots")
	folders, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	var out []Snapshot
	for _, folder := range folders {
		if name != "" && folder.Name() != name {
			continue
		}
		list, err := release.Portables(filepath.Join(dir, folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			out = append(out, hereSnapshot(p, folder.Name()))
		}
	}
	for _, n := range f.Names() {
		if name != "" && n != name {
			continue
		}
		s, err := f.Session(n)
		if err != nil {
			continue // removed meanwhile
		}
		list, err := s.askedFor(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b Snapshot) int { return b.At.Compare(a.At) })
	return out, nil
}

// askedFor are the provider's snapshots that rentop asked for, in a release too.
func (s *Session) askedFor(ctx context.Context) ([]Snapshot, error) {
	events, err := s.f.ledger.Events(ctx, ledger.Filter{Instance: s.uid, Kinds: []ledger.Kind{ledger.Snapshot, ledger.Release}})
	if err != nil {
		return nil, err
	}
	byRun := map[string]int{}
	var out []Snapshot
	for _, e := range events {
		var d snapshotData
		if e.Kind == ledger.Release {
			var ok bool
			if d.Run, d.ID, d.Error, ok = release.ProviderStep(e.Data); !ok {
				continue
			}
			d.Provider = s.cfg().Provider
		} else if json.Unmarshal(e.Data, &d) != nil {
			continue // a newer rentop's
		}
		asked := d.ID == "" && d.Error == ""
		at, seen := byRun[d.Run]
		if !seen || asked {
			at, byRun[d.Run] = len(out), len(out)
			out = append(out, Snapshot{Kind: release.ProviderSnapshot, Instance: s.cfg().Name, At: e.At, State: SnapshotUnknown, Provider: d.Provider,
				Detail: "it was asked for before rentop ended; whether it exists, its provider's console shows"})
		}
		if asked {
			continue
		}
		one := &out[at]
		one.ID, one.PerMonth, one.Currency, one.Detail = remote.Short(d.ID, 120), d.PerMonth, d.Currency, remote.Short(d.Error, 200)
		if d.ID == "" {
			one.State = SnapshotFailed
		}
	}
	for i := range out {
		if out[i].ID != "" && s.prov() != nil {
			s.tellState(ctx, &out[i])
		}
	}
	return out, nil
}

// errNoSnapshot is wrapped where a name fits none.
var errNoSnapshot = errors.New("no such snapshot")

// findSnapshot takes a portable one's name, its file, an instance's name (its newest)
// or a provider's id.
func (f *Fleet) findSnapshot(ctx context.Context, which string) (Snapshot, error) {
	if st, err := os.Stat(which); err == nil && st.Mode().IsRegular() && strings.Contains(which, ".tar.") {
		p, _, err := release.OpenPortable(ctx, which)
		return hereSnapshot(p, ""), err
	}
	list, err := f.Snapshots(ctx, "")
	if err != nil {
		return Snapshot{}, err
	}
	for _, match := range []func(Snapshot) bool{
		func(s Snapshot) bool { return s.ID == which },
		func(s Snapshot) bool { return s.Portable != nil && s.Instance == which },
		func(s Snapshot) bool { return s.Portable != nil && strings.HasPrefix(s.ID, which) && which != "" },
	} {
		for _, s := range list {
			if match(s) {
				return s, nil
			}
		}
	}
	return Snapshot{}, fmt.Errorf("%w: %q; rentop snapshot --list names them", errNoSnapshot, remote.Short(which, 120))
}
