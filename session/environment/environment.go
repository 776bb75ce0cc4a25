// Package environment compares what was installed where a snapshot was taken with what
// is installed on another instance, and says with which commands the one becomes like
// the other. It computes only: who captured the two is not its affair.
package environment

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"rentop/remote"
)

// Files is an environment as release captures it: texts by name.
type Files map[string][]byte

// Step is one command that brings what is missing.
type Step struct {
	Tool    string   // pip, venv, conda, apt
	Where   string   // the environment's folder there; "" for the system's
	Missing []string // "name version", or "name version (there: version)"
	Command string   // for sh, exactly
	Input   string   // the name of a file that the command reads, in the folder of Options.Dir; "" for none
	Content []byte   // of that file
	Runs    bool     // pip's and conda's: it may be run without a person
}

// Difference is what no package manager changes.
type Difference struct{ What, Was, Is string } // Is "" is not there

// Report is a comparison.
type Report struct {
	Steps   []Step
	Differs []Difference
	Cannot  []string // what is missing and has no command, with why
}

// Equal says that nothing is missing.
func (r Report) Equal() bool { return len(r.Steps) == 0 && len(r.Cannot) == 0 }

// Options of a comparison.
type Options struct {
	Home, HomeThere string // of the login, before and there
	Dir             string // absolute, there: where files that commands read will be
	Root            bool   // the login there is root: no sudo
}

// Compare says what is lacks that was has.
func Compare(was, is Files, o Options) Report {
	var r Report
	r.system(was, is)
	r.pip(was["pip-freeze.txt"], is["pip-freeze.txt"], is["pip-freeze.txt"] != nil, o, "pip-missing.txt", Step{Tool: "pip"}, "python3 -m pip")
	r.venvs(was, is, o)
	r.conda(was, is, o)
	r.apt(was, is, o)
	return r
}

// moved is a path of before as it is there.
func (o Options) moved(p string) string {
	if rest, ok := strings.CutPrefix(p, o.Home); ok && o.Home != "" && o.HomeThere != "" && (rest == "" || rest[0] == '/') {
		return o.HomeThere + rest
	}
	return p
}

// fileName is how the capture names a folder in a file's name.
func fileName(folder string) string {
	b := []byte(folder)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			b[i] = '_'
		}
	}
	return string(b)
}

func lines(b []byte) []string {
	var out []string
	for l := range bytes.Lines(b) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			out = append(out, remote.Clean(string(l)))
		}
	}
	return out
}

// system compares what is not installed by a package manager.
func (r *Report) system(was, is Files) {
	read := func(f Files) map[string]string {
		out := map[string]string{}
		for _, l := range lines(f["system.txt"]) {
			k, v, ok := strings.Cut(l, ": ")
			if !ok {
				continue
			}
			if k == "gpu" { // index, name, driver, memory: several cards are one line here
				if parts := strings.Split(v, ", "); len(parts) > 1 {
					v = parts[1]
				}
				if out[k] != "" {
					v = out[k] + ", " + v
				}
			}
			out[k] = v
		}
		return out
	}
	a, b := read(was), read(is)
	for _, k := range []string{"os", "gpu", "driver supports cuda", "cuda toolkit", "cuda", "python", "gcc"} {
		if a[k] != "" && a[k] != b[k] {
			r.Differs = append(r.Differs, Difference{k, a[k], b[k]})
		}
	}
	have := map[string]bool{}
	for _, n := range lines(is["env-names.txt"]) {
		have[n] = true
	}
	var names []string
	for _, n := range lines(was["env-names.txt"]) {
		if !have[n] && !ofLogin.MatchString(n) {
			names = append(names, n)
		}
	}
	if len(names) > 0 {
		r.Differs = append(r.Differs, Difference{"variables", strings.Join(names, " "), ""})
	}
}

// ofLogin are variables that each login, terminal or container sets anew.
var ofLogin = regexp.MustCompile(`^(_|SSH_.*|PWD|OLDPWD|SHLVL|LS_COLORS|TERM.*|XDG_.*|TMUX.*|HOSTNAME|COLUMNS|LINES|MAIL|LOGNAME|LESS.*|DBUS_.*|LC_.*|LANG|LANGUAGE|RENTOP_.*|PYTHONDONTWRITEBYTECODE|PIP_DISABLE_PIP_VERSION_CHECK)$`)

