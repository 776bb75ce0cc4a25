package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"sync/atomic"
	"time"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/sync"
	"rentop/sync/tree"
)

// Options say what a Fleet is made of.
type Options struct {
	Dirs          Dirs
	Live          bool                         // the screen: connect to everything and watch it
	Asker         remote.Asker                 // nil: questions wait in FleetView.Questions
	Secrets       remote.Secrets               // nil: the OS keyring
	AcceptHostKey string                       // "SHA256:…": the answer to an unknown host key
	Instances     []config.Instance            // the demo's, instead of the config
	Only          []string                     // of the config's instances; nil: all
	Providers     map[string]provider.Provider // by kind, beside the built-in ones
	Simulated     bool
	Aside         bool             // watches beside a screen, which keeps account of alarms
	Held          bool             // sessions begin with Fleet.Begin: a screen is drawn first
	Working       func(bool)       // nil, or told when transfers or releases begin and when the last has ended
	Now           func() time.Time // nil: time.Now

	helper      agent.Options   // of transfers; the tests' own
	guardHelper *agent.Binaries // nil: this build's
}

// Fleet is all sessions, and the ledger behind them.
type Fleet struct {
	opt     Options
	ctx     context.Context
	cancel  context.CancelFunc
	owned   stdsync.WaitGroup // every goroutine below
	ledger  *ledger.Ledger
	keys    *remote.HostKeys
	ask     questions
	view    atomic.Pointer[FleetView]
	dirty   chan struct{} // something changed: build a new view
	stirred atomic.Bool   // something changed that may wait for the next second
	changed chan struct{} // a new view is there
	begun   chan struct{} // closed: sessions may begin
	turn    chan struct{} // held by who reads or writes the config
	resolve chan struct{} // a place for each ssh -G that may run at once
	hosts   remote.ResolveCache
	rentals rentals
	funds   atomic.Pointer[[]Balance] // what accounts have left, as last told
	raised  chan raised               // alarms for the person's own line
	limit   *sync.Limit               // of all transfers together, as configured
	hashes  *tree.Hashes

	mu        stdsync.Mutex // protects what follows; never held over I/O
	cfg       *config.File
	cfgErr    string
	sessions  map[string]*Session
	notices   []Notice
	exchange  billing.Exchange
	stale     bool // a session was busy at the last reload and still runs as it was
	working   int  // transfers and releases under way
	beginOnce stdsync.Once
	closeOnce stdsync.Once
}

// Open reads the config and the ledger and makes a session for each instance.
// A config with a fault is an error for a command; the screen shows it.
func Open(ctx context.Context, o Options) (*Fleet, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Secrets == nil {
		o.Secrets = remote.Keyring()
	}
	if err := os.MkdirAll(o.Dirs.State, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w; set RENTOP_STATE_DIR to a place that can be written", err)
	}
	led, err := ledger.Open(filepath.Join(o.Dirs.State, "ledger.db"), o.Now)
	if err != nil {
		return nil, err
	}
	keys, err := remote.OpenHostKeys(filepath.Join(o.Dirs.State, "known_hosts"), personKnownHosts())
	if err != nil {
		led.Close()
		return nil, err
	}
	f := &Fleet{
		opt: o, ledger: led, keys: keys, sessions: map[string]*Session{},
		dirty: make(chan struct{}, 1), changed: make(chan struct{}, 1), begun: make(chan struct{}), turn: make(chan struct{}, 1), resolve: make(chan struct{}, 2), limit: sync.NewLimit(nil),
		raised: make(chan raised, lineQueue),
		hashes: tree.NewHashes(filepath.Join(o.Dirs.State, "hashes"), o.Now),
		cfg:    &config.File{Instance: map[string]config.Instance{}},
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.rentals.init(o)
	f.ask.notify = f.touch
	if !o.Held {
		f.Begin()
	}
	if err := f.reload(); err != nil {
		if !o.Live {
			f.Close()
			return nil, err
		}
		f.cfgErr = err.Error()
	}
	f.publish()
	f.owned.Go(f.build)
	if o.Live {
		f.owned.Go(f.watchBalances)
		f.owned.Go(f.runLines)
	}
	if o.Live && o.Instances == nil {
		f.owned.Go(f.followConfig)
	}
	return f, nil
}

// Begin lets the sessions of a Fleet that is Held read, connect and watch.
func (f *Fleet) Begin() { f.beginOnce.Do(func() { close(f.begun) }) }

// personKnownHosts are the person's own files, read and never written.
func personKnownHosts() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}
}

// ConfigFile is where the instances are written down.
func (f *Fleet) ConfigFile() string { return filepath.Join(f.opt.Dirs.Config, "config.toml") }

// Config is the file as it was last read.
func (f *Fleet) Config() *config.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg
}

