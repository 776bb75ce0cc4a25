// Our own reading of ssh_config(5), for computers without OpenSSH and configs
// that it refuses: an unknown keyword is passed over, never an error.

package remote

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
)

const (
	maxIncludes   = 16      // depth, as in OpenSSH
	maxConfigFile = 4 << 20 // bytes
)

// configReader evaluates config files for one host: the first value of a keyword
// counts, except for those that collect.
type configReader struct {
	target    Target
	o         ResolveOptions
	set       settings
	notes     []string
	host      string // what Host and Match host look at
	final     bool   // the second pass, asked for by Match final
	wantFinal bool
	noted     map[string]bool
}

func newConfigReader(t Target, o ResolveOptions) *configReader {
	c := &configReader{target: t, o: o, set: settings{}, host: t.Host, noted: map[string]bool{}}
	if t.User != "" {
		c.set["user"] = []string{t.User}
	}
	if t.Port != 0 {
		c.set["port"] = []string{strconv.Itoa(t.Port)}
	}
	for k, v := range t.Options {
		c.set[k] = []string{v}
	}
	return c
}

// collects are the keywords whose every value counts.
var collects = map[string]bool{"identityfile": true, "certificatefile": true}

func (c *configReader) read() error {
	c.pass()
	if c.wantFinal {
		c.final = true
		c.host = strings.ToLower(c.hostname())
		c.set["hostname"] = []string{c.host}
		c.pass()
	}
	c.set["hostname"] = []string{strings.ToLower(c.hostname())}
	return nil
}

func (c *configReader) pass() {
	for _, f := range configFiles(c.o) {
		active := true
		c.file(f, &active, filepath.Dir(f), 0)
	}
}

// configFiles are the person's config and the system's, as ssh reads them.
func configFiles(o ResolveOptions) []string {
	if o.ConfigFile != "" {
		return []string{o.ConfigFile}
	}
	system := "/etc/ssh/ssh_config"
	if runtime.GOOS == "windows" {
		system = filepath.Join(os.Getenv("ProgramData"), "ssh", "ssh_config")
	}
	return []string{filepath.Join(o.Home, ".ssh", "config"), system}
}

// hostname is HostName with its tokens, or the host as written.
func (c *configReader) hostname() string {
	h := c.set.first("hostname")
	if h == "" {
		return c.host
	}
	return strings.NewReplacer("%%", "%", "%h", c.host).Replace(h)
}

func (c *configReader) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !c.noted[n] {
		c.noted[n] = true
		c.notes = append(c.notes, n)
	}
}

// file reads one file. active says whether lines count now; a Host or Match in an
// included file ends with that file.
func (c *configReader) file(path string, active *bool, dir string, depth int) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return
	}
	if fi.Size() > maxConfigFile {
		c.note("%s is too large to be an ssh_config and was not read", path)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		c.note("%s could not be read: %v", path, err)
		return
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		key, value := splitKeyword(in.Text())
		switch key {
		case "":
		case "host":
			*active = matchPatterns(splitArgs(value), c.host)
		case "match":
			*active = c.match(splitArgs(value), path)
		case "include":
			if *active {
				c.include(value, dir, depth)
			}
		default:
			if *active {
				c.value(key, value)
			}
		}
	}
	if err := in.Err(); err != nil {
		c.note("%s was read in part: %v", path, err)
	}
}

func (c *configReader) include(value, dir string, depth int) {
	if depth >= maxIncludes {
		c.note("an Include of more than %d levels was not followed", maxIncludes)
		return
	}
	for _, f := range c.included(value, dir) {
		inner := true
		c.file(f, &inner, dir, depth+1)
	}
}

// included are the files that an Include names: relative to ~/.ssh, or to the
// system's folder in the system's file.
func (c *configReader) included(value, dir string) []string {
	var files []string
	x := expander{home: c.o.Home}
	for _, pattern := range splitArgs(value) {
		pattern = x.path(pattern)
		if !filepath.IsAbs(pattern) {
			base := filepath.Join(c.o.Home, ".ssh")
			if strings.HasPrefix(dir, "/etc/ssh") {
				base = dir
			}
			pattern = filepath.Join(base, pattern)
		}
		found, _ := filepath.Glob(pattern) // sorted
		files = append(files, found...)
	}
	return files
}

func (c *configReader) value(key, value string) {
	args := splitArgs(value)
	if len(args) == 0 {
		return
	}
	switch {
	case key == "proxycommand", key == "proxyjump":
		// The first of the two decides; either excludes the other.
		if c.set.first("proxycommand") == "" && c.set.first("proxyjump") == "" {
			c.set[key] = []string{strings.TrimSpace(value)}
		}
	case collects[key]:
		c.set[key] = append(c.set[key], args[0])
	case c.set[key] == nil && (key == "userknownhostsfile" || key == "globalknownhostsfile"):
		c.set[key] = []string{value}
	case c.set[key] == nil:
		c.set[key] = []string{args[0]}
	}
}

// match evaluates a Match line. A criterion that would run a program or that is
// unknown does not match, and is said.
func (c *configReader) match(args []string, path string) bool {
	result := len(args) > 0
	for i := 0; i < len(args); i++ {
		name, negate := strings.CutPrefix(strings.ToLower(args[i]), "!")
		name, inline, hasInline := strings.Cut(name, "=")
		value := inline
		if hasInline {
			value = args[i][strings.IndexByte(args[i], '=')+1:]
		}
		var ok bool
		switch name {
		case "all":
			ok = true
		case "canonical":
			ok = c.final
		case "final":
			c.wantFinal = c.wantFinal || !c.final
			ok = c.final
		default:
			if !hasInline {
				if i++; i >= len(args) {
					return false
				}
				value = args[i]
			}
			known := true
			if ok, known = c.criterion(name, value); !known {
				c.note("%s: `Match %s` was passed over", path, name)
				return false
			}
		}
		if ok == negate {
			result = false
		}
	}
	return result
}

