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
	if v, err := k.fromEnv(kind); v != "" || err != nil {
		return Secret(v), name, err
	}
	if k.Secrets != nil {
		if v, ok := k.Secrets.Get(keyringName(kind)); ok && v != "" {
			return Secret(v), "keyring", checkKey(kind, v, "the keyring")
		}
	}
	return "", "", fmt.Errorf("%w for %s: set %s, or keep one in the keyring with rentop import %s --save-key", ErrNoKey, kind, allOf(kind), kind)
}

// fromEnv reads a key from its variables, "" where it is not there.
func (k Keys) fromEnv(kind string) (string, error) {
	getenv := k.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	name := envOf(kind)
	key := strings.TrimSpace(getenv(name))
	if key == "" {
		return "", nil
	}
	if api, _ := FindAPI(kind); api.Parts != nil {
		for i, part := range api.Parts {
			v := strings.TrimSpace(getenv(part))
			switch {
			case v != "":
				key += ":" + v
			case i < len(api.Parts)-1:
				return "", fmt.Errorf("%s is set and %s is not: set both, or neither to use the keyring", name, part)
			}
		}
	}
	return key, checkKey(kind, key, allOf(kind))
}

// allOf names the variables that a key of that kind needs.
func allOf(kind string) string {
	names := []string{envOf(kind)}
	if api, _ := FindAPI(kind); len(api.Parts) > 1 {
		names = append(names, api.Parts[:len(api.Parts)-1]...)
	}
	return strings.Join(names, " and ")
}

// Save keeps a key in the keyring.
func (k Keys) Save(kind string, key Secret) error {
	v := strings.TrimSpace(key.Reveal())
	if v == "" {
		return errors.New("no key was given")
	}
	if err := checkKey(kind, v, "what was given"); err != nil {
		return err
	}
	if k.Secrets == nil {
		return fmt.Errorf("there is no keyring here; set %s instead", allOf(kind))
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

func checkKey(kind, v, where string) error {
	if api, _ := FindAPI(kind); api.Parts != nil {
		if _, err := pairOf(v); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
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
