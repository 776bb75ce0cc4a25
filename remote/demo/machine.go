//go:build unix

package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/provider"
)

//go:embed box/nvidia-smi
var smiScript string

//go:embed box/smi.awk
var smiProgram string

//go:embed box/train
var trainScript string

// machine is one simulated instance: a folder, a port, and what runs there.
type machine struct {
	spec
	fleet   *Fleet
	number  int
	id      string
	root    string // of all that it has
	home    string
	box     string // what simulates its hardware; also the mark of its processes
	sockets string // tmux's
	user    string
	shell   string
	hostKey ssh.Signer

	power sync.Mutex // one start, stop, snapshot or destroy at a time

	mu      sync.Mutex // protects what follows
	state   provider.State
	started time.Time
	port    int
	roots   map[int]bool // processes that we started and did not yet see end
	conns   map[net.Conn]bool
	ln      net.Listener
	off     context.CancelFunc // ends what serves
	serving sync.WaitGroup     // what serves; Add under mu, and only while it runs
}

func newMachine(f *Fleet, n int, s spec) *machine {
	root := filepath.Join(f.dir, "m", s.name)
	return &machine{
		spec: s, fleet: f, number: n, id: fmt.Sprintf("demo-%d", n+1), root: root,
		home: filepath.Join(root, "home"), box: filepath.Join(root, "box"),
		sockets: filepath.Join(f.dir, "t", strconv.Itoa(n)), // short: a socket's path may have 104 bytes
		user:    "root", shell: shellPath(),
		state: provider.Stopped, roots: map[int]bool{}, conns: map[net.Conn]bool{},
	}
}

func shellPath() string {
	for _, name := range []string{"bash", "sh"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return "/bin/sh"
}

// build makes the files and, for one that runs, plugs it in.
func (m *machine) build() error {
	for _, d := range []string{m.home, filepath.Join(m.box, "gpu.d"), filepath.Join(m.box, "dev"), filepath.Join(m.root, "bin"), filepath.Join(m.root, "run"), m.sockets} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for path, text := range map[string]string{
		"bin/nvidia-smi": smiScript, "bin/train": trainScript, "bin/demo-poweroff": poweroffScript, "box/smi.awk": smiProgram,
		"box/gpus": m.table(m.number), "box/dev/nvidia0": "",
	} {
		if err := os.WriteFile(filepath.Join(m.root, path), []byte(text), 0o755); err != nil {
			return err
		}
	}
	now := m.fleet.now()
	home := &folder{ctx: m.fleet.ctx, home: m.home, env: m.env(), now: now}
	home.rc(m.name, filepath.Join(m.root, "bin"))
	m.seed(home)
	if home.err != nil {
		return fmt.Errorf("%s: %w", m.name, home.err)
	}
	var err error
	if m.hostKey, _, err = newKey(); err != nil {
		return err
	}
	if err := m.plugIn(now.Add(-m.age)); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	if m.stopped { // plugged in once, so that it has its port; nothing runs there yet
		m.unplug(provider.Stopped)
		m.serving.Wait()
	}
	return nil
}

// unplug closes the port and every connection.
func (m *machine) unplug(become provider.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.started = become, time.Time{}
	if m.ln != nil {
		m.ln.Close()
		m.off()
		m.ln = nil
	}
	for c := range m.conns {
		c.Close()
	}
}

// env is a login's environment: nothing of the person's own session is in it.
func (m *machine) env() []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	lang := os.Getenv("LANG")
	if !strings.Contains(strings.ToUpper(lang), "UTF") {
		lang = "C.UTF-8"
	}
	return []string{
		"HOME=" + m.home, "USER=" + m.user, "LOGNAME=" + m.user, "SHELL=" + m.shell, "LANG=" + lang,
		"PATH=" + filepath.Join(m.root, "bin") + ":" + path,
		"TMUX_TMPDIR=" + m.sockets, "XDG_RUNTIME_DIR=" + filepath.Join(m.root, "run"),
		markName + "=" + m.box, "RENTOP_DEMO_PID=" + strconv.Itoa(os.Getpid()),
	}
}

// plugIn begins to serve. Its port stays what it was.
func (m *machine) plugIn(started time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fleet.ctx.Err() != nil {
		return m.fleet.ctx.Err()
	}
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)))
	if err != nil {
		return fmt.Errorf("its port cannot be opened: %w", err)
	}
	ctx, off := context.WithCancel(m.fleet.ctx)
	m.ln, m.off, m.port = ln, off, ln.Addr().(*net.TCPAddr).Port
	m.state, m.started = provider.Running, started
	m.serving.Go(func() { m.accept(ctx, ln) })
	return nil
}

// plugOut ends all at once, as a provider does: listener, connections, processes.
func (m *machine) plugOut(ctx context.Context, become provider.State) error {
	m.unplug(provider.Changing)
	err := endAll(ctx, m.box, m.live())
	if err == nil {
		m.serving.Wait() // nothing holds it up: its connections and processes are gone
		err = m.tidy()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err) // still Changing: asked again, it goes on
	}
	m.state = become
	return nil
}

// tidy removes what a power cut leaves behind: sockets, and who held a GPU.
func (m *machine) tidy() error {
	for _, d := range []string{m.sockets, filepath.Join(m.box, "gpu.d"), filepath.Join(m.root, "run")} {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) shutDown() error {
	m.power.Lock()
	defer m.power.Unlock()
	if _, err := os.Stat(m.box); errors.Is(err, os.ErrNotExist) {
		return nil // never built, or destroyed
	}
	return m.plugOut(context.Background(), provider.Stopped)
}

// live are the processes that we started and that have not ended.
func (m *machine) live() map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := make(map[int]bool, len(m.roots))
	for pid := range m.roots {
		live[pid] = true
	}
	return live
}

func (m *machine) instance() Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := Instance{
		Name: m.name, ID: m.id, Host: "127.0.0.1", Port: m.port, User: m.user, KeyFile: m.fleet.keyFile, GPU: m.gpu,
		State: m.state, StartedAt: m.started, RatePerHour: m.rate, Currency: m.currency, WhileStopped: m.whileStopped,
		DiskGB: m.diskGB, PerGBMonth: m.perGBMonth,
		Artifacts: append([]string(nil), m.artifacts...), Jobs: append([]Job(nil), m.jobs...),
	}
	if m.hostKey != nil {
		in.HostKey = ssh.FingerprintSHA256(m.hostKey.PublicKey())
	}
	return in
}
