// What a person pastes: the login line of a platform, read without running
// anything that it says.

package remote

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Target is what a person wrote, before ssh_config.
type Target struct {
	User     string            // "" : ssh_config or the local login decides
	Host     string            // a name, an address or an alias of ssh_config; no brackets
	Port     int               // 0: ssh_config or 22
	Identity []string          // -i files as written
	Jump     string            // -J as written; "none" overrides ssh_config
	Options  map[string]string // -o options that matter, lower-case names; nil where none
}

// keptOptions are the -o options that change where or as whom we log in. The
// others are either refused or of no use here, and are dropped.
var keptOptions = map[string]bool{
	"hostname": true, "hostkeyalias": true, "identitiesonly": true, "connecttimeout": true,
}

// refusedOptions would run a program or load a library of the pasted line's
// choice on this computer.
var refusedOptions = map[string]bool{
	"proxycommand": true, "localcommand": true, "permitlocalcommand": true, "knownhostscommand": true,
	"pkcs11provider": true, "securitykeyprovider": true, "xauthlocation": true, "include": true, "match": true,
}

const (
	maxLine         = 4096
	flagsWithValue  = "BbcDEeFIiJLlmoOpPQRSWw"
	flagsWithout    = "46AaCfGgKkMNnqsTtVvXxYy"
	trailingOfHosts = ",;，。；、"
)

// ParseTarget reads the line that a platform gives: `ssh -p 41237 root@host`,
// `ssh://user@host:22`, `user@host:port`, `[::1]:22` or the alias of an
// ssh_config. A prompt before it and words after it are ignored. Options that
// would run something on this computer are refused.
func ParseTarget(line string) (Target, error) {
	t, err := parseTarget(line)
	if err != nil {
		return Target{}, fmt.Errorf("this is not a login that can be used: %w", err) // the line may hold a password
	}
	return t, nil
}

func parseTarget(line string) (Target, error) {
	if len(line) > maxLine {
		return Target{}, fmt.Errorf("it is longer than %d bytes", maxLine)
	}
	words, err := splitWords(loginLine(line))
	if err != nil {
		return Target{}, err
	}
	named := false
	for i, w := range words { // sshpass -p x ssh …, $ ssh …, Login: ssh …
		if w = strings.ToLower(w); w == "ssh" || w == "ssh.exe" || strings.HasSuffix(w, "/ssh") || strings.HasSuffix(w, ":ssh") || strings.HasSuffix(w, "：ssh") {
			words, named = words[i+1:], true
			break
		}
	}
	for len(words) > 0 && (words[0] == "$" || words[0] == "#" || words[0] == "%" || words[0] == ">") {
		words = words[1:]
	}
	var t Target
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		if w == "--" {
			continue
		}
		if len(w) > 1 && w[0] == '-' {
			if words, err = t.flags(w[1:], words); err != nil {
				return Target{}, err
			}
			continue
		}
		if t.Host != "" {
			if !named && t.User == "" && t.Port == 0 {
				return Target{}, fmt.Errorf("%q is no login line: write ssh -p PORT user@host, user@host:PORT, or one alias of your ssh_config", Short(line, 60))
			}
			break // a remote command, or what the platform wrote after the line
		}
		if err := t.destination(w); err != nil {
			return Target{}, err
		}
	}
	if t.Host == "" {
		return Target{}, errors.New("it names no host; paste the whole line, for example: ssh -p 41237 root@host")
	}
	return t, nil
}

// loginLine picks the line that holds the login from pasted text, with the
// typography that web pages put into it undone.
func loginLine(s string) string {
	s = strings.NewReplacer("\\\r\n", " ", "\\\n", " ", "\u00a0", " ", "\u3000", " ", "\u2013", "-", "\u2014", "-",
		"\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'", "`", "").Replace(s)
	first := ""
	for l := range strings.Lines(s) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "ssh ") || strings.Contains(l, " ssh ") || strings.Contains(l, "ssh://") {
			return l
		}
		if first == "" {
			first = l
		}
	}
	return first
}

