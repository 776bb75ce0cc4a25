// Why a connection failed, as one sentence with a cure.

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// DialError says why a connection failed. Error is one sentence with a cure; Err
// is the cause.
type DialError struct {
	Address string // user@host:port that failed: the instance, or a jump host before it
	Text    string
	Err     error
}

func (e *DialError) Error() string { return e.Address + ": " + e.Text }
func (e *DialError) Unwrap() error { return e.Err }

// AuthError says that the server refused the login.
type AuthError struct {
	User     string
	Methods  []string // what the server takes
	Keys     []string // names of the keys that it refused
	Password bool     // it refused a password too
	Notes    []string // keys that could not be offered, and why
	Err      error    // ErrNobodyToAsk, ErrDeclined; nil where all was refused
}

func (e *AuthError) Unwrap() error { return e.Err }

func (e *AuthError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the login as %s was refused", e.User)
	switch {
	case errors.Is(e.Err, ErrNobodyToAsk):
		b.Reset()
		fmt.Fprintf(&b, "the login as %s needs an answer, and %s", e.User, strings.TrimPrefix(ErrNobodyToAsk.Error(), "nobody to ask: "))
	case errors.Is(e.Err, errMoreKeys), errors.Is(e.Err, errTooMany):
		fmt.Fprintf(&b, " (%v)", e.Err)
	case e.Err != nil:
		b.Reset()
		fmt.Fprintf(&b, "the login as %s was given up: %v", e.User, e.Err)
	}
	if len(e.Methods) > 0 {
		fmt.Fprintf(&b, "; the server takes %s", Short(strings.Join(e.Methods, ", "), 100))
	}
	switch {
	case len(e.Keys) > 0:
		fmt.Fprintf(&b, "; refused: %s", strings.Join(e.Keys, ", "))
	case slices.Contains(e.Methods, "publickey"):
		b.WriteString("; no key was offered")
	}
	if e.Password {
		b.WriteString("; the password was refused")
	}
	for _, n := range e.Notes {
		b.WriteString("; " + n)
	}
	switch {
	case errors.Is(e.Err, ErrNobodyToAsk):
		b.WriteString(". Run this in a terminal once, or use a key of the ssh-agent")
	case errors.Is(e.Err, errMoreKeys), errors.Is(e.Err, errTooMany):
		b.WriteString(". Name the right key with -i, and wait a minute before the next try")
	case e.Err != nil:
	case slices.Contains(e.Methods, "publickey") && !slices.Contains(e.Methods, "password") && !slices.Contains(e.Methods, "keyboard-interactive"):
		b.WriteString(". Add your public key on the platform's page or name the right key with -i")
	default:
		b.WriteString(". Check user, key and password on the platform's page: some change at each start")
	}
	return b.String()
}

// HostKeyUnknownError says that nobody has confirmed the host's key.
type HostKeyUnknownError struct {
	KeyType     string
	Fingerprint string // "SHA256:…"
	Conflict    bool   // the person's known_hosts has another key for this address
	Wanted      string // the fingerprint that was to be accepted, where it is another one
	Err         error  // ErrNobodyToAsk or ErrDeclined
}

func (e *HostKeyUnknownError) Unwrap() error { return e.Err }

func (e *HostKeyUnknownError) Error() string {
	s := fmt.Sprintf("its host key is not known yet: %s %s", e.KeyType, e.Fingerprint)
	if e.Conflict {
		s += " (your known_hosts has another key for this address; rented addresses are reused)"
	}
	switch {
	case e.Wanted != "":
		s += fmt.Sprintf("; that is not the accepted %s", Short(e.Wanted, 60))
	case errors.Is(e.Err, ErrDeclined):
		s += "; you did not accept it"
	default:
		s += ". Compare it with the platform's page and accept it with --accept-host-key " + e.Fingerprint
	}
	return s
}

// HostKeyChangedError says that an instance shows another key than before. It is
// never accepted on the person's behalf.
type HostKeyChangedError struct {
	KeyType string
	Known   []string // fingerprints kept
	Now     string   // fingerprint shown
	Revoked bool     // the person's known_hosts revokes the key
}

