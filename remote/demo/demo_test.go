//go:build unix

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/needtest"
	"rentop/remote/provider"
	"rentop/remote/provider/providertest"
	"rentop/remote/tmux"
)

// begin starts a demo that ends with the test, and fails where it leaves anything.
func begin(t *testing.T) *Fleet {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	f, err := Start(t.Context(), Options{Dir: dir, Jobs: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left := running(f.Dir()+"/", nil); len(left) > 0 {
			t.Errorf("still running after Close: %v", left)
		}
		if _, err := os.Stat(f.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", f.Dir(), err)
		}
	})
	return f
}

func named(t *testing.T, f *Fleet, name string) Instance {
	t.Helper()
	for _, in := range f.Instances() {
		if in.Name == name {
			return in
		}
	}
	t.Fatalf("there is no %s among %+v", name, f.Instances())
	return Instance{}
}

func dial(in Instance) (*ssh.Client, error) {
	raw, err := os.ReadFile(in.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(raw)
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", net.JoinHostPort(in.Host, fmt.Sprint(in.Port)), &ssh.ClientConfig{
		User: in.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: 5 * time.Second,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if got := ssh.FingerprintSHA256(key); got != in.HostKey {
				return fmt.Errorf("host key %s, want %s", got, in.HostKey)
			}
			return nil
		},
	})
}

