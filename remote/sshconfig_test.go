package remote

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
)

// configs are read by ssh -G and by our own reading; both must agree.
var configs = []struct {
	name   string
	text   string
	files  map[string]string // beside it; DIR in texts is their folder
	lines  []string          // what the person wrote; nil: "h"
	differ bool              // OpenSSH refuses this config: only ours is checked for not failing
}{
	{name: "empty"},
	{name: "plain", text: "Host h\n  HostName real.example\n  User me\n  Port 2222\n  IdentityFile ~/k1\n  IdentityFile ~/k2\nHost *\n  User other\n  IdentityFile ~/k3\n"},
	{name: "first value wins", text: "User a\nHost h\nUser b\nPort 1\nHost h\nPort 2\n"},
	{name: "patterns", text: "Host a*c !abc\n User one\nHost ?bc\n User two\nHost 10.0.0.*\n User three\nHost *.example !x.example,y\n User four\n",
		lines: []string{"aXc", "abc", "bc", "10.0.0.7", "z.example", "x.example", "ABC"}},
	{name: "command line", text: "Host *\nUser cfg\nPort 9\nIdentityFile ~/k\n", lines: []string{"ssh -p 1 -l me h", "me@h", "h:5"}},
	{name: "equals and quotes", text: "Host=h\nHostName = \"real.example\"\nUser=\"me\"\nIdentityFile \"~/with space\"\nIdentityFile '~/single'\nPort=5\n"},
	{name: "tabs and comments", text: "# top\n\tHost\th # trailing\n\t\tUser\tme # who\n  Port 5\n\n#Host x\n"},
	{name: "tokens", text: "Host h\nHostName %h.example\nUser me\nPort 7\nIdentityFile ~/keys/%r@%h-%p-%n\nUserKnownHostsFile ~/kh_%h ~/second\n"},
	{name: "env", text: "Host h\nIdentityFile ${RENTOP_TEST_DIR}/key\n"},
	{name: "match host", text: "Host h\nHostName real.example\nMatch host real.example\nUser me\nMatch host h\nUser wrong\nMatch originalhost h\nPort 8\n"},
	{name: "match list", text: "Match host a,h,c user root\nPort 3\nMatch originalhost a,h\nPort 4\n", lines: []string{"h", "root@h", "a"}},
	{name: "match negated", text: "Match !host x user root\nPort 3\nMatch host *,!h\nUser nobody\n", lines: []string{"root@h", "root@x", "root@y"}},
	{name: "match user from config", text: "User root\nMatch user root\nPort 3\n"},
	{name: "match all", text: "Host x\nUser x\nMatch all\nUser me\nPort 5\n"},
	{name: "match final", text: "Match final all\n User late\n Port 99\nHost h\n HostName real.example\nMatch final host real.example\n IdentityFile ~/final\nHost real.example\n IdentityFile ~/byname\n"},
	{name: "match exec", text: "Host h\nUser me\nMatch exec \"false\"\nPort 3\nMatch originalhost h\nPort 4\n"},
	{name: "include", text: "Include DIR/inc/*.conf\nHost h\nInclude DIR/one\nUser outer\nHost other\nInclude DIR/two\n",
		files: map[string]string{"inc/a.conf": "Host h\nPort 11\n", "inc/b.conf": "Port 12\nIdentityFile ~/fromb\n", "one": "HostName inner.example\nHost zzz\nUser wrong\n", "two": "HostName wrong.example\n"}, lines: []string{"h", "other"}},
	{name: "include in a match", text: "Match host h\nInclude DIR/one\nMatch host x\nInclude DIR/one\n", files: map[string]string{"one": "User inc\nInclude DIR/one-more\n", "one-more": "Port 77\n"}, lines: []string{"h", "y"}},
	{name: "jump", text: "Host h\nProxyJump bastion\nHost bastion\nUser gate\nPort 2\nHostName gate.example\n"},
	{name: "jump none", text: "Host h\nProxyJump none\nHost *\nProxyJump bastion\n", lines: []string{"h", "x"}},
	{name: "command before jump", text: "Host h\nProxyCommand nc %h %p # not a comment\nProxyJump b\n"},
	{name: "jump before command", text: "Host h\nProxyJump b\nProxyCommand nc %h %p\n"},
	{name: "agent", text: "Host h\nIdentityAgent ~/agent.sock\nIdentitiesOnly yes\nHostKeyAlias box\nStrictHostKeyChecking accept-new\nConnectTimeout 7\n"},
	{name: "agent none", text: "IdentityAgent none\n"},
	{name: "case", text: "HOST h\nhostname Real.Example\nUSER me\n"},
	{name: "crlf", text: "Host h\r\n  User me\r\n  Port 5\r\n"},
	{name: "dotted", text: "Host h\nHostName 2001:db8::1\n"},
	{name: "unknown keyword", text: "Host h\nFrobnicate yes\nUser me\nUseKeychain yes\n", differ: true},
	{name: "bad values", text: "Host h\nPort many\nUser me\n", differ: true},
	{name: "localnetwork", text: "Match localnetwork 10.0.0.0/8\nUser me\n", differ: true},
}