func (c *configReader) criterion(name, value string) (ok, known bool) {
	patterns := strings.Split(value, ",")
	switch name {
	case "host":
		return matchPatterns(patterns, c.hostname()), true
	case "originalhost":
		return matchPatterns(patterns, c.target.Host), true
	case "user":
		u := c.set.first("user")
		if u == "" {
			u = localUser()
		}
		return matchPatterns(patterns, u), true
	case "localuser":
		return matchPatterns(patterns, localUser()), true
	case "tagged":
		return matchPatterns(patterns, c.set.first("tag")), true
	}
	return false, false // exec, localnetwork, …
}

// splitKeyword splits a line into its lower-case keyword and the rest; comments
// and empty lines have no keyword.
func splitKeyword(line string) (key, value string) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
	if line == "" || line[0] == '#' {
		return "", ""
	}
	i := strings.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == '=' || r == '"' })
	if i < 0 {
		return strings.ToLower(line), ""
	}
	value = strings.TrimSpace(line[i:])
	if rest, ok := strings.CutPrefix(value, "="); ok {
		value = strings.TrimSpace(rest)
	}
	return strings.ToLower(line[:i]), value
}

// splitArgs splits as OpenSSH's argv_split: both kinds of quotes, a backslash
// before a quote, a space or itself, and a comment after a space.
func splitArgs(s string) []string {
	var args []string
	var b strings.Builder
	in := false
	var quote byte
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case ch == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\'' || s[i+1] == '\\' || quote == 0 && s[i+1] == ' '):
			i++
			b.WriteByte(s[i])
			in = true
		case quote != 0 && ch == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(ch)
		case ch == '"' || ch == '\'':
			quote, in = ch, true
		case ch == ' ' || ch == '\t':
			if in {
				args = append(args, b.String())
				b.Reset()
			}
			in = false
		case ch == '#' && !in:
			return args
		default:
			b.WriteByte(ch)
			in = true
		}
	}
	if in && quote == 0 {
		args = append(args, b.String())
	}
	return args
}

// matchPatterns is true where one pattern matches and no negated one does. As in
// OpenSSH, case counts.
func matchPatterns(patterns []string, s string) bool {
	found := false
	for _, p := range patterns {
		p, negated := strings.CutPrefix(strings.TrimSpace(p), "!")
		if matchPattern(p, s) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// matchPattern matches * and ?, in time bounded by len(p)·len(s).
func matchPattern(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si < len(s) {
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, si
			pi++
		case pi < len(p) && (p[pi] == '?' || p[pi] == s[si]):
			pi++
			si++
		case star >= 0:
			mark++
			pi, si = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(p[pi:], "*") == ""
}

// expander fills in ssh_config's tokens, ~ and ${ENV}.
type expander struct {
	e        Endpoint
	original string
	home     string
}

func (x expander) tokens(s string) string {
	host, _ := os.Hostname()
	short, _, _ := strings.Cut(host, ".")
	alias := x.e.HostKeyAlias
	if alias == "" {
		alias = x.original
	}
	return strings.NewReplacer("%%", "%", "%h", x.e.Host, "%p", strconv.Itoa(x.e.Port), "%r", x.e.User, "%n", x.original,
		"%u", localUser(), "%d", x.home, "%l", host, "%L", short, "%i", strconv.Itoa(os.Getuid()), "%k", alias).Replace(s)
}

// path expands a file name.
func (x expander) path(s string) string {
	s = expandEnv(s)
	if s == "~" || strings.HasPrefix(s, "~/") || strings.HasPrefix(s, `~\`) {
		s = x.home + s[1:]
	}
	return filepath.FromSlash(x.tokens(s))
}

// expandEnv fills in ${NAME}; a bare $ is a letter like any other.
func expandEnv(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		name, after, closed := strings.Cut(rest, "}")
		b.WriteString(before)
		if !ok || !closed {
			b.WriteString(s[len(before):])
			return b.String()
		}
		b.WriteString(os.Getenv(name))
		s = after
	}
}

// configStamp changes when any file of the config does. It is of no use where a
// Match exec decides, then cacheable is false.
func configStamp(o ResolveOptions) (stamp string, cacheable bool) {
	var b strings.Builder
	cacheable = true
	var visit func(path, dir string, depth int)
	visit = func(path, dir string, depth int) {
		fi, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%s -\n", path)
			return
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, fi.Size(), fi.ModTime().UnixNano())
		data, err := os.ReadFile(path)
		if err != nil || len(data) > maxConfigFile || depth > maxIncludes {
			cacheable = false
			return
		}
		for line := range strings.Lines(string(data)) {
			switch key, value := splitKeyword(line); key {
			case "match":
				cacheable = cacheable && !strings.Contains(strings.ToLower(value), "exec") && !strings.Contains(strings.ToLower(value), "localnetwork")
			case "include":
				c := configReader{o: o}
				for _, f := range c.included(value, dir) {
					visit(f, dir, depth+1)
				}
			}
		}
	}
	for _, f := range configFiles(o) {
		visit(f, filepath.Dir(f), 0)
	}
	return b.String(), cacheable
}
