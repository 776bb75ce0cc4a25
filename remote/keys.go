// The keys that a login may offer, in the order that needs the fewest tries: the
// one that worked before, the ones that the person chose, the agent's, the
// default files. No passphrase is asked before the server wants the key.

package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

var errNoAgent = errors.New("no agent")

const (
	agentTimeout = 5 * time.Second
	signTimeout  = time.Minute // an agent may ask for a touch or a confirmation
	maxKeyFile   = 1 << 20
	maxAgentKeys = 64
)

// candidate is one key that may be offered.
type candidate struct {
	signer  ssh.Signer
	name    string // a file name or the agent's comment, cleaned
	refused bool   // by this server, in this Dial
}

func (c *candidate) fingerprint() string { return ssh.FingerprintSHA256(c.signer.PublicKey()) }

// keySigner signs with a key that get fetches when it is wanted: decrypted with
// the person's passphrase, or held by an agent that may ask for a touch.
type keySigner struct {
	pub ssh.PublicKey
	get func() (ssh.Signer, error)
	// wait is called around get and the signature: the person may take long.
	wait func() (done func())
}

func (k *keySigner) PublicKey() ssh.PublicKey { return k.pub }

func (k *keySigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(rand, data, "")
}

func (k *keySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	defer k.wait()()
	s, err := k.get()
	if err != nil {
		return nil, err
	}
	if as, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}

// Algorithms puts SHA-512 first for RSA: some servers take nothing else, and Go
// would begin with SHA-256 (trzsz/trzsz-ssh#208).
func (k *keySigner) Algorithms() []string {
	typ := k.pub.Type()
	if cert, ok := k.pub.(*ssh.Certificate); ok {
		typ = cert.Key.Type()
	}
	return keyAlgorithms(typ)
}

// keyBag collects the candidates of one login.
type keyBag struct {
	ep    Endpoint
	ask   func(file string, retry bool) (phrase string, keep func(), err error) // a passphrase
	wait  func() (done func())
	notes []string // why keys were left out, as sentences
	conn  net.Conn // to the agent
	stop  func() bool
}

func (k *keyBag) close() {
	if k.conn != nil {
		k.stop()
		k.conn.Close()
	}
}

func (k *keyBag) note(format string, args ...any) {
	k.notes = append(k.notes, fmt.Sprintf(format, args...))
}

// candidates lists the keys, first the one whose fingerprint is first.
func (k *keyBag) candidates(ctx context.Context, first string) []*candidate {
	agents := k.agentKeys(ctx)
	var chosen, files, all []*candidate
	for _, path := range k.ep.IdentityFiles {
		c := k.file(path, agents)
		if c == nil {
			continue
		}
		if k.ep.DefaultIdentity {
			files = append(files, c)
		} else {
			chosen = append(chosen, c)
		}
	}
	if k.ep.IdentitiesOnly {
		agents = nil
	}
	seen := map[string]bool{}
	for _, c := range slices.Concat(chosen, agents, files) {
		if fp := c.fingerprint(); !seen[fp] {
			seen[fp] = true
			all = append(all, c)
		}
	}
	if i := slices.IndexFunc(all, func(c *candidate) bool { return c.fingerprint() == first }); i > 0 {
		c := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, c)
	}
	return all
}

// agentKeys asks the agent. One that hangs costs a few seconds, not the login.
func (k *keyBag) agentKeys(ctx context.Context) []*candidate {
	if strings.EqualFold(k.ep.IdentityAgent, "none") {
		return nil
	}
	dctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := dialAgent(dctx, k.ep.IdentityAgent)
	if err != nil {
		if !errors.Is(err, errNoAgent) && (k.ep.IdentityAgent != "" || os.Getenv("SSH_AUTH_SOCK") != "") {
			k.note("the ssh-agent cannot be reached (%v)", err)
		}
		return nil
	}
	k.conn = conn
	k.stop = context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(agentTimeout))
	client := agent.NewClient(conn)
	signers, err := client.Signers()
	if err != nil {
		k.note("the ssh-agent did not answer (%v)", err)
		return nil
	}
	sign := func() { conn.SetDeadline(time.Now().Add(signTimeout)) }
	listed, _ := client.List()
	comment := map[string]string{}
	for _, l := range listed {
		comment[string(l.Blob)] = l.Comment
	}
	var out []*candidate
	for _, s := range signers[:min(len(signers), maxAgentKeys)] {
		pub := s.PublicKey()
		name := Short(comment[string(pub.Marshal())], 40)
		out = append(out, &candidate{
			signer: &keySigner{pub: pub, get: func() (ssh.Signer, error) { sign(); return s, nil }, wait: k.wait},
			name:   strings.TrimSpace("agent key " + name),
		})
	}
	return out
}

