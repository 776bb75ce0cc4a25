package environment

import (
	"slices"
	"strings"
	"testing"
)

func files(pairs ...string) Files {
	f := Files{}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i]] = []byte(pairs[i+1])
	}
	return f
}

func commands(r Report) []string {
	var out []string
	for _, s := range r.Steps {
		out = append(out, s.Command)
	}
	return out
}

func TestCompare(t *testing.T) {
	o := Options{Home: "/root", HomeThere: "/home/me", Dir: "/home/me/.rentop/environment/x"}
	for name, c := range map[string]struct {
		was, is  Files
		commands []string
		missing  string
		content  string
		cannot   []string
	}{
		"equal": {was: files("pip-freeze.txt", "a==1\n"), is: files("pip-freeze.txt", "A==1\nb==2\n")},
		"pip": {
			was:      files("pip-freeze.txt", "torch==2.3.0+cu121\nPyYAML==6.0\nnumpy==1.26.4\npip==24.0\n"),
			is:       files("pip-freeze.txt", "numpy==1.24.0\npyyaml==6.0\npip==22.0\n"),
			commands: []string{"python3 -m pip install --extra-index-url https://download.pytorch.org/whl/cu121 -r /home/me/.rentop/environment/x/pip-missing.txt"},
			missing:  "numpy 1.26.4 (there: 1.24.0),torch 2.3.0+cu121", content: "numpy==1.26.4\ntorch==2.3.0+cu121\n",
		},
		"what no index serves": {
			was: files("pip-freeze.txt", "a @ file:///croot/a\nb @ git+https://***@git.example/b\n-e /root/mine\n-e git+https://git.example/c@1#egg=c&x=1\nd @ file:///croot/d\n# nonsense; rm -rf /\nx; rm -rf /\n"),
			is:  files("pip-freeze.txt", "d==3\n"), commands: []string{"python3 -m pip install -r /home/me/.rentop/environment/x/pip-missing.txt"},
			missing: "c", content: "-e git+https://git.example/c@1#egg=c&x=1\n",
			cannot: []string{"pip: /root/mine: it was installed from a folder there; install it from the restored folder: pip install -e FOLDER", "pip: a: it was installed from a file there", "pip: b: its address held a credential, which is not kept"},
		},
		"no pip there": {was: files("pip-freeze.txt", "a==1\n"), is: files(), cannot: []string{"pip: there is no pip there; it lacks 1 package"}},
		"a virtualenv in another home": {
			was: files("venvs.txt", "/root/my env\n", "pip-freeze-_root_my_env.txt", "a==1\n"), is: files(),
			commands: []string{"python3 -m venv '/home/me/my env' && '/home/me/my env/bin/python' -m pip install -r /home/me/.rentop/environment/x/pip-missing-_home_me_my_env.txt"}, missing: "a 1", content: "a==1\n",
		},
		"a virtualenv that is there": {was: files("venvs.txt", "/root/e\n", "pip-freeze-_root_e.txt", "a==1\n"), is: files("pip-freeze-_home_me_e.txt", "a==1\n")},
		"an old snapshot's virtualenv": {was: files("pip-freeze-_root_e.txt", "a==1\n"), is: files(),
			cannot: []string{"venv: pip-freeze-_root_e.txt: its snapshot does not say in which folder it was; the list is in the snapshot's .env folder"}},
		"conda": {
			was: files("conda-envs.txt", "# conda environments:\nbase   *  /opt/conda\nt         /root/t\n", "conda-list-_opt_conda.txt", "@EXPLICIT\nhttps://c.example/linux-64/a-1-0.conda#00\nhttps://c.example/linux-64/b-1-0.tar.bz2#00\n", "conda-list-_root_t.txt", "@EXPLICIT\nhttps://c.example/c-1.conda\n"),
			is:  files("conda-envs.txt", "base * /opt/conda\n", "conda-list-_opt_conda.txt", "@EXPLICIT\nhttps://mirror.example/a-1-0.conda#01\n"),
			commands: []string{"conda install -y -p /opt/conda --file /home/me/.rentop/environment/x/conda-_opt_conda.txt",
				"conda create -y -p /home/me/t --file /home/me/.rentop/environment/x/conda-_home_me_t.txt"},
			missing: "b-1-0", content: "@EXPLICIT\nhttps://c.example/linux-64/b-1-0.tar.bz2#00\n",
		},
		"apt": {
			was:      files("apt-manual.txt", "ffmpeg\nlibsndfile1:amd64\nnvidia-driver-550\ntmux\n$(evil)\n"),
			is:       files("apt-manual.txt", "tmux\n", "dpkg.txt", "libsndfile1 1.0\n"),
			commands: []string{"sudo apt-get install -y ffmpeg"}, missing: "ffmpeg", cannot: []string{"apt: $(evil): it is no package's name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Compare(c.was, c.is, o)
			if got := commands(r); !slices.Equal(got, c.commands) {
				t.Errorf("commands\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.commands, "\n"))
			}
			if !slices.Equal(r.Cannot, c.cannot) {
				t.Errorf("cannot %q", r.Cannot)
			}
			if len(r.Steps) > 0 && (strings.Join(r.Steps[0].Missing, ",") != c.missing || string(r.Steps[0].Content) != c.content) {
				t.Errorf("missing %q, content %q", r.Steps[0].Missing, r.Steps[0].Content)
			}
			if r.Equal() != (len(c.commands)+len(c.cannot) == 0) {
				t.Error("equal", r.Equal())
			}
		})
	}
}

func TestDiffers(t *testing.T) {
	r := Compare(
		files("system.txt", "os: Ubuntu 22.04\npython: Python 3.11.1\ngpu: 0, A100, 550, 80 GB\ngpu: 1, A100, 550, 80 GB\n", "env-names.txt", "HF_HOME\nPATH\nSSH_TTY\n"),
		files("system.txt", "os: Ubuntu 22.04\ngpu: 0, H100, 550, 80 GB\n", "env-names.txt", "PATH\n"), Options{})
	want := []Difference{{"gpu", "A100, A100", "H100"}, {"python", "Python 3.11.1", ""}, {"variables", "HF_HOME", ""}}
	if !slices.Equal(r.Differs, want) || !r.Equal() {
		t.Errorf("%+v", r)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("a==1\n-e x\nb @ c\n", "base * /opt/c\n", "x\n")
	f.Fuzz(func(t *testing.T, pip, conda, apt string) {
		was := files("pip-freeze.txt", pip, "conda-envs.txt", conda, "conda-list-_opt_c.txt", apt, "apt-manual.txt", apt, "venvs.txt", conda, "system.txt", apt)
		for _, s := range Compare(was, files("pip-freeze.txt", "", "apt-manual.txt", "", "conda-envs.txt", ""), Options{Dir: "/d"}).Steps {
			if strings.ContainsAny(s.Command, "\n\x00") {
				t.Errorf("a command of several lines: %q", s.Command)
			}
			if s.Tool == "apt" && strings.ContainsAny(s.Command, ";$`|&><'\"\\") {
				t.Errorf("%q", s.Command)
			}
		}
	})
}
