package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	stdsync "sync"
)

// This file is a large file being pulled: its part and journal on this machine.

type partFile struct {
	out   *sink
	e     Entry
	name  string
	f     *os.File
	j     *os.File
	start int64 // known to be there from an earlier run
	done  acked

	mu        stdsync.Mutex // protects journaled
	journaled int64
}

// part opens e's part, with whatever an earlier run left in it.
func (s *sink) part(e Entry) (*partFile, error) {
	p := &partFile{out: s, e: e, name: filepath.FromSlash(partName(e))}
	for _, n := range []string{p.name, p.name + journalSuffix} {
		// os.Root lets no symlink out; one inside would still hit the wrong file
		if fi, err := s.root.Lstat(n); err == nil && !fi.Mode().IsRegular() {
			if err := s.root.Remove(n); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if p.f, err = s.root.OpenFile(p.name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if p.j, err = s.root.OpenFile(p.name+journalSuffix, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		p.f.Close()
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(p.j, 64))
	at := parseJournal(string(text), e.Size)
	fi, ferr := p.f.Stat()
	if err = errors.Join(err, ferr); err != nil {
		p.close()
		return nil, err
	}
	if fi.Size() < at {
		at = 0
	}
	p.start, p.done.at, p.journaled = at, at, at
	return p, nil
}

func (p *partFile) close() { p.f.Close(); p.j.Close() }

// writeAt takes a piece; what it completes goes to the journal now and then.
func (p *partFile) writeAt(b []byte, off int64) error {
	if _, err := p.f.WriteAt(b, off); err != nil {
		return err
	}
	end, moved := p.done.add(off, off+int64(len(b)))
	if !moved {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end-p.journaled < journalEvery {
		return nil
	}
	p.journaled = end
	_, err := p.j.WriteAt([]byte(journalText(end)), 0)
	return err
}

// finish puts the file on disk and reads it for its sum; confirm says whether
// the instance agrees. After it the part is gone or has its final name.
func (p *partFile) finish(ctx context.Context, confirm func(sum string) error) (Entry, error) {
	defer p.close()
	e := p.e
	err := p.f.Truncate(e.Size)
	if err == nil {
		err = p.f.Sync()
	}
	h := sha256.New()
	if err == nil {
		err = copyMetered(ctx, h, io.NewSectionReader(p.f, 0, e.Size), nil)
	}
	if err != nil {
		p.failed(err, nil)
		return e, plainError(err)
	}
	e.SHA256 = hex.EncodeToString(h.Sum(nil))
	if err := confirm(e.SHA256); err != nil {
		if errors.Is(err, ErrDiffers) || errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrNotExist) {
			p.drop()
		}
		return e, err
	}
	p.close() // Windows renames no open file
	if err := p.out.commit(waiting{e: e, tmp: p.name, safe: true}); err != nil {
		return e, err
	}
	p.out.root.Remove(p.name + journalSuffix)
	return e, nil
}

// failed keeps the part for the next run, unless the source is another by now, or
// the disk is full: there a part stands in everybody's way.
func (p *partFile) failed(err error, m Meter) {
	if errors.Is(err, ErrChanged) || errors.Is(plainError(err), ErrFull) {
		p.drop()
		return
	}
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(m, p.journaled)
}

// drop removes the part: it is of no use to a later run.
func (p *partFile) drop() {
	p.close()
	p.out.root.Remove(p.name)
	p.out.root.Remove(p.name + journalSuffix)
}
