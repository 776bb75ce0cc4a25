// Passwords and passphrases in the OS keyring, kept only when the person says so.

package remote

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zalando/go-keyring"
)

const (
	keyringService = "rentop"
	// keyringTimeout is time enough to unlock it in a dialog. A keyring without a
	// screen to show its dialog on would wait for ever.
	keyringTimeout = 30 * time.Second
)

// Keyring is the Secrets of this computer: Keychain, Credential Manager or a
// Secret Service. Where there is none it keeps nothing and Available is false.
func Keyring() Secrets {
	k := &osKeyring{timeout: keyringTimeout}
	k.available = sync.OnceValue(func() bool {
		// Asking for a Secret Service without a session bus would start a bus.
		if runtime.GOOS != "windows" && runtime.GOOS != "darwin" && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
			return false
		}
		_, err := k.call(func() (string, error) { return keyring.Get(keyringService, "probe") })
		return err == nil || errors.Is(err, keyring.ErrNotFound)
	})
	return k
}

type osKeyring struct {
	available func() bool
	timeout   time.Duration
	hung      atomic.Bool
}

var errKeyringHung = errors.New("the keyring does not answer")

// call runs f, which cannot be cancelled, and gives up on a keyring that hangs
// once; its goroutine ends with the keyring's answer or the process.
func (k *osKeyring) call(f func() (string, error)) (string, error) {
	if k.hung.Load() {
		return "", errKeyringHung
	}
	type result struct {
		s   string
		err error
	}
	ch := make(chan result, 1)
	go func() {
		s, err := f()
		ch <- result{s, err}
	}()
	t := time.NewTimer(k.timeout)
	defer t.Stop()
	select {
	case r := <-ch:
		return r.s, r.err
	case <-t.C:
		k.hung.Store(true)
		return "", errKeyringHung
	}
}

func (k *osKeyring) Available() bool { return k.available() && !k.hung.Load() }

func (k *osKeyring) Get(key string) (string, bool) {
	if !k.available() {
		return "", false
	}
	s, err := k.call(func() (string, error) { return keyring.Get(keyringService, key) })
	return s, err == nil
}

func (k *osKeyring) Set(key, secret string) error {
	if !k.available() {
		return errors.New("this computer has no keyring to keep a secret in (a desktop session has one); it was not kept")
	}
	if _, err := k.call(func() (string, error) { return "", keyring.Set(keyringService, key, secret) }); err != nil {
		return fmt.Errorf("the keyring did not keep the secret: %w", err)
	}
	return nil
}

func (k *osKeyring) Delete(key string) error {
	if !k.available() {
		return nil
	}
	_, err := k.call(func() (string, error) { return "", keyring.Delete(keyringService, key) })
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
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
