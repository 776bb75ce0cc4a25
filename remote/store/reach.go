// Which address the instance uses.

package store

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"rentop/remote"
)

const reachScript = `IFS= read -r url || exit 1
command -v curl >/dev/null 2>&1 || {
  command -v python3 >/dev/null 2>&1 || { echo "? 000 1"; exit 0; }
  exec python3 -c 'import sys,socket,urllib.parse
u=urllib.parse.urlsplit(sys.argv[1])
try:
    s=socket.create_connection((u.hostname,u.port or (443 if u.scheme=="https" else 80)),4); print(s.getpeername()[0],"200 0"); s.close()
except Exception: print("? 000 7")' "$url"
}
printf 'url = "%s"\n' "$url" | curl -q -g -s -o /dev/null --connect-timeout 4 -m 8 -K - -w '%{remote_ip} %{http_code} '
echo $?
`

// reach finds out whether the instance gets to the internal address, and takes the
// public one where it does not. Any answer will do: a URL for it opens no more than
// any other, and what arrives is proven from here.
func (c *Client) reach(ctx context.Context, r remote.Runner) error {
	if c.place.Internal == "" || c.signer.Load() == c.public {
		return nil
	}
	inner, err := hostOf(c.place.Internal)
	if err != nil {
		return err
	}
	_, reached, err := asked(ctx, r, inner)
	if err == nil && !reached {
		c.signer.Store(c.public)
	}
	return err
}

// asked has the instance connect to a host, and says at which address.
func asked(ctx context.Context, r remote.Runner, host *url.URL) (at netip.Addr, reached bool, err error) {
	var said string
	lines := &lineWriter{each: func(line string) error { said = line; return nil }}
	if err := r.Run(ctx, remote.Cmd{Script: reachScript, Stdin: strings.NewReader(host.Scheme + "://" + host.Host + "/\n"), Stdout: lines}); err != nil {
		return at, false, fmt.Errorf("ask whether the instance reaches %s: %w", host.Host, err)
	}
	words := strings.Fields(said) // address, status, exit code; the first may lack
	n := len(words)
	if n < 2 || words[n-1] != "0" || words[n-2] == "000" {
		return at, false, nil
	}
	if n > 2 {
		at, _ = netip.ParseAddr(words[n-3])
	}
	return at.Unmap(), true, nil
}

// Route says over which address the instance reaches the bucket, and whether that is
// without public traffic.
func (c *Client) Route(ctx context.Context, r remote.Runner) (host string, internal bool, err error) {
	if err := c.reach(ctx, r); err != nil {
		return "", false, err
	}
	s := c.signer.Load()
	host = s.EndpointURL().Host
	switch {
	case s != c.public:
		return host, true, nil
	case !c.place.InRegion:
		return host, false, nil
	case c.place.Endpoint == "" || strings.HasSuffix(s.EndpointURL().Hostname(), ".amazonaws.com"):
		return host, true, nil // at AWS, by the bill and not by the address
	}
	at, _, err := asked(ctx, r, s.EndpointURL())
	return host, within(at), err
}

// shared is the address range of providers' own networks, RFC 6598.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// within says that an address is none of the public network's.
func within(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsValid() && shared.Contains(a)
}