func connect(t *testing.T, in Instance) *ssh.Client {
	t.Helper()
	c, err := dial(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func run(t *testing.T, c *ssh.Client, line string) (string, error) {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.CombinedOutput(line)
	return string(out), err
}

// runner is a remote.Runner over a plain client.
type runner struct{ c *ssh.Client }

func (r runner) Run(ctx context.Context, cmd remote.Cmd) error {
	s, err := r.c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	s.Stdout, s.Stderr = cmd.Stdout, cmd.Stderr
	if cmd.Stdin != nil {
		in, err := s.StdinPipe()
		if err != nil {
			return err
		}
		go func() { io.Copy(in, cmd.Stdin); in.Close() }()
	}
	err = s.Run("exec sh -c " + remote.Quote(cmd.Script))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *ssh.ExitError
	if errors.As(err, &e) {
		return &remote.ExitError{Code: e.ExitStatus(), Signal: e.Signal()}
	}
	return err
}

func TestStartIsQuick(t *testing.T) {
	began := time.Now()
	f := begin(t)
	took := time.Since(began)
	t.Logf("started in %v", took)
	if took > 2*time.Second { // 300 ms on a quiet machine; the bench says so
		t.Errorf("it took %v to start", took)
	}
	if n := len(f.Instances()); n != 5 {
		t.Errorf("%d instances", n)
	}
	for _, in := range f.Instances() {
		if in.Port == 0 || in.HostKey == "" || in.RatePerHour == "" || in.Currency == "" {
			t.Errorf("%+v is not complete", in)
		}
		if running := in.State == provider.Running; running != (in.Name != "h20-infer") || running && !in.StartedAt.Before(began.Add(-10*time.Minute)) {
			t.Errorf("%s is %s since %v", in.Name, in.State, in.StartedAt)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		f, err := Start(b.Context(), Options{Dir: filepath.Join(b.TempDir(), "demo")})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		f.Close()
		b.StartTimer()
	}
}

func TestExec(t *testing.T) {
	in := named(t, begin(t), "a100-tune")
	c := connect(t, in)
	for _, x := range []struct {
		line, out string
		code      int
		signal    string
	}{
		{"echo hello; pwd | sed 's,.*/m/,,'", "hello\na100-tune/home\n", 0, ""},
		{"exit 7", "", 7, ""},
		{"kill -TERM $$", "", 143, "TERM"},
		{"cat no-such-file 2>&1 | wc -l | tr -d ' '", "1\n", 0, ""},
		{"echo ~ | sed 's,.*/m/,,'; cd project && ls", "a100-tune/home\nREADME.md\nconfig.yaml\ndata\nrequirements.txt\n", 0, ""},
	} {
		out, err := run(t, c, x.line)
		var e *ssh.ExitError
		switch {
		case x.code == 0 && err != nil, x.code != 0 && !errors.As(err, &e):
			t.Errorf("%s: %v", x.line, err)
		case x.code != 0 && (e.ExitStatus() != x.code || e.Signal() != x.signal):
			t.Errorf("%s: ended with %v", x.line, e)
		}
		if out != x.out {
			t.Errorf("%s: %q, want %q", x.line, out, x.out)
		}
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Stdin = strings.NewReader(strings.Repeat("0123456789", 100_000))
	if out, err := s.Output("wc -c | tr -d ' '"); err != nil || string(out) != "1000000\n" {
		t.Errorf("stdin: %q, %v", out, err)
	}
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); err != nil || ok {
		t.Errorf("keepalive: %v, %v; OpenSSH answers no", ok, err)
	}
	// The person's own session does not leak in.
	if out, _ := run(t, c, "env"); strings.Contains(out, "SSH_AUTH_SOCK") || strings.Contains(out, "GOFLAGS") {
		t.Errorf("environment:\n%s", out)
	}
}

func TestRefusesOtherKeys(t *testing.T) {
	in := named(t, begin(t), "a100-tune")
	signer, _, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, auth := range []ssh.AuthMethod{ssh.PublicKeys(signer), ssh.Password("root")} {
		c, err := ssh.Dial("tcp", net.JoinHostPort(in.Host, fmt.Sprint(in.Port)), &ssh.ClientConfig{
			User: "root", Auth: []ssh.AuthMethod{auth}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 5 * time.Second})
		if err == nil {
			c.Close()
			t.Error("a login without the demo's key succeeded")
		}
	}
}

func TestTerminal(t *testing.T) {
	c := connect(t, named(t, begin(t), "cn-box"))
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RequestPty("xterm-256color", 30, 100, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	in, _ := s.StdinPipe()
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	if err := s.WindowChange(41, 123); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(in, "stty size; echo $TERM; ls 实验; nvidia-smi -L; exit 3\n")
	err = s.Wait()
	var e *ssh.ExitError
	if !errors.As(err, &e) || e.ExitStatus() != 3 {
		t.Errorf("the shell ended with %v", err)
	}
	for _, want := range []string{"41 123", "xterm-256color", "数据集", "root@cn-box:~", "GPU 0: NVIDIA GeForce RTX 3090"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the terminal does not show %q:\n%s", want, out.String())
		}
	}
}

func TestFiles(t *testing.T) {
	c := connect(t, named(t, begin(t), "4090-data"))
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	list, err := files.ReadDir("results")
	if err != nil || len(list) != 12 {
		t.Fatalf("results: %d files, %v", len(list), err)
	}
	w, err := files.Create("new.txt")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "content")
	w.Close()
	if out, err := run(t, c, "cat ~/new.txt"); err != nil || out != "content" {
		t.Errorf("the file is %q, %v", out, err)
	}
	if _, err := exec.LookPath("git"); err == nil {
		if out, err := run(t, c, "cd tokenize && git status --porcelain"); err != nil || !strings.Contains(out, "M tokenize.py") || !strings.Contains(out, "?? fix_unicode.py") {
			t.Errorf("git status: %q, %v", out, err)
		}
	}
}

func TestForward(t *testing.T) {
	c := connect(t, named(t, begin(t), "a100-tune"))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "tensorboard") }))
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: c.DialContext, DisableKeepAlives: true}}
	resp, err := client.Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "tensorboard" {
		t.Errorf("through the tunnel: %q", b)
	}
	if conn, err := c.Dial("tcp", "192.0.2.1:80"); err == nil {
		conn.Close()
		t.Error("the demo forwards to the world")
	}
}

