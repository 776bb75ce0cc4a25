package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/klauspost/compress/zstd"

	"rentop/remote"
	"rentop/remote/gpu/sample"
	"rentop/session"
)

// The bounds of what a recording may make of itself in memory.
const (
	maxInstances = 500
	maxState     = 64 << 20 // bytes of all fields
)

// Recording is a file that is played. Its methods are for one goroutine.
type Recording struct {
	about About
	views []chunk
	cut   int64
	r     io.ReaderAt
	file  *os.File
	zstd  *zstd.Decoder
	feed  feeder
	at    int // the view that state holds; -1: none
	fleet fields
	order []string
	by    map[string]*read
	size  int // of all fields
	shown *session.FleetView
}

// read is what was decoded of an instance.
type read struct {
	fields  fields
	samples sample.Decoder
	sample  *sample.Sample
	history session.History
	day     session.History
	view    session.View
}

// Open reads a recording's index.
func Open(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	var r *Recording
	if err == nil {
		r, err = Read(f, st.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replay %s: %w", remote.Clean(path), err), f.Close())
	}
	r.file = f
	return r, nil
}

// Read is Open for anything of a size.
func Read(from io.ReaderAt, size int64) (*Recording, error) {
	about, views, cut, err := index(from, size)
	if err != nil {
		return nil, err
	}
	r := &Recording{views: views, cut: cut, r: from, at: -1}
	if about.kind == aboutKind {
		b, err := about.read(from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, &r.about); err != nil {
			return nil, fmt.Errorf("what it says about itself is %w: %v", errDamaged, err)
		}
		r.about.Rentop = remote.Short(r.about.Rentop, 40)
	}
	r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<20), zstd.WithDecoderMaxMemory(maxPlain))
	return r, err
}

// Close ends the reading.
func (r *Recording) Close() error {
	r.zstd.Close()
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// About is what it says about itself.
func (r *Recording) About() About { return r.about }

// Len is how many views there are: at least one.
func (r *Recording) Len() int { return len(r.views) }

// Time is when a view was shown.
func (r *Recording) Time(i int) time.Time { return r.views[i].at }

// Cut is how many bytes behind the last whole chunk cannot be read: what a crash
// left there, or damage.
func (r *Recording) Cut() int64 { return r.cut }

// Find is the last view at or before a time; the first where there is none.
func (r *Recording) Find(t time.Time) int {
	n := sort.Search(len(r.views), func(i int) bool { return r.views[i].at.After(t) })
	return max(n-1, 0)
}

// At gives a view. The next one is cheap, another costs at most a minute's worth of
// decoding. After an error another view can be asked for.
func (r *Recording) At(i int) (*session.FleetView, error) {
	if i == r.at {
		return r.shown, nil
	}
	from := i
	for r.views[from].kind != wholeKind && from > 0 {
		from--
	}
	if r.at >= from && r.at < i {
		from = r.at + 1
	}
	for j := from; j <= i; j++ {
		if err := r.step(j); err != nil {
			r.at = -1
			return nil, fmt.Errorf("the view of %s: %w", r.views[j].at.Local().Format("15:04:05"), err)
		}
		r.at = j
	}
	v, err := r.view(r.views[i].at)
	if err != nil {
		r.at = -1
		return nil, fmt.Errorf("the view of %s: %w", r.views[i].at.Local().Format("15:04:05"), err)
	}
	r.shown = v
	return v, nil
}

// feeder hands the decoder the chunks of one zstd frame, one after the other.
type feeder struct{ left []byte }

func (f *feeder) Read(p []byte) (int, error) {
	if len(f.left) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// step takes the next chunk into the state.
func (r *Recording) step(i int) error {
	c := r.views[i]
	packed, err := c.read(r.r)
	if err != nil {
		return err
	}
	r.feed.left = packed
	if c.kind == wholeKind {
		r.fleet, r.order, r.by, r.size = fields{}, nil, map[string]*read{}, 0
		if err := r.zstd.Reset(&r.feed); err != nil {
			return err
		}
	}
	plain := make([]byte, c.plain)
	if _, err := io.ReadFull(r.zstd, plain); err != nil {
		return fmt.Errorf("it is %w: %v", errDamaged, err)
	}
	var f frame
	if err := json.Unmarshal(plain, &f); err != nil {
		return fmt.Errorf("it is %w: %v", errDamaged, err)
	}
	return r.take(f)
}

func (r *Recording) take(f frame) error {
	grown, err := r.fleet.merge(f.Fleet)
	if err != nil {
		return err
	}
	r.size += grown
	if f.Order != nil {
		if len(f.Order) > maxInstances {
			return fmt.Errorf("more than %d instances: it is %w", maxInstances, errDamaged)
		}
		r.order = f.Order
		there := map[string]*read{}
		for _, name := range f.Order {
			if there[name] = r.by[name]; there[name] == nil {
				there[name] = &read{fields: fields{}}
			}
		}
		r.by = there
	}
	for _, d := range f.Sessions {
		s := r.by[d.Name]
		if s == nil {
			return fmt.Errorf("an instance that was not announced: it is %w", errDamaged)
		}
		if grown, err = s.fields.merge(d.Fields); err != nil {
			return err
		}
		if r.size += grown; r.size > maxState {
			return fmt.Errorf("more than %d bytes at once: it is %w", maxState, errDamaged)
		}
		if d.Sample != nil {
			got, err := s.samples.Decode(d.Sample)
			if err != nil {
				return err
			}
			s.sample = &got
		}
		if d.History != nil {
			if s.history, err = d.History.apply(s.history); err != nil {
				return err
			}
		}
		if d.Day != nil {
			if s.day, err = d.Day.apply(s.day); err != nil {
				return err
			}
		}
		s.view.Name = "" // made anew
	}
	return nil
}

// view is the state as session shows it.
func (r *Recording) view(at time.Time) (*session.FleetView, error) {
	var w fleetWire
	if err := r.fleet.into(&w); err != nil {
		return nil, fmt.Errorf("it is %w: %v", errDamaged, err)
	}
	v := w.view()
	v.At = at
	for _, name := range r.order {
		s := r.by[name]
		if s.view.Name == "" {
			var w viewWire
			if err := s.fields.into(&w); err != nil {
				return nil, fmt.Errorf("it is %w: %v", errDamaged, err)
			}
			s.view = w.view(name)
			s.view.Sample, s.view.History, s.view.Day = s.sample, s.history, s.day
		}
		v.Sessions = append(v.Sessions, s.view)
	}
	v.Notices = slices.Clip(v.Notices)
	return &v, nil
}
