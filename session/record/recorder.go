package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"rentop/remote/gpu/sample"
	"rentop/session"
)

// Options say what is kept of the views.
type Options struct {
	Rentop string // version, for who reads the file
	Redact bool   // stand-ins for names, hosts, users, paths and commands
}

// About is what a recording says about itself.
type About struct {
	Rentop   string    `json:"rentop"`
	Began    time.Time `json:"began"`
	Redacted bool      `json:"redacted"`
}

// wholeEvery is how often a chunk is whole.
const wholeEvery = time.Minute

// Recorder writes a recording. Its methods are for one goroutine.
type Recorder struct {
	w      io.Writer
	file   *os.File // nil where w is not ours
	opt    Options
	words  encoder
	packed bytes.Buffer
	zstd   *zstd.Encoder
	begun  bool
	size   int64     // bytes written
	whole  time.Time // when the last whole chunk was written
	fleet  fields
	order  []string
	by     map[string]*written
}

// written is what the file holds of an instance.
type written struct {
	fields  fields
	samples sample.Encoder
	taken   time.Time // of the newest sample
	history session.History
	day     session.History
}

// Create begins a recording in a file that is not there yet.
func Create(path string, o Options) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("record to %s: the file is there, and it is not overwritten: choose another name", path)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r, err := New(f, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

// New begins a recording on a writer; each chunk is one Write.
func New(w io.Writer, o Options) (*Recorder, error) {
	r := &Recorder{w: w, opt: o}
	if o.Redact {
		r.words.stands = newStands()
	}
	var err error
	r.zstd, err = zstd.NewWriter(&r.packed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	return r, err
}

// Add writes a view. What was added is in the file when Add returns.
func (r *Recorder) Add(v *session.FleetView) error {
	whole := r.whole.IsZero() || v.At.Sub(r.whole).Abs() >= wholeEvery
	kind := byte(changeKind)
	if whole {
		r.whole, r.fleet, r.order, r.by, kind = v.At, nil, nil, map[string]*written{}, wholeKind
	}
	f, err := r.frame(v)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	plain, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if len(plain) > maxPlain {
		return fmt.Errorf("record: a view of %d bytes is more than a recording takes (%d): name the instances to record", len(plain), maxPlain)
	}
	r.packed.Reset()
	if whole {
		r.zstd.Reset(&r.packed)
	}
	if _, err := r.zstd.Write(plain); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := r.zstd.Flush(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	var out []byte
	if !r.begun {
		about, err := json.Marshal(About{r.opt.Rentop, v.At, r.opt.Redact})
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		out = appendChunk(append([]byte(magic), version), aboutKind, v.At, about, len(about))
		r.begun = true
	}
	n, err := r.w.Write(appendChunk(out, kind, v.At, r.packed.Bytes(), len(plain)))
	if r.size += int64(n); err != nil {
		return fmt.Errorf("record: %w; what was recorded before stays readable", err)
	}
	return nil
}

// frame is what differs from what was written.
func (r *Recorder) frame(v *session.FleetView) (frame, error) {
	var out frame
	r.words.learn(v)
	now, err := marshal(r.words.fleet(v))
	if err != nil {
		return out, err
	}
	out.Fleet, r.fleet = changed(r.fleet, now), now
	order := make([]string, len(v.Sessions))
	for i := range v.Sessions {
		order[i] = r.words.instance(v.Sessions[i].Name)
	}
	if !equal(order, r.order) {
		out.Order, r.order = order, order
	}
	there := map[string]*written{}
	for i := range v.Sessions {
		w := r.by[order[i]]
		if w == nil {
			w = &written{}
		}
		there[order[i]] = w
		d, err := r.delta(w, &v.Sessions[i])
		if err != nil {
			return out, err
		}
		if d.Name = order[i]; d.Fields != nil || d.Sample != nil || d.History != nil || d.Day != nil {
			out.Sessions = append(out.Sessions, d)
		}
	}
	r.by = there
	return out, nil
}

func (r *Recorder) delta(w *written, s *session.View) (delta, error) {
	var d delta
	now, err := marshal(r.words.view(s))
	if err != nil {
		return d, err
	}
	d.Fields, w.fields = changed(w.fields, now), now
	if s.Sample != nil && !s.Sample.TakenAt.Equal(w.taken) {
		d.Sample, w.taken = w.samples.Append(nil, r.words.sample(s.Sample)), s.Sample.TakenAt
	}
	history, day := evened(s.History), evened(s.Day)
	d.History, w.history = moved(&w.history, &history), history
	d.Day, w.day = moved(&w.day, &day), day
	return d, nil
}

func equal(a, b []string) bool {
	if len(a) != len(b) || b == nil {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Size is how many bytes were written.
func (r *Recorder) Size() int64 { return r.size }

// Discard ends a recording of which nothing is to stay.
func (r *Recorder) Discard() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
}

// Close ends the recording; on a disk that is full only its last second is missing.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("record: %w", err), r.file.Close())
	}
	return r.file.Close()
}
