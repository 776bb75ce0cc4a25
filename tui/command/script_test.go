package command_test

// The commands as scripts use them: testdata/script holds input, output and exit
// codes side by side, against a real sshd. A script's own commands are:
//
//	server [dropbear] [noise] [shell=fish] [hide=tmux]   starts a server; sets $LINE, $LOGIN, $FINGERPRINT, $REMOTE (its home)
//	instance NAME [flags…]                     adds it and accepts its host key
//	exits CODE COMMAND…                        the command's exit code, exactly
//	json PATH VALUE                            stdout is JSON and has that value ("0.name"); VALUE "type:string" and so on
//	await FILE [TEXT]                          waits until the file is there and has that text
//	bucket                                     starts storage and gives the config [bucket.runs]; sets the key and $BUCKET (its folder)
//	newkey                                     the server gets another host key

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"rentop/remote/sshtest"
	"rentop/remote/store/storetest"
	"rentop/session"
	"rentop/tui/command"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rentop": func() {
		leaveTerminal() // the developer's: a script without ttyin has none
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(command.Run(ctx, command.Program{
			Version: "test", In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now,
			Screen: func(context.Context, *session.Fleet) error { return errors.New("no screen here") },
		}, os.Args[1:]))
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Values["t"] = e.T()
			e.Values["server"] = new(server)
			for name, dir := range map[string]string{
				"HOME": "home", "RENTOP_CONFIG_DIR": "config", "RENTOP_STATE_DIR": "state", "XDG_CONFIG_HOME": "xdg",
			} {
				dir = filepath.Join(e.WorkDir, dir)
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
				e.Setenv(name, dir)
			}
			e.Setenv("ESC", "\x1b")
			e.Setenv("SSH_AUTH_SOCK", "")
			e.Setenv("DBUS_SESSION_BUS_ADDRESS", "") // no keyring of the developer's
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": startServer, "bucket": startBucket, "instance": addInstance, "exits": exits, "json": jsonHas, "newkey": newKey, "await": await, "until": until,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "servers" { // what the server command needs
				return runtime.GOOS == "linux" && os.Getuid() == 0, nil
			}
			if cond == "buckets" { // what the bucket command needs
				_, err := exec.LookPath("versitygw")
				return err == nil, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
	})
}

// server is a script's sshd.
type server struct{ s *sshtest.Server }

func startServer(ts *testscript.TestScript, _ bool, args []string) {
	var o sshtest.Options
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "dropbear":
			o.Dropbear = true
		case "noise":
			o.Noise = true
		case "shell":
			o.Shell = value
		case "hide":
			o.Hide = append(o.Hide, value)
		case "password":
			o.Password = value
		default:
			ts.Fatalf("server: what is %q?", a)
		}
	}
	s := sshtest.Start(scriptTB(ts), o)
	ts.Value("server").(*server).s = s
	_, port, _ := strings.Cut(s.Addr, ":")
	ts.Setenv("LINE", fmt.Sprintf("ssh -p %s -i %s %s@127.0.0.1", port, s.KeyFile, s.User))
	ts.Setenv("LOGIN", fmt.Sprintf("%s@%s", s.User, s.Addr))
	ts.Setenv("ADDRESS", s.Addr)
	ts.Setenv("FINGERPRINT", ssh.FingerprintSHA256(s.HostKey()))
	ts.Setenv("REMOTE", s.Home)
}

// scriptTB is the script's test.
func scriptTB(ts *testscript.TestScript) testing.TB {
	t, is := ts.Value("t").(testing.TB)
	if !is {
		ts.Fatalf("the script's T is no testing.TB")
	}
	return t
}

func startBucket(ts *testscript.TestScript, _ bool, _ []string) {
	s := storetest.Start(scriptTB(ts), "")
	ts.Setenv("AWS_ACCESS_KEY_ID", storetest.KeyID)
	ts.Setenv("AWS_SECRET_ACCESS_KEY", storetest.Secret)
	ts.Setenv("BUCKET", filepath.Join(s.Root, storetest.Bucket))
	f, err := os.OpenFile(filepath.Join(ts.Getenv("RENTOP_CONFIG_DIR"), "config.toml"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	ts.Check(err)
	_, err = fmt.Fprintf(f, "\n[bucket.%s]\nendpoint = %q\n", storetest.Bucket, s.Endpoint)
	ts.Check(errors.Join(err, f.Close()))
}

func newKey(ts *testscript.TestScript, _ bool, _ []string) {
	s := ts.Value("server").(*server).s
	s.ReplaceHostKey()
	ts.Setenv("FINGERPRINT", ssh.FingerprintSHA256(s.HostKey()))
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	name, want := ts.MkAbs(args[0]), strings.Join(args[1:], " ")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), want) {
			return
		}
	}
	ts.Fatalf("%s is not there with %q", name, want)
}

// until runs a program again and again until what it prints matches the first word.
func until(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[0])
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%v never prints %s", args[1:], args[0])
}

func addInstance(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("rentop", append([]string{"add", ts.Getenv("LINE"), "--name"}, args...)...))
	ts.Check(ts.Exec("rentop", "exec", args[0], "--accept-host-key", ts.Getenv("FINGERPRINT"), "--", "true"))
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jsonHas looks a path up in the last stdout.
func jsonHas(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH VALUE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	var v any
	ts.Check(dec.Decode(&v))
	if dec.More() {
		ts.Fatalf("more than one JSON value on stdout")
	}
	for _, step := range strings.Split(args[0], ".") {
		switch at := v.(type) {
		case map[string]any:
			next, has := at[step]
			if !has {
				ts.Fatalf("%s: there is no %q", args[0], step)
			}
			v = next
		case []any:
			if step == "len" {
				v = json.Number(strconv.Itoa(len(at)))
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(at) {
				ts.Fatalf("%s: no element %q of %d", args[0], step, len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("%s: %q is below a %T", args[0], step, v)
		}
	}
	got := fmt.Sprint(v)
	if v == nil {
		got = "null"
	}
	if kind, is := strings.CutPrefix(args[1], "type:"); is {
		args[1], got = kind, kindOf(v)
	}
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case json.Number:
		return "number"
	case string:
		return "string"
	case bool:
		return "bool"
	case []any:
		return "list"
	}
	return "object"
}
