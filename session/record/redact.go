package record

// Names, hosts, users, paths and commands as stand-ins: the same for the same, so
// that a recording can be followed by who was not there. What is not known to be
// harmless is hidden: a new phrase or a tool's own words never slip through.

import (
	"fmt"
	"regexp"
	"strings"

	"rentop/remote/gpu"
	"rentop/session"
)

// stands is what hides a recording's words. Nil hides nothing.
type stands struct {
	as map[string]string // kind and word to stand-in
	n  map[string]int    // how many there are of a kind
}

func newStands() *stands { return &stands{map[string]string{}, map[string]int{}} }

// of is the stand-in of a word of a kind.
func (h *stands) of(kind, word string) string {
	if h == nil || word == "" {
		return word
	}
	key := kind + "\x00" + word
	if h.as[key] == "" {
		h.n[kind]++
		h.as[key] = fmt.Sprintf("%s-%d", kind, h.n[kind])
	}
	return h.as[key]
}

func (h *stands) instance(s string) string { return h.of("instance", s) }
func (h *stands) job(s string) string      { return h.of("job", s) }
func (h *stands) user(s string) string     { return h.of("user", s) }
func (h *stands) command(s string) string  { return h.of("command", s) }

// path leaves the root and the home as they are: everybody has them.
func (h *stands) path(s string) string {
	if h == nil || s == "/" || s == "~" || s == "." {
		return s
	}
	return h.of("path", s)
}

// address hides user and host of user@host:port, and leaves no port.
func (h *stands) address(s string) string {
	if h == nil || s == "" {
		return s
	}
	user, host, has := strings.Cut(s, "@")
	if !has {
		user, host = "", s
	}
	if i := strings.LastIndexByte(host, ':'); i > 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	if user == "" {
		return h.of("host", host)
	}
	return h.user(user) + "@" + h.of("host", host)
}

// learnt are the kinds whose words are looked for in texts.
var learnt = []string{"instance", "job", "path", "user", "command", "host"}

// harmless is a number with its unit, a time, an amount of money.
var harmless = regexp.MustCompile(`^(?:[-+~≈<>]?[¥$€£]?[0-9][0-9.,:/T-]*(?:%|Z|°C|[kMGTP]?i?B|/h|/s)?|%|°C|[kMGTP]?i?B(?:/s)?|ms|s|min|h|d|CNY|USD|EUR|GBP|JPY|HKD|SGD|\?)$`)

// arg is an argument of a phrase: figures stay, words that have a stand-in get it.
func (h *stands) arg(s string) string {
	if h == nil {
		return s
	}
	for _, kind := range learnt {
		if as := h.as[kind+"\x00"+s]; as != "" {
			return as
		}
	}
	for _, w := range strings.Fields(s) {
		if !harmless.MatchString(w) {
			if strings.ContainsAny(s, `/\~`) && !strings.Contains(s, " ") {
				return h.path(s)
			}
			return h.of("text", s)
		}
	}
	return s
}

// text is a tool's or a library's own words: all of it hidden.
func (h *stands) text(s string) string {
	if h == nil {
		return s
	}
	return h.of("text", s)
}

// id is an alarm's: "disk /data" keeps its first word.
func (h *stands) id(s string) string {
	name, what, has := strings.Cut(s, " ")
	if h == nil || !has {
		return s
	}
	if rest := strings.Fields(what); len(rest) == 3 && rest[1] == "gpu" { // xid 31 gpu 0
		return s
	}
	return name + " " + h.arg(what)
}

// learn gives stand-ins to all names of a view before any text is hidden.
func (h *stands) learn(v *session.FleetView) {
	if h == nil {
		return
	}
	for i := range v.Sessions {
		s := &v.Sessions[i]
		h.instance(s.Name)
		for _, j := range s.Jobs {
			h.job(j.Name)
			h.command(j.Command)
			h.path(j.Dir)
		}
		if s.Facts != nil {
			h.user(s.Facts.User)
			h.path(s.Facts.Home)
		}
		if g := s.Guard; g != nil {
			h.command(g.Save)
			if g.Then != session.ThenStop && g.Then != session.ThenNothing {
				h.command(g.Then)
			}
		}
		if s.Sample != nil {
			for _, p := range s.Sample.Processes {
				h.user(p.User)
				h.command(p.Command)
			}
		}
	}
}

// sample is a copy without words of the person's.
func (h *stands) sample(s *gpu.Sample) gpu.Sample {
	if h == nil {
		return *s
	}
	out := *s
	out.Source, out.Driver = h.source(s.Source), h.machine(s.Driver)
	out.GPUs = append([]gpu.GPU(nil), s.GPUs...)
	for i := range out.GPUs {
		h.card(&out.GPUs[i])
	}
	out.Processes = append([]gpu.Process(nil), s.Processes...)
	for i := range out.Processes {
		p := &out.Processes[i]
		p.User, p.Command = h.user(p.User), h.command(p.Command)
	}
	out.Host.Disks = append([]gpu.Disk(nil), s.Host.Disks...)
	for i := range out.Host.Disks {
		out.Host.Disks[i].Mount = h.path(out.Host.Disks[i].Mount)
	}
	out.Lesser = h.text(s.Lesser)
	h.reasons(&out)
	return out
}
