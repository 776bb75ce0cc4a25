//go:build unix

package demo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"rentop/remote/provider"
)

// Fleet is the running demo.
type Fleet struct {
	dir      string
	now      func() time.Time
	lock     *os.File // held while we live: what it means is in stale.go
	keyFile  string
	login    ssh.PublicKey
	ctx      context.Context
	cancel   context.CancelFunc
	machines []*machine

	jobsRun chan struct{} // closed when the jobs were started; jobsErr is set before
	jobsErr error

	switches sync.WaitGroup // who watches for instances that stop themselves

	closing  sync.Once
	closeErr error

	mu    sync.Mutex // protects snaps and the state file
	snaps []snapshot
}

const prefix = "rentop-demo-"

// Start makes the instances and serves them until ctx ends or Close is called.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	f, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("starting the demo: %w", err)
	}
	return f, nil
}

func start(ctx context.Context, o Options) (*Fleet, error) {
	dir, err := ownFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	f := &Fleet{dir: dir, now: o.Clock, keyFile: filepath.Join(dir, "login_key"), jobsRun: make(chan struct{})}
	if f.now == nil {
		f.now = time.Now
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	if err := f.build(); err != nil {
		close(f.jobsRun)
		return nil, errors.Join(err, f.Close())
	}
	f.switches.Go(f.watchSwitches)
	if o.Jobs {
		go f.startJobs() // Close waits for it
	} else {
		close(f.jobsRun)
	}
	context.AfterFunc(ctx, func() { f.Close() })
	return f, nil
}

// ownFolder returns a folder that holds nothing of anybody's, with its links
// resolved (a process knows its folder by that name).
func ownFolder(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", prefix)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(made)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty, and the demo removes its folder at the end: name a new one", dir)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func (f *Fleet) build() error {
	var err error
	if f.lock, err = hold(f.dir); err != nil {
		return err
	}
	if f.login, err = f.writeLoginKey(); err != nil {
		return err
	}
	var g errgroup.Group
	for n, s := range specs() {
		m := newMachine(f, n, s)
		f.machines = append(f.machines, m)
		g.Go(m.build)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return f.save()
}

func newKey() (ssh.Signer, ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	return signer, key, err
}

// writeLoginKey makes the key that opens all instances. It is worth nothing after
// the demo.
func (f *Fleet) writeLoginKey() (ssh.PublicKey, error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "rentop demo")
	if err != nil {
		return nil, err
	}
	pub := signer.PublicKey()
	if err := os.WriteFile(f.keyFile+".pub", ssh.MarshalAuthorizedKey(pub), 0o644); err != nil {
		return nil, err
	}
	return pub, os.WriteFile(f.keyFile, pem.EncodeToMemory(block), 0o600)
}

// Instances lists the machines that were not destroyed, as they are now.
func (f *Fleet) Instances() []Instance {
	var list []Instance
	for _, m := range f.machines {
		if in := m.instance(); in.State != provider.Gone {
			list = append(list, in)
		}
	}
	return list
}

// Dir is the demo's folder.
func (f *Fleet) Dir() string { return f.dir }

// Provider is who rents the instances out.
func (f *Fleet) Provider() provider.Provider { return rental{f} }

// Close ends all that runs on the instances and removes the demo's folder.
func (f *Fleet) Close() error {
	f.closing.Do(func() { f.closeErr = f.close() })
	return f.closeErr
}

func (f *Fleet) close() error {
	f.cancel()
	<-f.jobsRun
	f.switches.Wait()
	var g errgroup.Group
	for _, m := range f.machines {
		g.Go(m.shutDown)
	}
	errs := []error{g.Wait(), endAll(context.Background(), f.dir+"/", nil)}
	errs = append(errs, removeAll(f.dir))
	if f.lock != nil {
		f.lock.Close()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the demo in %s: %w", f.dir, err)
	}
	return nil
}

// removeAll removes the demo's folder, also folders in it that lost their
// permissions.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, os.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}

// record is one instance in the state file.
type record struct {
	Name      string         `json:"name"`
	ID        string         `json:"id"`
	Port      int            `json:"port"`
	State     provider.State `json:"state"`
	StartedAt time.Time      `json:"started_at"`
}

// save writes state.json: what a person who looks into the folder finds, and what
// the provider believes.
func (f *Fleet) save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := struct {
		PID       int        `json:"pid"`
		Instances []record   `json:"instances"`
		Snapshots []snapshot `json:"snapshots"`
	}{PID: os.Getpid(), Snapshots: f.snaps}
	for _, m := range f.machines {
		in := m.instance()
		state.Instances = append(state.Instances, record{in.Name, in.ID, in.Port, in.State, in.StartedAt})
	}
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(f.dir, "state.json.tmp")
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(f.dir, "state.json"))
}

func pidText() string { return strconv.Itoa(os.Getpid()) + "\n" }
