// Destinations that are no folder of this computer: a bucket, another instance.

package release

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/phrase"
)

// Found is a file that an artifact names.
type Found struct {
	Path    string // absolute on the instance
	Rel     string // below the destination, with slashes
	Local   string // its place here; "" where it has none, or where the destination is elsewhere
	Size    int64
	ModTime time.Time
}

// Place is a destination elsewhere. Its files are named by Found.Rel.
type Place interface {
	// Prove reads each file on the instance and compares it with what the place has,
	// both as they are now. The error says that nothing is known.
	Prove(ctx context.Context, r remote.Runner, files []Found, progress func(done int)) ([]PlaceProof, error)
	// Look names what each file is there now, "" for one that is gone. It reads no
	// content: a version that Prove told is compared with it.
	Look(ctx context.Context, files []Found) ([]string, error)
	// Save brings files there. done is called once a file; the error is for the whole.
	Save(ctx context.Context, r remote.Runner, files []Found, done func(Found, error)) error
	Close() error
}

// PlaceProof is what is known of one file at a place.
type PlaceProof struct {
	SHA256  string      // hex
	Version string      // for Look
	Problem phrase.Text // none: equal, byte for byte
}

// otherPlace recognises a destination that is not a local folder: a URL, or
// "name:path" (one letter is a Windows drive).
var otherPlace = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://|^[A-Za-z0-9_.-]{2,}:`)

func (a Artifact) elsewhere() bool { return otherPlace.MatchString(a.To) }

// Find lists the files that an artifact names, as a release would demand them.
func (d Deps) Find(ctx context.Context, a Artifact) ([]Found, error) {
	m := &Machine{d: d.filled(), runner: d.Runner}
	list, _, err := m.matchArtifact(ctx, a)
	return founds(list), err
}

func founds(list []matched) []Found {
	out := make([]Found, len(list))
	for i, l := range list {
		out[i] = l.found()
	}
	return out
}

func (l matched) found() Found {
	f := Found{Path: l.path, Rel: l.rel, Size: l.size, ModTime: l.modTime()}
	if !l.far {
		f.Local = l.local
	}
	return f
}

// newest leaves out checkpoints that the artifact's keep gives up.
func (m *Machine) newest(list []matched, keep int) []matched {
	stays := map[string]bool{}
	for _, f := range m.d.Newest(founds(list), keep) {
		stays[f.Path] = true
	}
	return slices.DeleteFunc(list, func(l matched) bool { return !stays[l.path] })
}

// placed is where a file of an artifact will be at a place, for the eye.
func placed(a Artifact, rel string) string {
	if strings.HasSuffix(a.To, ":") || strings.HasSuffix(a.To, "/") {
		return a.To + rel
	}
	return a.To + "/" + rel
}

// proveThere compares an artifact's files with a place.
func (m *Machine) proveThere(ctx context.Context, a Artifact, list []matched) ([]verdict, error) {
	p, err := m.d.Place(a.To)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	proofs, err := p.Prove(ctx, m.runner, founds(list), m.counting(CheckArtifacts, "artifacts.there", len(list)))
	if err != nil {
		return nil, err
	}
	if len(proofs) != len(list) {
		return nil, fmt.Errorf("%d proofs for %d files", len(proofs), len(list))
	}
	out := make([]verdict, len(list))
	for i, p := range proofs {
		out[i] = verdict{sum: p.SHA256, problem: p.Problem, there: p.Version}
	}
	return out, nil
}

// placesMoved asks the places once more for what the proof rests upon.
func (m *Machine) placesMoved(ctx context.Context) (changed []string) {
	byPlace := map[string][]proof{}
	for _, key := range sortedKeys(m.proofs) {
		if p := m.proofs[key]; p.to != "" {
			byPlace[p.to] = append(byPlace[p.to], p)
		}
	}
	for _, to := range sortedKeys(byPlace) {
		changed = append(changed, m.placeMoved(ctx, to, byPlace[to])...)
	}
	return changed
}

func (m *Machine) placeMoved(ctx context.Context, to string, proofs []proof) (changed []string) {
	files := make([]Found, len(proofs))
	for i, p := range proofs {
		files[i] = p.found()
	}
	p, err := m.d.Place(to)
	var now []string
	if err == nil {
		now, err = p.Look(ctx, files)
		p.Close()
	}
	if err != nil || len(now) != len(files) {
		return []string{remote.Short(to, 120) + " (cannot be looked at any more)"}
	}
	for i, v := range now {
		if v == "" || v != proofs[i].there {
			changed = append(changed, remote.Short(proofs[i].local, 160))
		}
	}
	return changed
}

// saveThere brings an artifact's files that are not proven to its place.
func (m *Machine) saveThere(ctx context.Context, a Artifact, done *pullData) error {
	list, _, err := m.matchArtifact(ctx, a)
	if err != nil {
		return nil // the check says why
	}
	var lack []Found
	for _, l := range list {
		if _, ok := m.verified[l.path]; !ok {
			lack = append(lack, l.found())
		}
	}
	if len(lack) == 0 {
		return nil
	}
	p, err := m.d.Place(a.To)
	if err != nil {
		return err
	}
	defer p.Close()
	n, say := 0, m.counting(CheckArtifacts, "why.pulling", len(lack))
	return p.Save(ctx, m.runner, lack, func(f Found, err error) {
		n++
		say(n)
		done.note(path.Base(f.Path), err)
	})
}
