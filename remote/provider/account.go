package provider

// What an account at a provider can tell beyond one instance's state. Each is a
// small interface that a Provider may implement; a type assertion asks for it.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rentop/remote"
)

// Importer lists what the account rents.
type Importer interface {
	// Import lists every instance of the account that is not gone. A list that
	// may be incomplete is an error, never a shorter list.
	Import(ctx context.Context) ([]Instance, error)
}

// Balancer tells what the account has left.
type Balancer interface {
	// Balance returns ErrUnsupported where the provider's API does not tell.
	Balance(ctx context.Context) (Balance, error)
}

// Addresser tells where an instance is reached now. Ports, addresses and
// passwords may be new after each power cycle: ask before each connection.
type Addresser interface {
	// Address returns ErrNoAddress where there is none in the present state.
	Address(ctx context.Context, id string) (Address, error)
}

// Imager tells whether a snapshot can be relied on.
type Imager interface {
	// SnapshotState is Ready only where the provider says that it is complete.
	SnapshotState(ctx context.Context, snapshot string) (SnapshotState, error)
}

// SnapshotState is the provider's word about a snapshot.
type SnapshotState struct {
	Ready  bool
	Failed bool   // it will never be
	Detail string // the provider's own word, cleaned
}

// ErrNoAddress says that an instance has no address now.
var ErrNoAddress = errors.New("it has no address now")

// Instance is one machine as the provider's account lists it. All text is cleaned.
type Instance struct {
	ID, Name string
	Status   Status
	Address  Address // zero where it has none now
	GPU      string  // the provider's name of the card; "" where not told
	GPUs     int     // 0 where not told
	Region   string
	Spot     bool   // may be taken away
	PerHour  string // while it runs, decimal; "" where not told, never 0 because it is stopped
	// WhileStopped is what an hour costs in the stopped state; "" where not told.
	WhileStopped string
	Currency     string
	CreatedAt    time.Time // zero where not told
	Ends         time.Time // when the provider ends the rental by itself; zero where not told
	NoAddress    string    // why Address is zero, "" where that is not told

	read any // a pointer to what its driver read, for its detail
}

// Address is where an instance's sshd is reached.
type Address struct {
	Host string
	Port int // 0 is 22
	User string
	// Password is for the keyring or one connection, never for the config.
	Password Secret
	// ShellOnly is a proxy that passes a shell and neither files nor forwards.
	ShellOnly bool
}

// SSH is the line a person would paste; "" without a host. It holds no password.
func (a Address) SSH() string {
	if a.Host == "" {
		return ""
	}
	at := a.Host
	if a.User != "" {
		at = a.User + "@" + a.Host
	}
	if a.Port == 0 || a.Port == 22 {
		return "ssh " + at
	}
	return fmt.Sprintf("ssh -p %d %s", a.Port, at)
}

// Balance is what is left to spend. Amounts are decimals, "" where not told;
// negative where it is owed.
type Balance struct {
	Cash     string
	Credit   string // vouchers, promotions and prepaid credit, apart from cash
	Currency string
}

// Secret is text that no format verb, JSON or log shows.
type Secret string

func (Secret) String() string               { return "[secret]" }
func (Secret) GoString() string             { return "[secret]" }
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Reveal gives the text itself, to a login and to a keyring.
func (s Secret) Reveal() string { return string(s) }

// address makes an Address of what a provider told. What is no host, port or user
// is no address: it would become a word of a command line.
func address(host string, port int, user string) Address {
	if host == "" || len(host) > 253 || strings.HasPrefix(host, "-") || strings.Trim(host, hostChars) != "" || port < 0 || port > 65535 {
		return Address{}
	}
	if len(user) > 64 || strings.HasPrefix(user, "-") || strings.Trim(user, hostChars+"_") != "" {
		return Address{}
	}
	return Address{Host: host, Port: port, User: user}
}

const hostChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:"

// text bounds and cleans a provider's text.
func text(s string) string { return remote.Short(strings.TrimSpace(s), 200) }
