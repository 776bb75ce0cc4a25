package session

import (
	"path"
	"regexp"
	"strings"
)

// launchers are words that say how something runs, not what.
var launchers = map[string]bool{
	"sudo": true, "env": true, "time": true, "nice": true, "nohup": true, "exec": true, "stdbuf": true, "timeout": true,
	"sh": true, "bash": true, "zsh": true, "python": true, "python2": true, "python3": true, "ipython": true,
	"uv": true, "poetry": true, "conda": true, "mamba": true, "run": true, "torchrun": true, "accelerate": true, "launch": true,
	"deepspeed": true, "mpirun": true, "horovodrun": true, "node": true, "julia": true, "Rscript": true, "jupyter": true,
}

var (
	steps      = regexp.MustCompile(`&&|\|\||[;|\n]`)
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// jobName is what a job is called where the person gives no name: for
// `cd project && CUDA_VISIBLE_DEVICES=0 python -m pkg.train --epochs 3` it is "train".
func jobName(command string) string {
	fallback := ""
	for _, step := range steps.Split(command, -1) {
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		if first := path.Base(words[0]); fallback == "" || fallback == "cd" {
			fallback = first
		}
		if words[0] == "cd" || words[0] == "source" || words[0] == "." || words[0] == "export" || words[0] == "mkdir" || words[0] == "set" {
			continue
		}
		if name := stepName(words); name != "" {
			return name
		}
	}
	return strings.Trim(fallback, `"'`)
}

// stepName is the first word of a step that is neither a launcher, an option nor
// an assignment.
func stepName(words []string) string {
	module := false
	for _, w := range words {
		w = strings.Trim(w, `"'()`)
		switch {
		case w == "-m":
			module = true
		case module:
			return w[strings.LastIndexByte(w, '.')+1:]
		case w == "", strings.HasPrefix(w, "-"), assignment.MatchString(w), launchers[path.Base(w)]:
		default:
			base := path.Base(w)
			return strings.TrimSuffix(base, path.Ext(base))
		}
	}
	return ""
}
