package agent

// Open and what it returns.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"rentop/remote"
	"rentop/remote/agent/hello"
	"rentop/remote/agent/link"
)

// Host is the instance: a *remote.Conn.
type Host interface {
	remote.Runner
	SFTP(ctx context.Context) (*sftp.Client, error)
	// Stream starts a script with open stdin and stdout.
	Stream(ctx context.Context, script string) (*remote.Stream, error)
	// Streams starts up to n, on channels that are free now, and leaves spare more free.
	Streams(ctx context.Context, n, spare int, script string) []*remote.Stream
}

// Options of Open. The zero value is this build's helpers and up to 8 stripes.
type Options struct {
	Binaries   *Binaries // nil: this build's, read anew
	MaxStripes int       // 0: 8
	// Installing is called before the helper is sent to an instance that lacks it;
	// nil where nobody wants to know.
	Installing func()
}

const (
	spareChannels = 2                // stay free for what a person does meanwhile
	greetTimeout  = 60 * time.Second // start-up files may be slow
	joinTimeout   = 20 * time.Second
)

// Session is a running helper with one service and the link to it.
type Session struct {
	host   Host
	stream *remote.Stream
	link   *link.Carrier
	hello  hello.Hello
	args   []string // before the helper's own

	life   context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	growing bool
	closed  bool

	wg   sync.WaitGroup // the growth that is under way
	once sync.Once
	err  error
}

// Open starts service on h. Where the helper is installed it costs a channel and
// one round trip. Otherwise it is installed first. facts may be nil. ctx covers the
// opening only; Close ends the session. The error is a *MissingError where the
// helper cannot be had there, a *hello.VersionError where it is of another time,
// and another where the connection failed.
func Open(ctx context.Context, h Host, facts *remote.Facts, service string, o Options) (*Session, error) {
	if o.Binaries == nil {
		o.Binaries = &Binaries{}
	}
	known, err := o.Binaries.all()
	if err != nil {
		return nil, &MissingError{Why: "rentop cannot read it here: " + err.Error(), Err: err}
	}
	if len(known) == 0 {
		return nil, &MissingError{Why: "this build of rentop carries none; a release build does"}
	}
	if facts != nil && facts.Arch != "" {
		if _, err := pick(known, absence{system: "Linux", machine: facts.Arch}); err != nil {
			return nil, err
		}
	}
	var args []string
	for _, b := range known {
		args = b.Args // the same for all of one build
	}
	afresh := false
	for try := 0; ; try++ {
		s, lack, err := start(ctx, h, startScript(known, service, afresh), args, o)
		var broken *brokenError
		if errors.As(err, &broken) {
			if err = broken.MissingError; try == 0 {
				afresh = true // the file was spoilt: it is removed and sent again
				continue
			}
		}
		if err != nil || lack == nil {
			return s, err
		}
		afresh = false
		if try == 3 {
			return nil, &MissingError{Why: "it was installed, and is gone again"}
		}
		b, err := pick(known, *lack)
		if err != nil {
			return nil, err
		}
		if o.Installing != nil {
			o.Installing()
		}
		if err := install(ctx, h, b, *lack); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
	}
}

// start runs the helper. lack says what the instance has to install it with where
// it is not there.
func start(ctx context.Context, h Host, script string, args []string, o Options) (_ *Session, lack *absence, err error) {
	st, err := h.Stream(ctx, script)
	if err != nil {
		return nil, nil, err
	}
	wrote := make(chan struct{})
	go func() { // ends with the stream; an error shows in what is read
		defer close(wrote)
		hello.New().Write(st)
	}()
	theirs, lack, err := greet(ctx, st)
	if err != nil || lack != nil {
		st.Close()
		return nil, lack, err
	}
	<-wrote // before anything of the link's
	s := &Session{host: h, stream: st, hello: theirs, args: args}
	s.life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	lo := link.Options{MaxStripes: o.MaxStripes, Hasty: true}
	if theirs.Join != "" && o.MaxStripes != 1 {
		lo.Grow = s.grow
	}
	s.link = link.New(st, lo)
	return s, nil, nil
}