// apt lists what a person installed by hand.
func (r *Report) apt(was, is Files, o Options) {
	if len(was["apt-manual.txt"]) == 0 {
		return
	}
	have := map[string]bool{}
	for _, n := range lines(is["apt-manual.txt"]) {
		have[n] = true
	}
	for _, l := range lines(is["dpkg.txt"]) {
		n, _, _ := strings.Cut(l, " ")
		n, _, _ = strings.Cut(n, ":")
		have[n] = true
	}
	s := Step{Tool: "apt"}
	var odd []string
	for _, n := range lines(was["apt-manual.txt"]) {
		bare, _, _ := strings.Cut(n, ":")
		switch {
		case have[n] || have[bare] || ofMachine.MatchString(n):
		case !aptName.MatchString(n):
			odd = append(odd, n)
		default:
			s.Missing = append(s.Missing, n)
		}
	}
	for _, n := range odd {
		r.Cannot = append(r.Cannot, "apt: "+n+": it is no package's name")
	}
	switch {
	case len(s.Missing) == 0:
		return
	case is["apt-manual.txt"] == nil:
		r.Cannot = append(r.Cannot, "apt: "+strings.Join(s.Missing, " ")+": there is no apt there")
		return
	}
	s.Command = "apt-get install -y " + strings.Join(s.Missing, " ")
	if !o.Root {
		s.Command = "sudo " + s.Command
	}
	r.Steps = append(r.Steps, s)
}

var (
	aptName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.:-]*$`)
	// ofMachine are kernels and drivers: they are the machine's, not the work's.
	ofMachine = regexp.MustCompile(`^(linux-(image|headers|modules|generic|tools)|nvidia-(driver|dkms|kernel|utils)|libnvidia-|xserver-xorg-video-nvidia|grub-|shim-)`)
)

// conda compares environments by the URLs of what is in them.
func (r *Report) conda(was, is Files, o Options) {
	for _, l := range lines(was["conda-envs.txt"]) {
		i := strings.Index(l, "/")
		if i < 0 || l[0] == '#' {
			continue
		}
		folder := l[i:]
		list := was["conda-list-"+fileName(folder)+".txt"]
		if list == nil {
			continue
		}
		there := o.moved(folder)
		exists := is["conda-list-"+fileName(there)+".txt"]
		have := map[string]bool{}
		for _, u := range lines(exists) {
			have[condaName(u)] = true
		}
		s := Step{Tool: "conda", Where: there, Runs: true, Input: "conda-" + fileName(there) + ".txt"}
		text := []string{"@EXPLICIT"}
		for _, u := range lines(list) {
			if u[0] == '#' || u[0] == '@' || have[condaName(u)] {
				continue
			}
			if strings.Contains(u, "***@") {
				r.Cannot = append(r.Cannot, "conda: "+condaName(u)+": its address held a credential, which is not kept")
				continue
			}
			s.Missing = append(s.Missing, condaName(u))
			text = append(text, u)
		}
		if len(s.Missing) == 0 {
			continue
		}
		if is["conda-envs.txt"] == nil {
			r.Cannot = append(r.Cannot, "conda: there is none there; "+there+" needs "+count(len(s.Missing), "package"))
			continue
		}
		verb := "create"
		if exists != nil {
			verb = "install"
		}
		s.Content = []byte(strings.Join(text, "\n") + "\n")
		s.Command = "conda " + verb + " -y -p " + remote.Quote(there) + " --file " + remote.Quote(path.Join(o.Dir, s.Input))
		r.Steps = append(r.Steps, s)
	}
}

// condaName is a package of an explicit list: its file's name.
func condaName(url string) string {
	url, _, _ = strings.Cut(url, "#")
	name := path.Base(url)
	for _, s := range []string{".conda", ".tar.bz2"} {
		name = strings.TrimSuffix(name, s)
	}
	return name
}

// sorted is the list in the order of a person.
func sorted(list []string) []string {
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return list
}
