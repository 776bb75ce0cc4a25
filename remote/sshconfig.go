// From a Target to an Endpoint: what the person's ssh_config makes of it, asked
// of `ssh -G` where there is an OpenSSH, else worked out by our own reading.

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ResolveOptions say where ssh_config is. The zero value is what ssh itself does.
type ResolveOptions struct {
	ConfigFile string        // instead of ~/.ssh/config and the system's
	Home       string        // instead of the login's home; then ssh -G is not asked
	NoOpenSSH  bool          // do not run ssh -G
	Cache      *ResolveCache // nil: nothing is kept between calls
}

// ResolveCache keeps answers of ssh -G for as long as no ssh_config file changes.
type ResolveCache struct {
	mu sync.Mutex
	m  map[string]cachedAnswer
}

type cachedAnswer struct {
	stamp string
	out   settings
}

// settings are ssh_config's values by lower-case keyword, in the order found.
type settings map[string][]string

func (s settings) first(key string) string {
	if v := s[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (s settings) is(key, want string) bool { return strings.EqualFold(s.first(key), want) }

const (
	maxHops        = 8
	resolveTimeout = 10 * time.Second
)

// Resolve applies ssh_config to t and to every host that it is reached through.
// A config that cannot be read in part is followed as far as it can be; Notes
// says what was left out.
func Resolve(ctx context.Context, t Target, o ResolveOptions) (Endpoint, error) {
	if o.Home == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Endpoint{}, fmt.Errorf("no home folder to find .ssh in: %w", err)
		}
		o.Home = home
	}
	// ssh looks into the home of the password file, whatever HOME says.
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); o.ConfigFile == "" && err == nil && u.HomeDir != o.Home {
		o.NoOpenSSH = true
	}
	e, err := resolve(ctx, t, o, 0)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%s: %w", t.Host, err)
	}
	return e, nil
}

func resolve(ctx context.Context, t Target, o ResolveOptions, depth int) (Endpoint, error) {
	if depth > maxHops {
		return Endpoint{}, fmt.Errorf("ssh_config leads through more than %d jump hosts: a ProxyJump points back at itself", maxHops)
	}
	if err := checkHost(t.Host); err != nil {
		return Endpoint{}, err
	}
	set, notes, err := readSettings(ctx, t, o)
	if err != nil {
		return Endpoint{}, err
	}
	e, err := endpoint(t, set, o.Home)
	if err != nil {
		return Endpoint{}, err
	}
	e.Notes = append(notes, e.Notes...)
	jump := set.first("proxyjump")
	if t.Jump != "" {
		jump = t.Jump
	}
	if strings.EqualFold(jump, "none") {
		jump = ""
	}
	if jump == "" {
		return e, nil
	}
	e.ProxyCommand = ""
	e.Jump, err = resolveJump(ctx, jump, e, o, depth)
	return e, err
}

// resolveJump resolves a ProxyJump list. As in ssh, only the first hop's own
// ProxyJump counts; a host that would jump through itself is reached directly.
func resolveJump(ctx context.Context, list string, e Endpoint, o ResolveOptions, depth int) ([]Endpoint, error) {
	var hops []Endpoint
	for i, spec := range strings.Split(list, ",") {
		u, h, p, err := splitDestination(strings.TrimSpace(spec))
		if err != nil {
			return nil, fmt.Errorf("ProxyJump %s: %w", Short(list, 60), err)
		}
		if h == e.Alias || h == e.Host && (p == 0 || p == e.Port) {
			continue
		}
		t := Target{User: u, Host: h, Port: p}
		if i > 0 {
			t.Jump = "none"
		}
		hop, err := resolve(ctx, t, o, depth+1)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", h, err)
		}
		hops = append(hops, hop.Jump...)
		hop.Jump = nil
		if i > 0 {
			hop.ProxyCommand = ""
		}
		hops = append(hops, hop)
	}
	return hops, nil
}

func readSettings(ctx context.Context, t Target, o ResolveOptions) (settings, []string, error) {
	if !o.NoOpenSSH {
		set, err := askOpenSSH(ctx, t, o)
		if err == nil {
			return set, nil, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		// No ssh, or one too old or too strict for this config: read it ourselves.
	}
	c := newConfigReader(t, o)
	if err := c.read(); err != nil {
		return nil, nil, err
	}
	return c.set, c.notes, nil
}

// askOpenSSH runs ssh -G. Its answer is kept while no config file changes, unless
// a `Match exec` decides anew each time.
func askOpenSSH(ctx context.Context, t Target, o ResolveOptions) (settings, error) {
	args := []string{"-G"}
	if o.ConfigFile != "" {
		args = append(args, "-F", o.ConfigFile)
	}
	if t.Port != 0 {
		args = append(args, "-p", strconv.Itoa(t.Port))
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Options)) {
		args = append(args, "-o", k+"="+t.Options[k])
	}
	args = append(args, "--", t.Host)

	key, stamp, cacheable := strings.Join(args, "\x00"), "", false
	if o.Cache != nil {
		stamp, cacheable = configStamp(o)
		if out, ok := o.Cache.get(key, stamp); ok && cacheable {
			return out, nil
		}
	}
	path, err := exec.LookPath("ssh")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	set := settings{}
	for line := range bytes.Lines(out) {
		k, v, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if k != "" {
			set[k] = append(set[k], v)
		}
	}
	if set.first("hostname") == "" {
		return nil, errors.New("ssh -G names no host")
	}
	if cacheable {
		o.Cache.put(key, stamp, set)
	}
	return set, nil
}