// inTurn runs what reads or writes the config: one after the other, or an edit's new
// name would be taken for a new instance before the ledger has it renamed.
func (f *Fleet) inTurn(do func() error) error {
	select {
	case f.turn <- struct{}{}:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	defer func() { <-f.turn }()
	return do()
}

// reload reads the config and brings the sessions in line with it.
func (f *Fleet) reload() error { return f.inTurn(f.follow) }

// follow is reload for who has the turn.
func (f *Fleet) follow() error {
	var file *config.File
	if f.opt.Instances != nil {
		file = &config.File{Instance: map[string]config.Instance{}}
		for _, in := range f.opt.Instances {
			file.Instance[in.Name] = in
		}
	} else {
		var err error
		if file, err = config.Load(f.ConfigFile()); err != nil {
			return err
		}
		maps.DeleteFunc(file.Instance, func(name string, _ config.Instance) bool {
			return f.opt.Only != nil && !slices.Contains(f.opt.Only, name)
		})
	}
	ex, err := f.exchangeRates(file)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(file.Instance))
	uids, err := f.ledger.Ensure(f.ctx, names...)
	if err != nil {
		return err
	}
	if err := f.recordPlans(names, uids, file.Instance); err != nil {
		return err
	}
	if err := f.recordDescriptions(names, uids, file.Instance); err != nil {
		return err
	}
	f.mu.Lock()
	var ended []*Session
	edited := map[*Session]config.Instance{}
	f.stale = false
	for name, s := range f.sessions {
		in, still := file.Instance[name]
		same := still && uids[name] == s.uid
		switch {
		case same && sameConfig(in, s.cfg()):
		case s.busy(): // a release or a transfer is not cut off by an edit
			f.stale = true
		case same && sameMachine(in, s.cfg()):
			edited[s] = in
		default:
			ended = append(ended, s)
			delete(f.sessions, name)
		}
	}
	var begun []*Session
	for name, in := range file.Instance {
		if f.sessions[name] == nil {
			s := newSession(f, in, uids[name])
			f.sessions[name] = s
			begun = append(begun, s)
		}
	}
	f.cfg, f.cfgErr, f.exchange = file, "", ex
	f.limit.Set(file.Transfer.Rate())
	f.mu.Unlock()
	for _, s := range ended {
		s.cancel()
	}
	for s, in := range edited {
		s.change(in)
	}
	for _, s := range begun {
		f.owned.Go(s.loop)
	}
	f.touch()
	return nil
}

// followConfig reloads the config when somebody wrote it: an editor, a command in
// another terminal. A fault is shown, and the instances stay as they were.
func (f *Fleet) followConfig() {
	stamp := func() (time.Time, int64) {
		st, err := os.Stat(f.ConfigFile())
		if err != nil {
			return time.Time{}, 0
		}
		return st.ModTime(), st.Size()
	}
	at, size := stamp()
	every(f.ctx, 2*time.Second, func() {
		nowAt, nowSize := stamp()
		f.mu.Lock()
		stale := f.stale
		f.mu.Unlock()
		if nowAt.Equal(at) && nowSize == size && !stale {
			return
		}
		at, size = nowAt, nowSize
		err := f.reload()
		if err == nil || f.ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		f.cfgErr = err.Error()
		f.mu.Unlock()
		f.touch()
	})
}

// Close ends every session and waits for all that it started.
func (f *Fleet) Close() error {
	var err error
	f.closeOnce.Do(func() {
		f.cancel()
		f.owned.Wait()
		err = f.ledger.Close()
	})
	return err
}

// View is the newest picture. It never blocks.
func (f *Fleet) View() *FleetView { return f.view.Load() }

// Changed receives after View changed; several changes may be one. It has one reader.
func (f *Fleet) Changed() <-chan struct{} { return f.changed }

// Answer replies to a Question of the view.
func (f *Fleet) Answer(id int, a remote.Answer) { f.ask.answer(id, a) }

// touch asks for a new view, soon.
func (f *Fleet) touch() {
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

// touchQuietly asks for a new view within the second.
func (f *Fleet) touchQuietly() { f.stirred.Store(true) }

// build makes new views: one a second while only samples and meters move, so that
// an idle screen costs nothing, and at most ten a second however much happens.
func (f *Fleet) build() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-f.dirty:
		case <-second.C:
			if !f.stirred.Load() {
				continue
			}
		case <-f.ctx.Done():
			return
		}
		f.stirred.Store(false)
		f.publish()
		select {
		case f.changed <- struct{}{}:
		default:
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-f.ctx.Done():
			return
		}
	}
}

// ErrUnknownInstance is wrapped where a name is not in the config.
var ErrUnknownInstance = errors.New("no instance of that name")

// Session finds a session by its instance's name.
func (f *Fleet) Session(name string) (*Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sessions[name]; s != nil {
		return s, nil
	}
	names := slices.Sorted(maps.Keys(f.sessions))
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: %q; there are none yet: rentop add 'ssh -p PORT user@host' --name NAME", ErrUnknownInstance, remote.Clean(name))
	}
	return nil, fmt.Errorf("%w: %q; there are: %s", ErrUnknownInstance, remote.Clean(name), strings.Join(names, ", "))
}

// Names lists the instances.
func (f *Fleet) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.sessions))
}

// work says that something heavy begins; the returned function, that it has ended.
func (f *Fleet) work() (end func()) {
	count := func(d int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		was := f.working > 0
		f.working += d
		if is := f.working > 0; is != was && f.opt.Working != nil {
			f.opt.Working(is)
		}
	}
	count(1)
	return func() { count(-1) }
}

// notice tells the person something in passing.
func (f *Fleet) notice(instance string, l Level, text phrase.Text) {
	f.mu.Lock()
	f.notices = append(f.notices, Notice{At: f.opt.Now(), Instance: instance, Level: l, Text: text})
	if n := len(f.notices); n > 100 {
		f.notices = slices.Clone(f.notices[n-100:])
	}
	f.mu.Unlock()
	f.touch()
}
