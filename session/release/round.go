// One round of checks, what each verdict rests upon, and the comparison of two
// rounds: nothing may have changed between proof and teardown.

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/session/phrase"
)

// order is the order of the lines as shown.
var order = []CheckID{CheckJobs, CheckArtifacts, CheckUnsaved, CheckGit, CheckEnv, CheckSnapshot, CheckCosts}

// finding is a check with everything that its verdict rests upon: names and
// the versions that were seen. Two rounds agree when all of it is equal.
type finding struct {
	Check
	rests map[string]string
	sum   string     // digest of rests
	files []fileStat // of CheckUnsaved: what would be lost
}

func (f finding) digest() string {
	h := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(f.rests)) {
		fmt.Fprintf(h, "%d %s %d %s\n", len(k), k, len(f.rests[k]), f.rests[k])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// unknown is the finding of a check that could not be made. All reasons rest
// upon the same thing: that nothing is known.
func unknown(id CheckID, why, cure phrase.Text) finding {
	return finding{
		Check: Check{ID: id, State: Unknown, Summary: phrase.Say("release.unchecked").Then(why), Cure: cure},
		rests: map[string]string{"": "unknown"},
	}
}

func (m *Machine) resetChecks() {
	m.round = map[CheckID]finding{}
	m.verified, m.proofs = nil, map[string]proof{}
	m.v.Checks = nil
	for _, id := range order {
		m.v.Checks = append(m.v.Checks, Check{ID: id, State: Pending})
	}
	m.v.GoesOn = nil
}

// set puts a finding on the list.
func (m *Machine) set(f finding) {
	if f.At.IsZero() {
		f.At = m.d.Clock.Now()
	}
	f.sum = f.digest()
	m.round[f.ID] = f
	m.v.Checks[slices.Index(order, f.ID)] = f.Check
	m.publish()
}

// active shows that a check is under way and how far it is.
func (m *Machine) active(id CheckID, summary phrase.Text) {
	c := &m.v.Checks[slices.Index(order, id)]
	c.State, c.Summary, c.Evidence, c.Cure = Active, summary, nil, nil
	m.publish()
}

// checkAll does every check anew; nothing is taken from an earlier round.
func (m *Machine) checkAll(ctx context.Context) error {
	m.rounds++ // a name typed at an earlier picture is no word about this one
	m.resetChecks()
	m.phase(Checking)
	return m.cancellable(ctx, func(ctx context.Context) error { return m.checks(ctx) })
}

// checks runs the checks in the order in which their facts must be read: the
// long hashing of artifacts first, then the look for files that changed, so
// that a file which changes while it is hashed is seen.
func (m *Machine) checks(ctx context.Context) error {
	m.connect(ctx)
	var trees []gitTree
	var gitErr error
	steps := []struct {
		id CheckID
		do func(context.Context) finding
	}{
		{CheckJobs, m.checkJobs},
		{CheckEnv, m.checkEnv},
		{CheckArtifacts, m.checkArtifacts},
		{CheckUnsaved, func(ctx context.Context) finding {
			var f finding
			f, trees, gitErr = m.checkFiles(ctx)
			return f
		}},
		{CheckGit, func(ctx context.Context) finding {
			m.proveBundles(ctx)
			return m.checkGit(trees, gitErr)
		}},
		{CheckSnapshot, m.checkSnapshot},
		{CheckCosts, m.checkCosts},
	}
	for _, s := range steps {
		m.active(s.id, nil)
		if err := m.log(ctx, stepCheck, checkData{ID: s.id}); err != nil {
			return err
		}
		f := s.do(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.log(ctx, stepChecked, checkData{ID: s.id, State: f.State, Summary: f.Summary.String()}); err != nil {
			return err
		}
		m.set(f)
	}
	return nil
}

// connect finds out once a round whether the instance answers: a dead one must
// not be waited for in every line.
func (m *Machine) connect(ctx context.Context) {
	m.runner, m.offline = m.d.Runner, nil
	if m.runner == nil {
		m.offline = phrase.Say("release.offline")
		return
	}
	err := m.runner.Run(ctx, remote.Cmd{Script: "exit 0"})
	if _, ran := remote.ExitCode(err); !ran {
		m.runner, m.offline = nil, why(err)
	}
}

// recheck does every check again behind the picture that was approved and
// returns what differs from it; no text where nothing does.
func (m *Machine) recheck(ctx context.Context) (phrase.Text, error) {
	shown, picture := m.round, slices.Clone(m.v.Checks)
	goesOn := m.v.GoesOn
	m.phase(Rechecking)
	m.resetChecks()
	err := m.cancellable(ctx, m.checks)
	if err != nil {
		return nil, err
	}
	changed := m.differences(shown, m.round)
	if len(changed) == 0 {
		changed = m.lastLook(ctx, shown[CheckJobs])
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if len(changed) > 0 {
		return sayChanged(changed), nil
	}
	m.round, m.v.Checks, m.v.GoesOn = shown, picture, goesOn
	return nil, nil
}

// lastLook compares without hashing what the long recheck read first: sizes and
// times of every artifact on both sides, of every file that changed, and the jobs.
func (m *Machine) lastLook(ctx context.Context, jobs finding) []string {
	m.active(CheckJobs, phrase.Say("release.lastlook"))
	changed := append(m.artifactsMoved(ctx), m.filesMoved(ctx)...)
	changed = append(changed, m.copiesMoved()...)
	changed = append(changed, m.placesMoved(ctx)...)
	return append(changed, m.differences(map[CheckID]finding{CheckJobs: jobs}, map[CheckID]finding{CheckJobs: m.checkJobs(ctx)})...)
}

func sayChanged(changed []string) phrase.Text {
	const show = 3
	s := strings.Join(changed[:min(show, len(changed))], ", ")
	say := phrase.Say("why.changed", s)
	if n := len(changed) - show; n > 0 {
		say = phrase.List(say, phrase.Say("release.more", n))
	}
	return say
}

// differences names what is not equal in two rounds. A file that was lost in
// both and is only being written on is noted, so that the next picture can say so
// and ask for that.
func (m *Machine) differences(a, b map[CheckID]finding) []string {
	var out []string
	for _, id := range order {
		fa, fb := a[id], b[id]
		for _, k := range slices.Sorted(maps.Keys(union(fa.rests, fb.rests))) {
			va, oka := fa.rests[k]
			vb, okb := fb.rests[k]
			if oka == okb && va == vb {
				continue
			}
			if oka && okb && (id == CheckUnsaved || id == CheckArtifacts && !strings.HasSuffix(va, " ") && !strings.HasSuffix(vb, " ")) {
				m.moving[k] = true
			}
			what := remote.Short(k, 120)
			if k == "" {
				what = string(id)
			}
			switch {
			case !oka:
				what += " (new)"
			case !okb:
				what += " (gone)"
			}
			out = append(out, what)
		}
	}
	return out
}

func union(a, b map[string]string) map[string]string {
	u := maps.Clone(a)
	if u == nil {
		u = map[string]string{}
	}
	maps.Copy(u, b)
	return u
}

// why makes one short sentence of an error from the instance.
func why(err error) phrase.Text { return phrase.Plain(remote.Short(err.Error(), 300)) }

// stdin makes NUL-ended records for a script.
func stdin(items []string) io.Reader {
	var b strings.Builder
	for _, s := range items {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return strings.NewReader(b.String())
}
