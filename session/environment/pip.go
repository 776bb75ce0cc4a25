package environment

// What pip froze: requirements that an index can serve, and those that none can.

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"rentop/remote"
)

// frozen is one line of pip freeze.
type frozen struct {
	name    string // as PEP 503 compares it
	shown   string
	version string // "" where it is not from an index
	line    string // a requirement
	why     string // why no index serves it; "" where one may
}

// itself is what comes with an environment and is not the work's.
var itself = []string{"pip", "setuptools", "wheel", "distribute", "pkg-resources"}

var (
	pinned   = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)===?([A-Za-z0-9.!+_-]+)$`)
	address  = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*) @ (\S+)$`)
	editable = regexp.MustCompile(`^-e (\S+)$`)
	dashes   = regexp.MustCompile(`[-_.]+`)
	build    = regexp.MustCompile(`\+((?:cu|rocm)[0-9.]+|cpu)$`)
)

// parse reads a line; ok is false for one that is no package.
func parse(l string) (frozen, bool) {
	if m := pinned.FindStringSubmatch(l); m != nil {
		return frozen{name: plain(m[1]), shown: m[1], version: m[2], line: l}, true
	}
	if m := address.FindStringSubmatch(l); m != nil {
		f := frozen{name: plain(m[1]), shown: m[1], line: l}
		switch {
		case strings.HasPrefix(m[2], "file:"):
			f.why = "it was installed from a file there"
		case strings.Contains(m[2], "***@"):
			f.why = "its address held a credential, which is not kept"
		}
		return f, true
	}
	if m := editable.FindStringSubmatch(l); m != nil {
		name := m[1]
		if _, egg, ok := strings.Cut(m[1], "#egg="); ok {
			name, _, _ = strings.Cut(egg, "&")
		}
		f := frozen{name: plain(name), shown: name, line: l}
		switch {
		case strings.Contains(l, "***@"):
			f.why = "its address held a credential, which is not kept"
		case !strings.Contains(m[1], "://"):
			f.why = "it was installed from a folder there; install it from the restored folder: pip install -e FOLDER"
		}
		return f, true
	}
	return frozen{}, false
}

func plain(name string) string { return strings.ToLower(dashes.ReplaceAllString(name, "-")) }

// pip compares two lists. there says whether a pip answered, input is the file that
// the command reads, step what the result is of, and pip how it is called there.
func (r *Report) pip(was, is []byte, there bool, o Options, input string, step Step, pip string) {
	have := map[string]frozen{}
	for _, l := range lines(is) {
		if f, ok := parse(l); ok {
			have[f.name] = f
		}
	}
	var text, indexes []string
	for _, l := range lines(was) {
		f, ok := parse(l)
		if !ok || slices.Contains(itself, f.name) {
			continue
		}
		b, has := have[f.name]
		if has && (b.version == f.version || f.why != "") {
			continue // of what came from a file only the name can be compared
		}
		if f.why != "" {
			r.Cannot = append(r.Cannot, step.Tool+": "+f.shown+": "+f.why)
			continue
		}
		missing := strings.TrimSpace(f.shown + " " + f.version)
		if has {
			missing += fmt.Sprintf(" (there: %s)", orOther(b.version))
		}
		step.Missing = append(step.Missing, missing)
		text = append(text, f.line)
		if m := build.FindStringSubmatch(f.version); m != nil {
			if url := "https://download.pytorch.org/whl/" + m[1]; !slices.Contains(indexes, url) {
				indexes = append(indexes, url)
			}
		}
	}
	switch {
	case len(step.Missing) == 0:
		return
	case !there && step.Where == "":
		r.Cannot = append(r.Cannot, step.Tool+": there is no pip there; it lacks "+count(len(step.Missing), "package"))
		return
	}
	step.Runs, step.Input, step.Content = true, input, []byte(strings.Join(sorted(text), "\n")+"\n")
	sorted(step.Missing)
	step.Command += pip + " install"
	for _, u := range indexes {
		step.Command += " --extra-index-url " + remote.Quote(u)
	}
	step.Command += " -r " + remote.Quote(path.Join(o.Dir, input))
	r.Steps = append(r.Steps, step)
}

func orOther(version string) string {
	if version == "" {
		return "another"
	}
	return version
}

// venvs compares the virtual environments in the login's home.
func (r *Report) venvs(was, is Files, o Options) {
	known := map[string]bool{}
	for _, folder := range lines(was["venvs.txt"]) {
		name := "pip-freeze-" + fileName(folder) + ".txt"
		known[name] = true
		list, ok := was[name]
		if !ok {
			continue
		}
		there := o.moved(folder)
		now, exists := is["pip-freeze-"+fileName(there)+".txt"]
		python := remote.Quote(there + "/bin/python")
		step := Step{Tool: "venv", Where: there}
		if !exists {
			step.Command = "python3 -m venv " + remote.Quote(there) + " && "
		}
		r.pip(list, now, exists, o, "pip-missing-"+fileName(there)+".txt", step, python+" -m pip")
	}
	for name := range was {
		if strings.HasPrefix(name, "pip-freeze-") && !known[name] {
			r.Cannot = append(r.Cannot, "venv: "+name+": its snapshot does not say in which folder it was; the list is in the snapshot's .env folder")
		}
	}
	slices.Sort(r.Cannot)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