// What the demo's nvidia-smi says is read by the same parser as a real one's.
func TestGPUs(t *testing.T) {
	f := begin(t)
	for name, want := range map[string]struct {
		cards int
		name  string
		fan   bool
	}{"a100-tune": {1, "A100-SXM4-80GB", false}, "4090-data": {2, "GeForce RTX 4090", true}, "h100-hot": {8, "H100 80GB HBM3", false}} {
		in := named(t, f, name)
		r := runner{connect(t, in)}
		if err := f.WaitJobs(t.Context()); err != nil {
			t.Fatal(err)
		}
		facts := &remote.Facts{NvidiaSMI: "nvidia-smi", Container: "docker"}
		s, err := gpu.Once(t.Context(), r, facts, gpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Problem != nil || len(s.GPUs) != want.cards {
			t.Fatalf("%s: %d GPUs, %+v", name, len(s.GPUs), s.Problem)
		}
		for _, g := range s.GPUs {
			if g.Name != want.name || g.Problem != "" || (g.Fan.State == gpu.OK) != want.fan {
				t.Errorf("%s: %+v", name, g)
			}
			for what, v := range map[string]gpu.Value{"util": g.Util, "used": g.MemUsed, "total": g.MemTotal, "power": g.Power, "limit": g.PowerLimit, "temp": g.Temp, "clock": g.ClockSM} {
				if v.State != gpu.OK {
					t.Errorf("%s: %s is %+v", name, what, v)
				}
			}
			busy := len(in.Jobs) > 0
			if (g.MemUsed.V > g.MemTotal.V/2) != busy || !busy && g.Util.V != 0 {
				t.Errorf("%s: busy %v, but %+v", name, busy, g)
			}
		}
		if len(s.Processes) != len(in.Jobs)*want.cards || s.Hidden {
			t.Errorf("%s: processes %+v, hidden %v", name, s.Processes, s.Hidden)
		}
		for _, p := range s.Processes {
			if p.User == "" || !strings.Contains(p.Command, "train") {
				t.Errorf("%s: process %+v", name, p)
			}
		}
	}
}

func TestSMI(t *testing.T) {
	c := connect(t, named(t, begin(t), "4090-data"))
	for line, want := range map[string]struct {
		code int
		has  []string
	}{
		"nvidia-smi":          {0, []string{"Driver Version: 550.127.05", "NVIDIA GeForce RTX 4090", "24564MiB", "No running processes found"}},
		"nvidia-smi -L":       {0, []string{"GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-", "GPU 1: "}},
		"nvidia-smi --nosuch": {255, []string{"ERROR: Option --nosuch is not recognized. Please run 'nvidia-smi -h'."}},
		"nvidia-smi -i 9 --query-gpu=index --format=csv":                                {6, []string{"No devices were found"}},
		"nvidia-smi --query-gpu=index,nosuch --format=csv":                              {2, []string{`Field "nosuch" is not a valid field to query.`}},
		"nvidia-smi -i 1 --query-gpu=index,memory.total --format=csv,noheader":          {0, []string{"1, 24564 MiB\n"}},
		"nvidia-smi --query-gpu=memory.total,index --format=csv,nounits":                {0, []string{"memory.total, index\n24564, 0\n24564, 1\n"}},
		"nvidia-smi --query-gpu=clocks_throttle_reasons.active --format=csv":            {0, []string{"clocks_event_reasons.active\n0x0000000000000001\n"}},
		"nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory --format=csv": {0, []string{"pid, process_name, used_gpu_memory [MiB]\n"}},
		"nvidia-smi --query-gpu=index --format=csv -l 1 | head -n 5":                    {0, []string{"index\n0\n1\n0\n1\n"}},
	} {
		out, err := run(t, c, line)
		code := 0
		var e *ssh.ExitError
		if errors.As(err, &e) {
			code = e.ExitStatus()
		}
		if code != want.code {
			t.Errorf("%s: exit %d, want %d", line, code, want.code)
		}
		for _, w := range want.has {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %q in\n%s", line, w, out)
			}
		}
	}
	table, _ := run(t, c, "nvidia-smi")
	for i, l := range strings.Split(strings.TrimSpace(table), "\n") {
		if i > 0 && l != "" && len(l) != 91 {
			t.Errorf("line %d of the table is %d wide: %s", i, len(l), l)
		}
	}
}

func TestTrains(t *testing.T) {
	f := begin(t)
	in := named(t, f, "a100-tune")
	c := connect(t, in)
	if err := f.WaitJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, c, "cd "+in.Jobs[0].Dir+" && timeout -s TERM 3 "+in.Jobs[0].Command+"; ls ~/ckpt | tail -n 1; ls $RENTOP_DEMO_BOX/gpu.d | wc -l | tr -d ' '")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"starting at step 300", "lora-7b step    301  loss ", "saving a last checkpoint", "lora-7b-step00030", ".pt\n1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestProvider(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		f := begin(t)
		return providertest.Harness{Provider: f.Provider(), ID: named(t, f, "a100-tune").ID, Missing: "demo-99"}
	})
}

// The jobs are rentop's own: listed, running, their output in the log.
func TestJobs(t *testing.T) {
	f := begin(t)
	if err := f.WaitJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, in := range f.Instances() {
		if in.State != provider.Running {
			continue
		}
		jobs, err := tmux.New(runner{connect(t, in)}, nil).List(t.Context())
		if err != nil || len(jobs) != len(in.Jobs) {
			t.Fatalf("%s: jobs %+v, %v", in.Name, jobs, err)
		}
		for i, j := range jobs {
			if j.Name != in.Jobs[i].Name || j.State != tmux.Running {
				t.Errorf("%s: job %+v", in.Name, j)
			}
		}
	}
}

