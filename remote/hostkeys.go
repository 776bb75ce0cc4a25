// Whether a host key is the one that this instance showed before.
//
// Rented machines reuse address and port, so rentop keeps keys by instance in a
// file of its own. The person's known_hosts is honoured for the first contact.
// The file is only ever appended to, so two rentops cannot lose each other's
// lines: forgetting is a line too.

package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// HostKeys knows the host keys of instances. Its methods may be called from
// several goroutines.
type HostKeys struct {
	file      string
	userFiles []string
	mu        sync.Mutex // orders writes within this process
}

const forgetMark = "#forget "

// OpenHostKeys uses file (created with its folder when the first key is kept)
// and reads userFiles, the person's known_hosts, beside it.
func OpenHostKeys(file string, userFiles []string) (*HostKeys, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("host keys cannot be kept: %w", err)
	}
	h := &HostKeys{file: file, userFiles: userFiles}
	_, err := h.known("")
	return h, err
}

// Known returns the fingerprints ("SHA256:…") kept for an instance.
func (h *HostKeys) Known(uid string) ([]string, error) {
	keys, err := h.known(uid)
	var fps []string
	for _, k := range keys {
		fps = append(fps, ssh.FingerprintSHA256(k))
	}
	return fps, err
}

// Add keeps key for an instance.
func (h *HostKeys) Add(uid string, key ssh.PublicKey) error {
	return h.append(knownhosts.Line([]string{hostName(uid)}, key))
}

// Forget drops every key kept for an instance: the next connection asks again.
func (h *HostKeys) Forget(uid string) error {
	return h.append(forgetMark + hostName(uid))
}

// hostName makes a uid fit the first column of known_hosts.
func hostName(uid string) string {
	var b strings.Builder
	for i := 0; i < len(uid); i++ {
		switch c := uid[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("._-:[]", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func (h *HostKeys) append(line string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := os.OpenFile(h.file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the host key cannot be kept: %w", err)
	}
	defer f.Close()
	line += "\n"
	last := []byte{'\n'}
	if fi, err := f.Stat(); err == nil && fi.Size() > 0 {
		f.ReadAt(last, fi.Size()-1)
	}
	if last[0] != '\n' { // a full disk tore the last line
		line = "\n" + line
	}
	if _, err = io.WriteString(f, line); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("the host key cannot be kept: %w", err)
	}
	return nil
}

// known reads our own file. Lines that cannot be read are passed over.
func (h *HostKeys) known(uid string) ([]ssh.PublicKey, error) {
	f, err := os.Open(h.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("host keys cannot be read: %w", err)
	}
	defer f.Close()
	name := hostName(uid)
	var keys []ssh.PublicKey
	in := bufio.NewScanner(f)
	for in.Scan() {
		line := in.Text()
		if rest, ok := strings.CutPrefix(line, forgetMark); ok {
			if strings.TrimSpace(rest) == name {
				keys = nil
			}
			continue
		}
		host, _, ok := strings.Cut(line, " ")
		if !ok || host != name {
			continue
		}
		if _, _, key, _, _, err := ssh.ParseKnownHosts([]byte(line)); err == nil {
			keys = append(keys, key)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("host keys cannot be read: %w", err)
	}
	return keys, nil
}

// userDBs opens the person's known_hosts, each alone, so that one that cannot be
// read hides no other.
func (h *HostKeys) userDBs(more []string) []*knownhosts.HostKeyDB {
	files := slices.Compact(slices.Sorted(slices.Values(slices.Concat(h.userFiles, more))))
	var dbs []*knownhosts.HostKeyDB
	for _, f := range files {
		if fi, err := os.Stat(f); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if db, err := knownhosts.NewDB(f); err == nil {
			dbs = append(dbs, db)
		}
	}
	return dbs
}

// lookup is one connection's view of the keys: what is known of this host, and
// the algorithms to ask it for.
type lookup struct {
	own     []ssh.PublicKey         // kept for this instance
	dbs     []*knownhosts.HostKeyDB // the person's
	addr    string                  // host:port to look up there
	algs    []string
	userKey []ssh.PublicKey // the person's plain keys for addr
}

// look collects what is known of one host: algorithms only of this host, or the
// server would be asked for a key type that only another host has
// (golang/go#29286, fluxcd/pkg#1295).
func (h *HostKeys) look(uid, addr string, more []string) (*lookup, error) {
	own, err := h.known(uid)
	if err != nil {
		return nil, err
	}
	l := &lookup{own: own, dbs: h.userDBs(more), addr: addr}
	for _, k := range own {
		l.algs = append(l.algs, keyAlgorithms(k.Type())...)
	}
	for _, db := range l.dbs {
		for _, k := range db.HostKeys(addr) {
			if k.Cert {
				l.algs = append(l.algs, certAlgorithms...)
			} else {
				l.userKey = append(l.userKey, k.PublicKey)
			}
		}
	}
	if len(own) == 0 {
		for _, k := range l.userKey {
			l.algs = append(l.algs, keyAlgorithms(k.Type())...)
		}
	}
	// The rest follows: a server that has lost the known type must show what it
	// has, so that the change can be explained.
	l.algs = append(l.algs, plainAlgorithms...)
	seen := map[string]bool{}
	l.algs = slices.DeleteFunc(l.algs, func(a string) bool {
		dup := seen[a]
		seen[a] = true
		return dup
	})
	return l, nil
}

var (
	plainAlgorithms = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	certAlgorithms = []string{ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
		ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01}
)

// keyAlgorithms are the algorithms that show a key of this type. An ssh-rsa line
// stands for the SHA-2 ones too (skeema/knownhosts#6).
func keyAlgorithms(typ string) []string {
	if typ == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{typ}
}

// verdict is what a lookup says about a key.
type verdict int

const (
	keyKnown   verdict = iota // kept for this instance
	keyUsers                  // in the person's known_hosts, or signed by an authority there
	keyUnknown                // never seen
	keyOther                  // the person's known_hosts has another key for this address
	keyChanged                // this instance showed another key before
	keyRevoked
)

func (l *lookup) judge(remote net.Addr, key ssh.PublicKey) verdict {
	if remote == nil || !strings.Contains(remote.String(), ":") {
		remote = &net.TCPAddr{IP: net.IPv4zero} // a pipe has no address that known_hosts could hold
	}
	trusted := false
	for _, db := range l.dbs {
		err := db.HostKeyCallback()(l.addr, remote, key)
		var revoked *xknownhosts.RevokedError
		if errors.As(err, &revoked) {
			return keyRevoked
		}
		trusted = trusted || err == nil
	}
	same := func(k ssh.PublicKey) bool { return string(k.Marshal()) == string(key.Marshal()) }
	switch {
	case slices.ContainsFunc(l.own, same):
		return keyKnown
	case len(l.own) > 0:
		return keyChanged
	case trusted:
		return keyUsers
	case len(l.userKey) > 0:
		return keyOther
	}
	return keyUnknown
}