// splitWords splits as a shell does, without expanding anything. A backslash
// before a letter or a dot stays: it is a Windows path.
func splitWords(s string) ([]string, error) {
	var words []string
	var b strings.Builder
	var quote rune
	in := false
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		switch {
		case r == '\\' && quote != '\'' && i+1 < len(rs) && escapes(rs[i+1], quote):
			i++
			b.WriteRune(rs[i])
			in = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case unicode.IsSpace(r):
			if in {
				words = append(words, b.String())
				b.Reset()
			}
			in = false
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote (%c) is not closed", quote)
	}
	if in {
		words = append(words, b.String())
	}
	return words, nil
}

func escapes(next, quote rune) bool {
	if quote == '"' {
		return next == '"' || next == '\\' || next == '$'
	}
	return !unicode.IsLetter(next) && !unicode.IsDigit(next) && next != '.' && next != '_'
}

// flags reads one word of flags (without its dash); rest are the words after it.
func (t *Target) flags(w string, rest []string) ([]string, error) {
	for i, r := range w {
		switch {
		case strings.ContainsRune(flagsWithout, r):
			continue
		case !strings.ContainsRune(flagsWithValue, r):
			return nil, fmt.Errorf("ssh has no option -%c", r)
		}
		value := w[i+1:]
		if value == "" {
			if len(rest) == 0 {
				return nil, fmt.Errorf("-%c needs a value", r)
			}
			value, rest = rest[0], rest[1:]
		}
		return rest, t.flag(r, value)
	}
	return rest, nil
}

func (t *Target) flag(r rune, value string) error {
	switch r {
	case 'p', 'P': // -P is scp's; people mix them up
		return t.setPort(value)
	case 'l':
		return t.setUser(value)
	case 'i':
		return t.addIdentity(value)
	case 'J':
		return t.setJump(value)
	case 'F', 'I':
		return fmt.Errorf("-%c would read programs to run from %q; put what it needs into your own ssh_config and use the alias", r, Short(value, 40))
	case 'o':
		return t.option(value)
	}
	return nil // forwards, ciphers, logs: not part of where to log in
}

func (t *Target) option(o string) error {
	i := strings.IndexAny(o, "= \t")
	if i <= 0 {
		return fmt.Errorf("-o %s has no value", Short(o, 40))
	}
	name := strings.ToLower(o[:i])
	value := strings.Trim(strings.TrimLeft(o[i:], "= \t"), `"`)
	switch name {
	case "port":
		return t.setPort(value)
	case "user":
		return t.setUser(value)
	case "identityfile":
		return t.addIdentity(value)
	case "proxyjump":
		return t.setJump(value)
	case "proxycommand":
		if strings.EqualFold(value, "none") {
			return nil
		}
	case "permitlocalcommand":
		if strings.EqualFold(value, "no") {
			return nil
		}
	}
	if refusedOptions[name] {
		return fmt.Errorf("-o %s would run a program on this computer; if you trust it, put it into your own ssh_config and use the alias", Short(o[:i], 40))
	}
	if !keptOptions[name] {
		return nil
	}
	if name == "hostname" || name == "hostkeyalias" {
		value = strings.Trim(value, "[]")
		if err := checkHost(value); err != nil {
			return err
		}
	}
	if strings.IndexFunc(value, unicode.IsControl) >= 0 || value == "" {
		return fmt.Errorf("-o %s has a value that cannot be used", name)
	}
	if t.Options == nil {
		t.Options = map[string]string{}
	}
	if _, set := t.Options[name]; !set { // as in ssh: the first value counts
		t.Options[name] = value
	}
	return nil
}

func (t *Target) setPort(s string) error {
	p, err := parsePort(s)
	if err == nil && t.Port == 0 {
		t.Port = p
	}
	return err
}

func (t *Target) setUser(s string) error {
	if err := checkUser(s); err != nil {
		return err
	}
	if t.User == "" {
		t.User = s
	}
	return nil
}

func (t *Target) addIdentity(s string) error {
	if s == "" || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return errors.New("-i names no file")
	}
	t.Identity = append(t.Identity, s)
	return nil
}