// greet reads the helper's greeting.
func greet(ctx context.Context, st *remote.Stream) (hello.Hello, *absence, error) {
	type result struct {
		h    hello.Hello
		lack *absence
		err  error
	}
	said := make(chan result, 1)
	go func() { // ends with the stream
		h, lack, err := readGreeting(st)
		said <- result{h, lack, err}
	}()
	t := time.NewTimer(greetTimeout)
	defer t.Stop()
	select {
	case r := <-said:
		if r.err != nil {
			return hello.Hello{}, nil, ended(st, r.err)
		}
		if r.lack == nil {
			if _, err := r.h.Agree(); err != nil {
				return hello.Hello{}, nil, err
			}
			if r.h.Error != "" {
				return hello.Hello{}, nil, &MissingError{Why: remote.Short(r.h.Error, 300)}
			}
		}
		return r.h, r.lack, nil
	case <-t.C:
		return hello.Hello{}, nil, fmt.Errorf("rentop's helper was started and did not answer within %v", greetTimeout)
	case <-ctx.Done():
		return hello.Hello{}, nil, ctx.Err()
	}
}

func readGreeting(st io.Reader) (hello.Hello, *absence, error) {
	var magic [len(hello.Magic)]byte
	if _, err := io.ReadFull(st, magic[:]); err != nil {
		return hello.Hello{}, nil, err
	}
	switch string(magic[:]) {
	case hello.Absent:
		text, err := io.ReadAll(io.LimitReader(st, maxAbsence))
		if err != nil {
			return hello.Hello{}, nil, err
		}
		a := parseAbsence(string(text))
		return hello.Hello{}, &a, nil
	case hello.Magic:
		h, err := hello.ReadRest(st)
		return h, nil, err
	}
	return hello.Hello{}, nil, fmt.Errorf("the helper began with %q", magic[:])
}

// brokenError is a helper that is there and does not run.
type brokenError struct{ *MissingError }

func (e *brokenError) Unwrap() error { return e.MissingError }

// ended makes an error of a helper that ended where it should have spoken.
func ended(st *remote.Stream, err error) error {
	var silent *remote.NoMarkerError
	if errors.As(err, &silent) {
		return err
	}
	select {
	case <-st.Ended():
	case <-time.After(2 * time.Second):
		return fmt.Errorf("start rentop's helper: %w", err)
	}
	why := st.Wait()
	if code, known := remote.ExitCode(why); known && code != 0 {
		return &brokenError{&MissingError{Why: "it was started and ended at once: " + why.Error(), Err: why}}
	}
	if why != nil {
		return fmt.Errorf("start rentop's helper: %w", why)
	}
	return fmt.Errorf("start rentop's helper: %w", err)
}

// Link is the link to the service.
func (s *Session) Link() link.Link { return s.link }

// Hello is what the helper said of itself.
func (s *Session) Hello() hello.Hello { return s.hello }

// Stats says what the link measured.
func (s *Session) Stats() link.Stats { return s.link.Stats() }

// Explain adds to an error of the link, or to an end that should not have come yet,
// why the helper ended, where it has.
func (s *Session) Explain(err error) error {
	if !errors.Is(err, link.ErrCut) && err != io.EOF {
		return err
	}
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-s.stream.Ended():
	case <-t.C:
		return err
	}
	why := s.stream.Wait()
	var e *remote.ExitError
	switch {
	case errors.As(why, &e) && e.Signal == "KILL":
		return fmt.Errorf("%w: rentop's helper was killed on the instance; it may have run out of memory: %w", err, why)
	case why != nil:
		return fmt.Errorf("%w: rentop's helper ended: %w", err, why)
	}
	return err
}

// Close ends the service, the helper and all channels. It may be called more than
// once.
func (s *Session) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel()
		s.wg.Wait() // no stripe comes any more
		s.err = s.link.Close()
		s.stream.Close()
	})
	return s.err
}
