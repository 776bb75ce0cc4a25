// Snapshots as a line of the checklist: the decision to take one, and the proof
// that one which was taken is still whole.

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"

	"rentop/remote"
	"rentop/session/phrase"
)

type takenSnapshot struct {
	Kind     SnapshotKind `json:"kind"`
	ID       string       `json:"id,omitempty"`   // the provider's
	File     string       `json:"file,omitempty"` // portable: the archive here
	SHA256   string       `json:"sha256,omitempty"`
	Manifest string       `json:"manifest,omitempty"` // its SHA-256
	Files    int          `json:"files,omitempty"`
	Size     int64        `json:"size,omitempty"`
	Error    string       `json:"error,omitempty"`
}

func (m *Machine) replaySnapshot(e Entry) {
	var s takenSnapshot
	if json.Unmarshal(e.Data, &s) != nil {
		return
	}
	switch {
	case e.Step == stepSnap && s.Kind == ProviderSnapshot:
		m.snapNote = phrase.Say("snapshot.lost")
	case e.Step == stepSnapped:
		m.snapNote = nil
		if s.Error == "" {
			m.snapshots = append(m.snapshots, s)
		}
	}
}

// checkSnapshot shows what was taken, and proves a portable one whole again.
func (m *Machine) checkSnapshot(ctx context.Context) finding {
	f := finding{Check: Check{ID: CheckSnapshot, State: Offered}, rests: map[string]string{}}
	for _, s := range m.snapshots {
		e := Evidence{What: remote.Short(s.ID, 120), Size: -1, Detail: phrase.Say("snapshot.billed")}
		if s.Kind == ProviderSnapshot {
			if err := m.readySnapshot(ctx, s.ID); err != nil {
				f.State, f.Cure = Failed, phrase.Say("snapshot.cure")
				e.Detail, e.Lost = why(err), true
			}
		}
		if s.Kind == PortableSnapshot {
			e = Evidence{What: s.File, Size: s.Size, Detail: phrase.Count("snapshot.readback", s.Files, s.SHA256)}
			if _, err := provenArchive(ctx, s); err != nil {
				f.State = Failed
				f.Cure = phrase.Say("snapshot.cure")
				e.Detail, e.Lost = why(err), true
			}
		}
		f.Evidence = append(f.Evidence, e)
		f.rests[s.ID+s.File] = s.SHA256 + e.Detail.String()
	}
	switch {
	case f.State == Failed:
		f.Summary = phrase.Say("snapshot.broken")
	case len(m.snapshots) > 0:
		f.State, f.Summary = Passed, phrase.Count("snapshot.taken", len(m.snapshots))
	case len(m.snapNote) > 0:
		f.Summary = m.snapNote
	case m.declined:
		f.State, f.Summary = Passed, phrase.Say("snapshot.declined")
	case len(m.v.Snapshots) == 0:
		f.State, f.Summary = Passed, phrase.Say("snapshot.impossible")
	default:
		f.Summary = phrase.Say("snapshot.offered")
	}
	return f
}

// snapshot does what the person decided and records it before and after. That
// it failed is shown, not returned.
func (m *Machine) snapshot(ctx context.Context, d Decision) error {
	m.snapNote = nil
	if d.Snapshot == NoSnapshot {
		m.declined = true
		return nil
	}
	before := takenSnapshot{Kind: d.Snapshot}
	if err := m.log(ctx, stepSnap, before); err != nil {
		return err
	}
	m.v.Phase = Saving
	m.active(CheckSnapshot, ofKind(d.Snapshot, "snapshot.taking.provider", "snapshot.taking.portable"))
	taken := before
	err := m.cancellable(ctx, func(ctx context.Context) (err error) {
		if d.Snapshot == ProviderSnapshot {
			s, err := m.d.Provider.Snapshot(ctx, m.d.ProviderID, m.snapName())
			if taken.ID = s.ID; err == nil {
				err = m.awaitSnapshot(ctx, s.ID)
			}
			return err
		}
		taken, err = m.portable(ctx, d.Paths)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		taken = before
		taken.Error = remote.Short(err.Error(), 300)
		m.snapNote = ofKind(d.Snapshot, "snapshot.failed.provider", "snapshot.failed.portable", taken.Error)
	} else {
		m.snapshots = append(m.snapshots, taken)
	}
	return m.log(ctx, stepSnapped, taken)
}

// ofKind says one thing about a provider's snapshot and another about a portable one.
func ofKind(k SnapshotKind, provider, portable phrase.ID, args ...any) phrase.Text {
	if k == ProviderSnapshot {
		return phrase.Say(provider, args...)
	}
	return phrase.Say(portable, args...)
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (m *Machine) snapName() string {
	return notPlain.ReplaceAllString(m.d.Instance, "_") + "-" + stamp(m.d.Clock.Now())
}

// provenArchives joins the manifests of all portable snapshots that are whole.
func (m *Machine) provenArchives(ctx context.Context) map[string]string {
	all := map[string]string{}
	for _, s := range m.snapshots {
		if s.Kind != PortableSnapshot {
			continue
		}
		st, err := os.Stat(s.File)
		if err != nil {
			continue // checkSnapshot shows the error
		}
		if mf, err := provenArchive(ctx, s); err == nil {
			maps.Copy(all, mf)
			m.proofs["archive "+s.File] = proof{matched: matched{fileStat: fileStat{size: st.Size()}, local: s.File}, here: st.ModTime()}
		}
	}
	return all
}

// copyEnv keeps the captured environment beside the archive.
func (m *Machine) copyEnv(dir string) error {
	if m.d.EnvDir == "" {
		return nil
	}
	for name := range m.round[CheckEnv].rests {
		if !envName.MatchString(name) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(m.d.EnvDir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = writeBeside(filepath.Join(dir, name), b)
		}
		if err != nil {
			return fmt.Errorf("keep the environment beside the snapshot: %w", err)
		}
	}
	return nil
}

// ProviderStep reads a step of the journal that is about a provider's snapshot: its
// run, and what came of it. ok is false for any other step.
func ProviderStep(entry []byte) (run, id, problem string, ok bool) {
	var e Entry
	var s takenSnapshot
	if json.Unmarshal(entry, &e) != nil || e.Step != stepSnap && e.Step != stepSnapped ||
		json.Unmarshal(e.Data, &s) != nil || s.Kind != ProviderSnapshot {
		return "", "", "", false
	}
	return e.Run, s.ID, s.Error, true
}