func (t *Target) setJump(s string) error {
	if !strings.EqualFold(s, "none") {
		for hop := range strings.SplitSeq(s, ",") {
			if _, _, _, err := splitDestination(hop); err != nil {
				return fmt.Errorf("-J %s: %w", Short(s, 60), err)
			}
		}
	} else {
		s = "none"
	}
	if t.Jump == "" {
		t.Jump = s
	}
	return nil
}

func (t *Target) destination(w string) error {
	user, host, port, err := splitDestination(strings.TrimRight(w, trailingOfHosts))
	if err != nil {
		return err
	}
	t.Host = host
	if t.User == "" {
		t.User = user
	}
	if t.Port == 0 {
		t.Port = port
	}
	return nil
}

// splitDestination reads [ssh://][user@]host[:port][/…].
func splitDestination(s string) (user, host string, port int, err error) {
	rest := s
	if len(s) > 6 && strings.EqualFold(s[:6], "ssh://") {
		rest, _, _ = strings.Cut(s[6:], "/")
		if u, _, ok := strings.Cut(rest, "@"); ok && strings.Contains(u, ":") {
			return "", "", 0, errors.New("it holds a password; leave it out, it is asked for and never stored in the clear")
		}
	} else if strings.Contains(s, "://") {
		return "", "", 0, fmt.Errorf("%s is not an ssh address", Short(s, 60))
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, rest = rest[:i], rest[i+1:]
		if err = checkUser(user); err != nil {
			return "", "", 0, err
		}
	}
	host = rest
	switch {
	case strings.HasPrefix(rest, "["):
		h, after, ok := strings.Cut(rest[1:], "]")
		if !ok || after != "" && after[0] != ':' {
			return "", "", 0, fmt.Errorf("%s: the bracket is not closed", Short(s, 60))
		}
		host, rest = h, after
	case strings.Count(rest, ":") == 1:
		host, _, _ = strings.Cut(rest, ":")
		rest = rest[len(host):]
	default:
		rest = "" // a name, or IPv6 without a port
	}
	if len(rest) > 1 {
		if port, err = parsePort(rest[1:]); err != nil {
			return "", "", 0, err
		}
	}
	return user, host, port, checkHost(host)
}

func parsePort(s string) (int, error) {
	p, err := strconv.Atoi(s)
	if err != nil || p < 1 || p > 65535 {
		return 0, fmt.Errorf("%q is not a port (1 to 65535)", Short(s, 20))
	}
	return p, nil
}

// checkHost and checkUser keep out what a shell would read as more than a word:
// a ProxyCommand may hold %h and %r (CVE-2023-51385).
func checkHost(h string) error {
	bad := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_:%", r)
	}
	if h == "" || len(h) > 255 || h[0] == '-' || strings.IndexFunc(h, bad) >= 0 {
		return fmt.Errorf("%q is not a host name", Short(h, 60))
	}
	return nil
}

func checkUser(u string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar || strings.ContainsRune("'\"`$;&<>|(){}\\!*?[]:", r)
	}
	if u == "" || len(u) > 255 || u[0] == '-' || strings.IndexFunc(u, bad) >= 0 {
		return fmt.Errorf("%q is not a user name", Short(u, 60))
	}
	return nil
}

// String writes t as a canonical ssh line; ParseTarget reads it back.
func (t Target) String() string {
	var b strings.Builder
	b.WriteString("ssh")
	word := func(ws ...string) {
		for _, w := range ws {
			b.WriteString(" " + w)
		}
	}
	if t.Port != 0 {
		word("-p", strconv.Itoa(t.Port))
	}
	for _, i := range t.Identity {
		word("-i", Quote(i))
	}
	if t.Jump != "" {
		word("-J", t.Jump)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Options)) {
		word("-o", Quote(k+"="+t.Options[k]))
	}
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.User != "" {
		host = t.User + "@" + host
	}
	word(host)
	return b.String()
}

// joinPort is net.JoinHostPort with a number.
func joinPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