// file makes a candidate of a key file, nil where it holds none that can be used.
// The agent's copy is preferred: it needs no passphrase.
func (k *keyBag) file(path string, agents []*candidate) *candidate {
	data, err := readSmall(path)
	pub := publicKeyBeside(path)
	if err != nil {
		if c := inAgent(agents, pub); c != nil {
			return c
		}
		if !k.ep.DefaultIdentity {
			k.note("the key file %s cannot be read (%v)", path, errors.Unwrap(err))
		}
		return nil
	}
	if p, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil { // -i names the public half of an agent's key
		if c := inAgent(agents, p); c != nil {
			return c
		}
		k.note("%s is a public key and the ssh-agent does not hold its private half", path)
		return nil
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err == nil {
		if c := inAgent(agents, signer.PublicKey()); c != nil {
			return c
		}
		return k.fileCandidate(path, signer.PublicKey(), func() (ssh.Signer, error) { return signer, nil })
	}
	var missing *ssh.PassphraseMissingError
	encrypted := errors.As(err, &missing)
	if encrypted && missing.PublicKey != nil {
		pub = missing.PublicKey
	}
	if c := inAgent(agents, pub); c != nil {
		return c
	}
	switch {
	case encrypted && pub != nil:
		var open ssh.Signer
		return k.fileCandidate(path, pub, func() (ssh.Signer, error) {
			if open != nil {
				return open, nil
			}
			var err error
			open, err = k.decrypt(path, data)
			return open, err
		})
	case encrypted && k.ep.DefaultIdentity:
		k.note("%s does not show its public key without its passphrase; name it with -i to use it", path)
	case encrypted:
		signer, err := k.decrypt(path, data)
		if err != nil {
			k.note("%s was not used (%v)", path, err)
			return nil
		}
		return k.fileCandidate(path, signer.PublicKey(), func() (ssh.Signer, error) { return signer, nil })
	default:
		k.note("%s", unusable(path, data, err))
	}
	return nil
}

func (k *keyBag) fileCandidate(path string, pub ssh.PublicKey, get func() (ssh.Signer, error)) *candidate {
	return &candidate{signer: &keySigner{pub: pub, get: get, wait: k.wait}, name: filepath.Base(path)}
}

// decrypt asks for the passphrase up to three times.
func (k *keyBag) decrypt(path string, data []byte) (ssh.Signer, error) {
	for try := 0; ; try++ {
		phrase, keep, err := k.ask(path, try > 0)
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(data, []byte(phrase))
		if err == nil {
			keep()
			return signer, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return nil, fmt.Errorf("%s cannot be read: %w", path, err)
		}
		if try == maxPrompts {
			return nil, fmt.Errorf("the passphrase of %s was wrong %d times", path, try)
		}
	}
}

// unusable says why a key file cannot be used and what would help.
func unusable(path string, data []byte, err error) string {
	block, _ := pem.Decode(data)
	switch {
	case bytes.HasPrefix(data, []byte("PuTTY-User-Key-File")):
		return fmt.Sprintf("%s is a PuTTY key: export it with PuTTYgen, Conversions, Export OpenSSH key", path)
	case block != nil && block.Type == "ENCRYPTED PRIVATE KEY": // golang/go#71048
		return fmt.Sprintf("%s is an encrypted PKCS#8 key: rewrite it with `ssh-keygen -p -f %s`, or add it to the ssh-agent", path, Quote(path))
	case block != nil && bytes.Contains(block.Bytes, []byte("sk-ssh-ed25519")), block != nil && bytes.Contains(block.Bytes, []byte("sk-ecdsa")): // golang/go#69904
		return fmt.Sprintf("%s is a security key: add it to the ssh-agent with `ssh-add %s`", path, Quote(path))
	}
	return fmt.Sprintf("%s is not a private key that can be used (%s)", path, strings.TrimPrefix(err.Error(), "ssh: "))
}

func inAgent(agents []*candidate, pub ssh.PublicKey) *candidate {
	if pub == nil {
		return nil
	}
	for _, c := range agents {
		if bytes.Equal(c.signer.PublicKey().Marshal(), pub.Marshal()) {
			return c
		}
	}
	return nil
}

func publicKeyBeside(path string) ssh.PublicKey {
	data, err := readSmall(path + ".pub")
	if err != nil {
		return nil
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil
	}
	return pub
}

// readSmall reads a regular file of at most 1 MiB.
func readSmall(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxKeyFile {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("not a key file")}
	}
	return os.ReadFile(path)
}
