package session

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"

	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/release"
	"rentop/sync"
)

// This file brings artifacts to where they must be before the instance may go.

// SaveLine is what saving one artifact means.
type SaveLine struct {
	Artifact  config.Artifact
	Files     int
	Bytes     int64
	Lack      int // files that are not there, or have another size or time
	LackBytes int64
	Host      string   // of a bucket: the address that the instance sends to
	Internal  bool     // without public traffic
	Estimate  Estimate // of LackBytes; Traffic is nil where not known

	files, lack []release.Found
	target      release.Artifact
}

var errNoArtifacts = errors.New(`no artifacts are configured: rentop edit NAME --artifact '~/out/**=s3://bucket/prefix'`)

// PlanSave lists the artifacts on both sides by size, hashing nothing.
func (s *Session) PlanSave(ctx context.Context) ([]SaveLine, error) {
	list := s.cfg().Artifacts
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, errNoArtifacts)
	}
	deps := s.releaseDeps(ctx)
	var out []SaveLine
	for i, a := range list {
		l, err := s.planOne(ctx, deps, a, deps.Artifacts[i])
		if err != nil {
			return nil, fmt.Errorf("%s: save %s: %w", s.cfg().Name, a.Path, err)
		}
		out = append(out, l)
	}
	return out, nil
}

func (s *Session) planOne(ctx context.Context, deps release.Deps, a config.Artifact, target release.Artifact) (SaveLine, error) {
	l := SaveLine{Artifact: a, target: target}
	var err error
	if l.files, err = deps.Find(ctx, target); err != nil {
		return l, err
	}
	for _, f := range l.files {
		l.Bytes += f.Size
	}
	l.Files = len(l.files)
	if !config.Elsewhere(a.To) {
		for _, f := range l.files {
			if st, err := os.Stat(f.Local); err != nil || st.Size() != f.Size || !st.ModTime().Equal(f.ModTime) {
				l.lack = append(l.lack, f)
			}
		}
	} else if err := s.planThere(ctx, deps, &l); err != nil {
		return l, err
	}
	for _, f := range l.lack {
		l.LackBytes += f.Size
	}
	l.Lack = len(l.lack)
	l.Estimate = s.Estimate(sync.Pull, l.LackBytes)
	if l.Host != "" {
		l.Estimate.Took = nil // measured on the way to this machine, which is another
		l.Estimate.Rate = 0
	}
	if l.Internal && l.Estimate.Traffic != nil {
		l.Estimate.Traffic = &billing.Amount{Value: new(big.Rat), Currency: l.Estimate.Traffic.Currency}
	}
	return l, nil
}

func (s *Session) planThere(ctx context.Context, deps release.Deps, l *SaveLine) error {
	p, err := deps.Place(l.target.To)
	if err != nil {
		return err
	}
	defer p.Close()
	if b, is := p.(bucketPlace); is {
		if l.Host, l.Internal, err = b.c.Route(ctx, deps.Runner); err != nil {
			return err
		}
	}
	versions, err := p.Look(ctx, l.files)
	if err != nil {
		return err
	}
	for i, v := range versions { // a version begins with the size
		size, _, _ := strings.Cut(v, " ")
		if size != strconv.FormatInt(l.files[i].Size, 10) {
			l.lack = append(l.lack, l.files[i])
		}
	}
	return nil
}

// SavedFile is what became of one file.
type SavedFile struct {
	Artifact config.Artifact
	Path     string
	Size     int64
	Err      error
}

// SaveArtifacts carries out lines of PlanSave. A file's failure is told and counted;
// the error is for what ended the whole. A cut is survived: what is there stays.
func (s *Session) SaveArtifacts(ctx context.Context, lines []SaveLine, tell func(SavedFile)) (saved, failed int, err error) {
	deps := s.releaseDeps(ctx)
	for _, l := range lines {
		ok, bad, err := s.saveOne(ctx, deps, l, tell)
		saved, failed = saved+ok, failed+bad
		if err != nil {
			return saved, failed, fmt.Errorf("%s: save %s: %w", s.cfg().Name, l.Artifact.Path, err)
		}
	}
	return saved, failed, nil
}

func (s *Session) saveOne(ctx context.Context, deps release.Deps, l SaveLine, tell func(SavedFile)) (saved, failed int, err error) {
	var bytes int64
	settled := map[string]bool{}
	done := func(f release.Found, err error) {
		if settled[f.Path] {
			return // before a cut
		}
		if settled[f.Path] = true; err != nil {
			failed++
		} else {
			saved++
			bytes += f.Size
		}
		tell(SavedFile{l.Artifact, f.Path, f.Size, err})
	}
	err = s.again(ctx, func() error { return s.bring(ctx, deps, l, done) })
	if saved+failed > 0 {
		err = errors.Join(err, s.rememberSave(context.WithoutCancel(ctx), l.Artifact, saved, failed, bytes))
	}
	return saved, failed, err
}

// bring moves a line's files: to a bucket and another instance all of them, which are
// compared by content there; to a folder here what differs.
func (s *Session) bring(ctx context.Context, deps release.Deps, l SaveLine, done func(release.Found, error)) error {
	if config.Elsewhere(l.target.To) {
		p, err := deps.Place(l.target.To)
		if err != nil {
			return err
		}
		defer p.Close()
		return p.Save(ctx, deps.Runner, l.files, done)
	}
	if len(l.lack) == 0 {
		return nil
	}
	t, err := s.openTransport(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	defer hangUpWith(ctx, t)()
	return orCut(t, release.Fetch(ctx, t, l.lack, done))
}

func (s *Session) rememberSave(ctx context.Context, a config.Artifact, saved, failed int, bytes int64) error {
	_, err := s.f.ledger.Append(ctx, ledger.NewEvent(ledger.Transferred, s.uid, "rentop", map[string]any{
		"direction": "save", "local": a.To, "remote": a.Path, "files": saved, "failed": failed, "bytes": bytes,
	}))
	return err
}
