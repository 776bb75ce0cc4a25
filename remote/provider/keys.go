package provider

// API keys come from the environment or the OS keyring, never from the config.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"rentop/remote"
)

// Keys finds the API keys of this computer.
type Keys struct {
	Secrets remote.Secrets      // nil: the environment only
	Getenv  func(string) string // nil: os.Getenv
}

// ErrNoKey says that no API key was found.
var ErrNoKey = errors.New("there is no API key")

// maxKey bounds a key; what is longer is a file that was pasted by mistake.
const maxKey = 4096

// Find gives the key of a provider and says where it was found: in the variable,
// which wins, or in the keyring.
func (k Keys) Find(kind string) (key Secret, from string, err error) {
	name := envOf(kind)
	getenv := k.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if v := strings.TrimSpace(getenv(name)); v != "" {
		return Secret(v), name, checkKey(v, name)
	}
	if k.Secrets != nil {
		if v, ok := k.Secrets.Get(keyringName(kind)); ok && v != "" {
			return Secret(v), "keyring", checkKey(v, "the keyring")
		}
	}
	return "", "", fmt.Errorf("%w for %s: set %s, or keep one in the keyring with rentop import %s --save-key", ErrNoKey, kind, name, kind)
}

// Save keeps a key in the keyring.
func (k Keys) Save(kind string, key Secret) error {
	v := strings.TrimSpace(key.Reveal())
	if v == "" {
		return errors.New("no key was given")
	}
	if err := checkKey(v, "what was given"); err != nil {
		return err
	}
	if k.Secrets == nil {
		return fmt.Errorf("there is no keyring here; set %s instead", envOf(kind))
	}
	return k.Secrets.Set(keyringName(kind), v)
}

// Forget takes a key out of the keyring.
func (k Keys) Forget(kind string) error {
	if k.Secrets == nil {
		return nil
	}
	return k.Secrets.Delete(keyringName(kind))
}

func keyringName(kind string) string { return "provider:" + kind }

func checkKey(v, where string) error {
	if len(v) > maxKey || strings.ContainsFunc(v, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' }) {
		return fmt.Errorf("%s holds no usable API key: it is one line of letters, digits and signs", where)
	}
	return nil
}

// fingerprint names a key without telling anything about it.
func fingerprint(key string) string {
	sum := sha256.Sum256([]byte("rentop " + key))
	return hex.EncodeToString(sum[:8])
}