func (c *ResolveCache) get(key, stamp string) (settings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.m[key]
	return a.out, ok && a.stamp == stamp
}

func (c *ResolveCache) put(key, stamp string, out settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) > 1000 {
		c.m = map[string]cachedAnswer{}
	}
	c.m[key] = cachedAnswer{stamp, out}
}

// endpoint makes an Endpoint of settings, without its jump hosts.
func endpoint(t Target, set settings, home string) (Endpoint, error) {
	e := Endpoint{Alias: t.Host, User: t.User, Host: set.first("hostname"), Port: t.Port, HostKeyAlias: set.first("hostkeyalias")}
	if e.Host == "" {
		e.Host = t.Host
	}
	e.Host = strings.Trim(e.Host, "[]")
	if err := checkHost(e.Host); err != nil {
		return Endpoint{}, err
	}
	if e.User == "" {
		e.User = set.first("user")
	}
	if e.User == "" {
		e.User = localUser()
	}
	if e.Port == 0 {
		e.Port = 22
		if p := set.first("port"); p != "" {
			n, err := parsePort(p)
			if err != nil {
				return Endpoint{}, err
			}
			e.Port = n
		}
	}
	x := expander{e: e, original: t.Host, home: home}
	e.identities(t, set, x)
	if a := set.first("identityagent"); a != "" && a != "SSH_AUTH_SOCK" {
		e.IdentityAgent = x.path(a)
		if name, ok := strings.CutPrefix(a, "$"); ok {
			e.IdentityAgent = os.Getenv(strings.Trim(name, "{}"))
		}
	}
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		files := set[key]
		if len(files) > 0 {
			files = splitArgs(files[0])
		} else if key[0] == 'u' {
			files = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
		} else {
			files = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
		}
		for _, f := range files {
			if f != "none" {
				e.KnownHosts = append(e.KnownHosts, x.path(f))
			}
		}
	}
	switch strings.ToLower(set.first("stricthostkeychecking")) {
	case "no", "off", "false", "accept-new":
		e.AcceptNew = true
	}
	if s, err := strconv.Atoi(set.first("connecttimeout")); err == nil && s > 0 && s < 3600 {
		e.ConnectTimeout = time.Duration(s) * time.Second
	}
	if cmd := set.first("proxycommand"); cmd != "" && !strings.EqualFold(cmd, "none") {
		if set.is("proxyusefdpass", "yes") {
			return Endpoint{}, errors.New("its ssh_config uses ProxyUseFdpass, which rentop cannot follow; give it a ProxyCommand that copies data, or a ProxyJump")
		}
		e.ProxyCommand = x.tokens(cmd)
	}
	return e, nil
}

func (e *Endpoint) identities(t Target, set settings, x expander) {
	files := set["identityfile"]
	e.DefaultIdentity = true
	for _, f := range files {
		if !slices.Contains(defaultIdentities, filepath.ToSlash(strings.TrimPrefix(x.path(f), x.home+string(filepath.Separator)))) {
			e.DefaultIdentity = false
		}
	}
	if len(t.Identity) > 0 {
		if e.DefaultIdentity {
			files = nil
		}
		e.DefaultIdentity = false
		files = slices.Concat(t.Identity, files)
	}
	if len(files) == 0 {
		for _, f := range defaultIdentities {
			files = append(files, "~/"+f)
		}
	}
	for _, f := range files {
		if p := x.path(f); !strings.EqualFold(f, "none") && !slices.Contains(e.IdentityFiles, p) {
			e.IdentityFiles = append(e.IdentityFiles, p)
		}
	}
	e.IdentitiesOnly = set.is("identitiesonly", "yes") || strings.EqualFold(t.Options["identitiesonly"], "yes")
}

// defaultIdentities are ssh's, the likelier first.
var defaultIdentities = []string{
	".ssh/id_ed25519", ".ssh/id_rsa", ".ssh/id_ecdsa", ".ssh/id_ed25519_sk", ".ssh/id_ecdsa_sk", ".ssh/id_xmss", ".ssh/id_dsa",
}

func localUser() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && u.Username != "" { // as ssh does, whatever USER says
		return u.Username
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username[strings.LastIndexByte(u.Username, '\\')+1:] // DOMAIN\user
	}
	for _, k := range []string{"USER", "LOGNAME", "USERNAME"} {
		if u := os.Getenv(k); u != "" {
			return u
		}
	}
	return "root"
}