func (e *HostKeyChangedError) Error() string {
	if e.Revoked {
		return fmt.Sprintf("its host key %s is marked @revoked in your known_hosts: do not log in there", e.Now)
	}
	return fmt.Sprintf("its host key has changed: it was %s and is now %s %s. Either the machine was created anew or somebody listens in. "+
		"If the platform's page says that it is new, accept it with --accept-host-key %s; otherwise do not log in",
		strings.Join(e.Known, ", "), e.KeyType, e.Now, e.Now)
}

// NeedsPerson is true for errors that trying again does not cure.
func NeedsPerson(err error) bool {
	var auth *AuthError
	var unknown *HostKeyUnknownError
	var changed *HostKeyChangedError
	return errors.As(err, &auth) || errors.As(err, &unknown) || errors.As(err, &changed) ||
		errors.Is(err, ErrNobodyToAsk) || errors.Is(err, ErrDeclined)
}

// errCut says that the connection ended during the handshake, errConnectTimeout
// that it came to nothing in time.
var (
	errCut            = errors.New("the connection was cut")
	errConnectTimeout = errors.New("no answer in time")
)

// explain makes the sentence for an error of one host.
func explain(e Endpoint, stage string, err error) error {
	var de *DialError
	if errors.As(err, &de) {
		return err
	}
	return &DialError{Address: e.Address(), Text: sentence(e, stage, err), Err: err}
}

func sentence(e Endpoint, stage string, err error) string {
	var auth *AuthError
	var unknown *HostKeyUnknownError
	var changed *HostKeyChangedError
	var dns *net.DNSError
	var neg *ssh.AlgorithmNegotiationError
	var open *ssh.OpenChannelError
	var proxy *proxyError
	switch {
	case errors.As(err, &auth):
		return auth.Error()
	case errors.As(err, &unknown):
		return unknown.Error()
	case errors.As(err, &changed):
		return changed.Error()
	case errors.As(err, &proxy):
		return proxy.Error()
	case errors.Is(err, context.Canceled):
		return "the attempt was called off"
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the name %s does not exist; check the host for a typing error, or your network's DNS", Clean(e.Host))
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s could not be looked up (%s); is this computer online?", Clean(e.Host), Short(dns.Err, 80))
	case errors.Is(err, syscall.ECONNREFUSED), isWindowsErr(err, 10061):
		return fmt.Sprintf("port %d refuses connections; the instance may be stopped or still starting, or the port has changed (platforms change it at each start)", e.Port)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), isWindowsErr(err, 10051), isWindowsErr(err, 10065):
		return "there is no route to it; is this computer online, or is a VPN needed?"
	case errors.Is(err, errConnectTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), isWindowsErr(err, 10060):
		return "no answer while " + stage + "; the instance may be stopped, or a firewall drops the port"
	case errors.As(err, &open):
		return fmt.Sprintf("the jump host does not reach it (%s); check its address as seen from there", Short(open.Message, 100))
	case errors.As(err, &neg):
		return fmt.Sprintf("it and rentop share no algorithm for the %s (it offers %s); its SSH server is too old or too strict", Short(neg.What, 40), Short(strings.Join(neg.RequestedAlgorithms, ", "), 120))
	case strings.Contains(err.Error(), "unexpected message type 51"): // golang/go#67855
		return "the server refused the login method; check user, key and password on the platform's page"
	case errors.Is(err, io.EOF), errors.Is(err, errCut), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), isWindowsErr(err, 10054):
		if stage == stageLogin {
			return "the server ended the connection during the login; it may allow no more failures (MaxAuthTries) or block this address for a while"
		}
		return "the server ended the connection before the login; it may be starting, have too many logins at once (MaxStartups) or block this address for a while"
	case strings.Contains(err.Error(), "overflow reading version string"), strings.Contains(err.Error(), "invalid packet length"):
		return fmt.Sprintf("what answers at port %d is not an SSH server; check the port on the platform's page", e.Port)
	}
	return fmt.Sprintf("failed while %s (%s)", stage, Short(strings.TrimPrefix(err.Error(), "ssh: handshake failed: "), 200))
}

func isWindowsErr(err error, code uintptr) bool {
	var no syscall.Errno
	return errors.As(err, &no) && uintptr(no) == code
}