func writeConfig(t *testing.T, i int) ResolveOptions {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("RENTOP_TEST_DIR", dir)
	put := func(name, text string) {
		p := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(p), 0o700)
		if err := os.WriteFile(p, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range configs[i].files {
		put(name, text)
	}
	put("config", configs[i].text)
	return ResolveOptions{ConfigFile: filepath.Join(dir, "config"), Home: home}
}

func TestOwnReadingAgreesWithOpenSSH(t *testing.T) {
	needtest.Program(t, "ssh")
	for i, tc := range configs {
		t.Run(tc.name, func(t *testing.T) {
			o := writeConfig(t, i) // with the real home: ssh knows no other
			lines := tc.lines
			if lines == nil {
				lines = []string{"h"}
			}
			for _, line := range lines {
				target, err := ParseTarget(line)
				if err != nil {
					t.Fatal(err)
				}
				o.NoOpenSSH = false
				theirs, err := Resolve(t.Context(), target, o)
				if err != nil && !tc.differ {
					t.Fatal(err)
				}
				o.NoOpenSSH = true
				ours, err := Resolve(t.Context(), target, o)
				if tc.differ {
					if err != nil && tc.name != "bad values" {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range []*Endpoint{&ours, &theirs} {
					plainer(e)
				}
				if !reflect.DeepEqual(ours, theirs) {
					t.Errorf("%q:\n ours   %+v\n theirs %+v", line, ours, theirs)
				}
			}
		})
	}
}

// plainer takes out what does not matter: notes, and the order of ssh's defaults.
func plainer(e *Endpoint) {
	e.Notes = nil
	if e.DefaultIdentity {
		e.IdentityFiles = nil
	}
	if len(e.Jump) == 0 {
		e.Jump = nil
	}
	for i := range e.Jump {
		plainer(&e.Jump[i])
	}
	for _, k := range []*[]string{&e.KnownHosts} {
		slices.Sort(*k)
	}
}

func TestResolve(t *testing.T) {
	home := t.TempDir()
	os.MkdirAll(filepath.Join(home, ".ssh"), 0o700)
	config := filepath.Join(home, ".ssh", "config")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := ResolveOptions{Home: home, ConfigFile: config, NoOpenSSH: true}
	resolve := func(line string) Endpoint {
		t.Helper()
		target, err := ParseTarget(line)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Resolve(t.Context(), target, o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	write("Host *\nProxyJump bastion\nUser me\nHost bastion\nProxyJump none\nPort 2\nHost loop\nHostName 10.0.0.1\n")
	if e := resolve("root@h -i ~/k"); len(e.Jump) != 1 || e.Jump[0].Alias != "bastion" || e.Address() != "root@h:22" || e.IdentityFiles[0] != filepath.Join(home, "k") || e.DefaultIdentity {
		t.Errorf("%+v", e)
	}
	if e := resolve("ssh bastion"); len(e.Jump) != 0 {
		t.Errorf("the bastion jumps through itself: %+v", e)
	}
	if e := resolve("ssh -J none h"); len(e.Jump) != 0 {
		t.Errorf("%+v", e)
	}
	write("Host a\nProxyJump b\nHost b\nProxyJump a\n")
	if _, err := Resolve(t.Context(), Target{Host: "a"}, o); err == nil || !strings.Contains(err.Error(), "points back") {
		t.Error(err)
	}
	write("Host c\nProxyJump x,y\nHost x\nProxyJump w\nHost y\nProxyJump v\n")
	var hops []string
	for _, j := range resolve("c").Jump {
		hops = append(hops, j.Alias)
	}
	if strings.Join(hops, " ") != "w x y" {
		t.Error("hops", hops)
	}
	write("Host h\nMatch exec \"touch " + home + "/ran\"\nUser wrong\n")
	if e := resolve("h"); e.User == "wrong" || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "Match exec") {
		t.Errorf("%+v", e)
	}
	if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
		t.Error("our own reading ran a program")
	}
	write("ProxyCommand x\nProxyUseFdpass yes\n")
	if _, err := Resolve(t.Context(), Target{Host: "h"}, o); err == nil || !strings.Contains(err.Error(), "ProxyUseFdpass") {
		t.Error(err)
	}
	// HOME counts, though ssh itself would look into the password file's home.
	write("Host h\nUser fromhome\n")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if e, err := Resolve(t.Context(), Target{Host: "h"}, ResolveOptions{}); err != nil || e.User != "fromhome" {
		t.Errorf("%+v, %v", e, err)
	}
	write("Include ~/.ssh/config\n") // itself
	resolve("h")
	write("Host h\nHostName -oProxyCommand=x\n")
	if _, err := Resolve(t.Context(), Target{Host: "h"}, o); err == nil {
		t.Error("a host name that is an option")
	}
}

func TestResolveCache(t *testing.T) {
	ssh := needtest.Program(t, "ssh")
	bin, home := t.TempDir(), t.TempDir()
	count := filepath.Join(bin, "count")
	os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\necho x >>"+count+"\nexec "+ssh+" \"$@\"\n"), 0o755)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	runs := func() int {
		b, _ := os.ReadFile(count)
		return strings.Count(string(b), "x")
	}
	config, inc := filepath.Join(home, "config"), filepath.Join(home, "inc")
	os.WriteFile(inc, []byte("User one\n"), 0o600)
	os.WriteFile(config, []byte("Include "+inc+"\n"), 0o600)
	o := ResolveOptions{Home: home, ConfigFile: config, Cache: &ResolveCache{}}
	ask := func(want string) {
		t.Helper()
		e, err := Resolve(t.Context(), Target{Host: "h"}, o)
		if err != nil || e.User != want {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	ask("one")
	ask("one")
	if runs() != 1 {
		t.Errorf("ssh ran %d times", runs())
	}
	os.WriteFile(inc, []byte("User two\n"), 0o600)
	os.Chtimes(inc, time.Now(), time.Now().Add(time.Second))
	ask("two")
	if runs() != 2 {
		t.Errorf("ssh ran %d times", runs())
	}
	os.WriteFile(config, []byte("User three\nMatch exec true\nPort 5\n"), 0o600)
	ask("three")
	ask("three")
	if runs() != 4 {
		t.Errorf("with Match exec ssh ran %d times, not each time", runs())
	}
}

func FuzzSSHConfig(f *testing.F) {
	for _, c := range configs {
		f.Add(c.text)
	}
	home := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "include") { // only files of ours
			return
		}
		config := filepath.Join(t.TempDir(), "config")
		os.WriteFile(config, []byte(text), 0o600)
		e, err := Resolve(t.Context(), Target{Host: "h"}, ResolveOptions{Home: home, ConfigFile: config, NoOpenSSH: true})
		if err == nil && (e.Host == "" || e.Host[0] == '-' || e.Port < 1 || e.Port > 65535 || e.User == "" || strings.ContainsAny(e.Host, "$`; \n")) {
			t.Fatalf("%+v", e)
		}
	})
}