// Stop pulls the plug; start finds the files, the port and the host key again;
// destroy leaves nothing but the snapshot.
func TestPower(t *testing.T) {
	f := begin(t)
	p, in := f.Provider(), named(t, f, "a100-tune")
	c := connect(t, in)
	if out, err := run(t, c, "echo kept >note; (setsid sleep 600 >/dev/null 2>&1 </dev/null &); command -v tmux >/dev/null && tmux new-session -d 'sleep 601'; echo ok"); err != nil || out != "ok\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if err := p.Stop(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	if left := running(filepath.Join(f.Dir(), "m", in.Name), nil); len(left) > 0 {
		t.Errorf("stopped, and these run: %v", left)
	}
	if err := c.Wait(); err == nil {
		t.Error("the connection survived the stop")
	}
	if c, err := dial(in); err == nil {
		c.Close()
		t.Error("a stopped instance answers")
	}
	if err := p.Start(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	again := named(t, f, "a100-tune")
	if again.Port != in.Port || again.HostKey != in.HostKey || !again.StartedAt.After(in.StartedAt) {
		t.Errorf("after the start %+v, before %+v", again, in)
	}
	if out, err := run(t, connect(t, again), "cat note"); err != nil || out != "kept\n" {
		t.Errorf("%q, %v", out, err)
	}
	snap, err := p.Snapshot(t.Context(), in.ID, "last")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := exec.Command("tar", "tzf", filepath.Join(f.Dir(), "snapshots", snap.ID+".tar.gz")).Output(); err != nil || !strings.Contains(string(list), "note\n") {
		t.Errorf("the snapshot holds %s, %v", list, err)
	}
	if err := p.Destroy(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(f.Dir(), "m", in.Name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("destroyed, and its files are there: %v", err)
	}
	left, err := p.Leftovers(t.Context(), in.ID, provider.Gone)
	if err != nil || len(left) != 1 || left[0].Kind != "snapshot" || left[0].PerMonth != "11.67" {
		t.Errorf("left over: %+v, %v", left, err)
	}
	if state, err := os.ReadFile(filepath.Join(f.Dir(), "state.json")); err != nil || !strings.Contains(string(state), `"gone"`) {
		t.Errorf("the state file: %s, %v", state, err)
	}
}

func TestCloseEndsAll(t *testing.T) {
	f := begin(t)
	c := connect(t, named(t, f, "4090-data"))
	if _, err := run(t, c, "(setsid sh -c 'trap \"\" HUP TERM; sleep 600; sleep 600' >/dev/null 2>&1 </dev/null &)"); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession() // one that goes on
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("sleep 600"); err != nil {
		t.Fatal(err)
	}
	if len(running(f.Dir()+"/", nil)) < 2 {
		t.Fatal("nothing is running: the test proves nothing")
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Close() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
}

func TestContextEndsAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Start(ctx, Options{Dir: filepath.Join(t.TempDir(), "demo")})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(f.Dir()); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is still there", f.Dir())
	f.Close()
}

func TestFolderOfThePerson(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Start(t.Context(), Options{Dir: dir}); err == nil {
		f.Close()
		t.Fatal("it took a folder that holds a file")
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.tex")); err != nil {
		t.Error(err)
	}
}

func TestSSHClients(t *testing.T) {
	in := named(t, begin(t), "a100-tune")
	known := filepath.Join(t.TempDir(), "known_hosts")
	args := []string{"-F", "none", "-i", in.KeyFile, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + known}
	t.Run("ssh", func(t *testing.T) {
		path := needtest.Program(t, "ssh")
		cmd := exec.Command(path, append(args, "-p", fmt.Sprint(in.Port), in.User+"@"+in.Host, "nvidia-smi -L; exit 5")...)
		out, err := cmd.Output()
		if cmd.ProcessState.ExitCode() != 5 || !strings.Contains(string(out), "A100") {
			t.Errorf("%s, %v", out, err)
		}
	})
	t.Run("sftp", func(t *testing.T) {
		path := needtest.Program(t, "sftp")
		to := filepath.Join(t.TempDir(), "got")
		cmd := exec.Command(path, append(args, "-P", fmt.Sprint(in.Port), "-b", "-", in.User+"@"+in.Host)...)
		cmd.Stdin = strings.NewReader("get project/config.yaml " + to + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
		if b, err := os.ReadFile(to); err != nil || !strings.Contains(string(b), "lora") {
			t.Errorf("%q, %v", b, err)
		}
	})
}
