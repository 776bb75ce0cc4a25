// Passwords and passphrases in the OS keyring, kept only when the person says so.

package remote

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/zalando/go-keyring"
)

const keyringService = "rentop"

// Keyring is the Secrets of this computer: Keychain, Credential Manager or a
// Secret Service. Where there is none it keeps nothing and Available is false.
func Keyring() Secrets {
	// Asking for a Secret Service without a session bus would start a bus.
	headless := runtime.GOOS != "windows" && runtime.GOOS != "darwin" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == ""
	return &osKeyring{available: sync.OnceValue(func() bool {
		if headless {
			return false
		}
		_, err := keyring.Get(keyringService, "probe")
		return err == nil || errors.Is(err, keyring.ErrNotFound)
	})}
}

type osKeyring struct{ available func() bool }

func (k *osKeyring) Available() bool { return k.available() }

func (k *osKeyring) Get(key string) (string, bool) {
	if !k.available() {
		return "", false
	}
	s, err := keyring.Get(keyringService, key)
	return s, err == nil
}

func (k *osKeyring) Set(key, secret string) error {
	if !k.available() {
		return errors.New("this computer has no keyring to keep a secret in (a desktop session has one); it was not kept")
	}
	if err := keyring.Set(keyringService, key, secret); err != nil {
		return fmt.Errorf("the keyring did not keep the secret: %w", err)
	}
	return nil
}

func (k *osKeyring) Delete(key string) error {
	if !k.available() {
		return nil
	}
	if err := keyring.Delete(keyringService, key); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("the keyring did not delete the secret: %w", err)
	}
	return nil
}

// MemorySecrets keeps secrets for the life of the process: for tests and the demo.
type MemorySecrets struct {
	mu sync.Mutex
	m  map[string]string
}

func (s *MemorySecrets) Available() bool { return true }

func (s *MemorySecrets) Get(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.m[key]
	return v, ok
}

func (s *MemorySecrets) Set(key, secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]string{}
	}
	s.m[key] = secret
	return nil
}

func (s *MemorySecrets) Delete(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, key)
	return nil
}
