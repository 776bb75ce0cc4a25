// Where a Target leads once ssh_config has been read.

package remote

import (
	"fmt"
	"time"
)

// Endpoint is everything that a connection needs to know, with ssh_config applied
// and every token expanded.
type Endpoint struct {
	Alias string // the host as the person wrote it
	User  string
	Host  string // name or address to dial
	Port  int

	IdentityFiles   []string // key files in the order to try, full paths
	DefaultIdentity bool     // IdentityFiles are ssh's defaults: nobody chose them
	IdentitiesOnly  bool     // offer no other keys of the agent
	IdentityAgent   string   // socket or pipe; "" is $SSH_AUTH_SOCK or the system's, "none" is no agent

	Jump         []Endpoint // hosts to pass through, first hop first
	ProxyCommand string     // from the person's own ssh_config, tokens expanded; "" where none

	HostKeyAlias   string   // the name to look up in KnownHosts; "" is Host and Port
	KnownHosts     []string // the person's and the system's known_hosts
	AcceptNew      bool     // the person's ssh_config accepts unknown keys without asking
	ConnectTimeout time.Duration

	Notes []string // what of ssh_config was not followed, as sentences
}

// Address is user@host:port as dialled.
func (e Endpoint) Address() string { return e.User + "@" + joinPort(e.Host, e.Port) }

// DirectEndpoint is user@host:port without any ssh_config.
func DirectEndpoint(user, host string, port int) Endpoint {
	return Endpoint{Alias: host, User: user, Host: host, Port: port}
}

// Via says through which hosts e is reached, "" where it is reached directly.
func (e Endpoint) Via() string {
	switch {
	case e.ProxyCommand != "":
		return "ProxyCommand"
	case len(e.Jump) == 0:
		return ""
	case len(e.Jump) == 1:
		return e.Jump[0].Address()
	}
	return fmt.Sprintf("%s and %d more", e.Jump[0].Address(), len(e.Jump)-1)
}
