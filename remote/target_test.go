package remote

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	opt := func(kv ...string) map[string]string { return map[string]string{kv[0]: kv[1]} }
	for _, tc := range []struct {
		in   string
		want Target
	}{
		{"ssh -p 41237 root@connect.example", Target{User: "root", Host: "connect.example", Port: 41237}},
		{"$ ssh root@1.2.3.4 -p 22022 -i ~/.ssh/id_ed25519", Target{User: "root", Host: "1.2.3.4", Port: 22022, Identity: []string{"~/.ssh/id_ed25519"}}},
		{"ssh -p22 -J bastion,u@b2:2200 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null h", Target{Host: "h", Port: 22, Jump: "bastion,u@b2:2200"}},
		{"ssh://root@[2001:db8::1]:2222/path", Target{User: "root", Host: "2001:db8::1", Port: 2222}},
		{"[::1]:22", Target{Host: "::1", Port: 22}},
		{"root@[::1]", Target{User: "root", Host: "::1"}},
		{"fe80::1%eth0", Target{Host: "fe80::1%eth0"}},
		{"root@host:41237", Target{User: "root", Host: "host", Port: 41237}},
		{"my-alias", Target{Host: "my-alias"}},
		{"ssh 服务器", Target{Host: "服务器"}},
		{"ssh -i 'C:\\Users\\Li Wei\\.ssh\\id' root@h", Target{User: "root", Host: "h", Identity: []string{`C:\Users\Li Wei\.ssh\id`}}},
		{`ssh.exe -i C:\Users\me\.ssh\id root@h`, Target{User: "root", Host: "h", Identity: []string{`C:\Users\me\.ssh\id`}}},
		{`ssh -i my\ key root@h`, Target{User: "root", Host: "h", Identity: []string{"my key"}}},
		{"ssh -p 8022 root@h -L 8080:localhost:8080 -N", Target{User: "root", Host: "h", Port: 8022}},
		{"ssh -NfCp 8022 -D1080 root@h", Target{User: "root", Host: "h", Port: 8022}},
		{"ssh podid-644@ssh.runpod.io -i ~/.ssh/id", Target{User: "podid-644", Host: "ssh.runpod.io", Identity: []string{"~/.ssh/id"}}},
		{"sshpass -p geheim ssh -p 1 root@h", Target{User: "root", Host: "h", Port: 1}},
		{"登录指令：ssh -p 41237 root@h。", Target{User: "root", Host: "h", Port: 41237}},
		{"Login\n  ssh -p 41237 root@h\nPassword: x", Target{User: "root", Host: "h", Port: 41237}},
		{"ssh -p 41237 \\\n  root@h", Target{User: "root", Host: "h", Port: 41237}},
		{"ssh –p 41237 root@h", Target{User: "root", Host: "h", Port: 41237}},
		{"`ssh root@h`", Target{User: "root", Host: "h"}},
		{"ssh -l root -o Port=2 -o 'IdentityFile ~/k' -o HostName=real h", Target{User: "root", Host: "h", Port: 2, Identity: []string{"~/k"}, Options: opt("hostname", "real")}},
		{"ssh -oIdentitiesOnly=yes h", Target{Host: "h", Options: opt("identitiesonly", "yes")}},
		{"ssh -p 1 -p 2 h", Target{Host: "h", Port: 1}},
		{"ssh -o ProxyCommand=none -o PermitLocalCommand=no -J none h", Target{Host: "h", Jump: "none"}},
		{"ssh h nvidia-smi -L", Target{Host: "h"}},
		{"ssh a@b@h", Target{User: "a@b", Host: "h"}},
	} {
		got, err := ParseTarget(tc.in)
		if tc.in == "ssh h nvidia-smi -L" { // a word after the host ends the reading
			got.Options = nil
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", tc.in, got, err, tc.want)
			continue
		}
		again, err := ParseTarget(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q reads back as %+v, %v", got.String(), again, err)
		}
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"foo bar": "no login line", "alias is the one": "no login line",
		"": "names no host", "ssh": "names no host", "ssh -p 22": "names no host",
		"ssh -p 0 h": "not a port", "h:99999": "not a port", "ssh -p x h": "not a port",
		"ssh -o ProxyCommand='rm -rf ~' h":             "run a program",
		"ssh -oproxycommand=x h":                       "run a program",
		"ssh -o 'ProxyCommand nc %h %p' h":             "run a program",
		"ssh h -o LocalCommand=x":                      "run a program",
		"ssh -o PermitLocalCommand=yes h":              "run a program",
		"ssh -o KnownHostsCommand=x h":                 "run a program",
		"ssh -o PKCS11Provider=/tmp/x.so h":            "run a program",
		"ssh -I /tmp/x.so h":                           "programs to run",
		"ssh -F /tmp/config h":                         "programs to run",
		"ssh -o HostName=-oProxyCommand=x h":           "not a host name",
		"ssh '-oProxyCommand=x' h":                     "run a program",
		"ssh -J '-oProxyCommand=x' h":                  "not a host name",
		"ssh -- -oProxyCommand=x":                      "",
		"ssh 'root;id@h'":                              "not a user name",
		"ssh root@'$(id)'":                             "not a host name",
		"ssh -l '$(id)' h":                             "not a user name",
		"ssh://root:secret@h":                          "password",
		"https://h/":                                   "not an ssh address",
		"ssh 'h":                                       "not closed",
		"root@[::1":                                    "bracket",
		"ssh -3 h":                                     "no option -3",
		"ssh h -i":                                     "needs a value",
		"@h":                                           "not a user name",
		"root@":                                        "not a host name",
		strings.Repeat("h", 300):                       "not a host name",
		"ssh root@h" + strings.Repeat(" x", maxLine/2): "longer",
	} {
		got, err := ParseTarget(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %+v, %v; want %q", in, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: the error shows the password: %v", in, err)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"ssh -p 41237 root@h -i ~/k -J b -o HostName=x", "ssh://u@[::1]:22", "a\\ b", "ssh -oProxyCommand=x h", "'\"", "ssh -i 'a'\\''b:\\c' h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil {
			return
		}
		if got.Host[0] == '-' || strings.ContainsAny(got.Host+got.User, "$`;|&<>(){} \n'\"") || got.User != "" && got.User[0] == '-' {
			t.Fatalf("%q: %+v", s, got)
		}
		for k := range got.Options {
			if !keptOptions[k] {
				t.Fatalf("%q kept %s", s, k)
			}
		}
		again, err := ParseTarget(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%q → %q → %+v, %v; want %+v", s, got.String(), again, err, got)
		}
	})
}
