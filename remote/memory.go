// What one run of rentop remembers of earlier logins, so that a second connection
// or a reconnect asks nothing.

package remote

import (
	"context"
	"sync"
)

// AuthMemory holds passwords typed in this run and the key that worked for each
// instance. Share one among all connections. It is never written anywhere.
type AuthMemory struct {
	mu     sync.Mutex
	secret map[string]string        // as the keys of Secrets
	key    map[string]string        // instance uid → fingerprint
	turns  map[string]chan struct{} // who may ask for a secret now
}

// NewAuthMemory returns an empty memory.
func NewAuthMemory() *AuthMemory {
	return &AuthMemory{secret: map[string]string{}, key: map[string]string{}, turns: map[string]chan struct{}{}}
}

// WorkingKey is the fingerprint of the key that an instance accepted, "" where
// none did yet. It may be kept between runs: it is no secret.
func (m *AuthMemory) WorkingKey(uid string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.key[uid]
}

// SetWorkingKey says which key to offer first.
func (m *AuthMemory) SetWorkingKey(uid, fingerprint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.key[uid] = fingerprint
}

// SetPassword gives the password that an instance has now, as its provider tells
// it: another one than was kept, after each power cycle.
func (m *AuthMemory) SetPassword(uid, password string) { m.put(passwordKey(uid), password) }

// Forget drops what is remembered of an instance.
func (m *AuthMemory) Forget(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.key, uid)
	delete(m.secret, passwordKey(uid))
}

func passwordKey(uid string) string    { return uid + "/password" }
func passphraseKey(file string) string { return "key:" + file + "/passphrase" }

func (m *AuthMemory) get(key string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.secret[key]
	return s, ok
}

func (m *AuthMemory) put(key, secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secret[key] = secret
}

func (m *AuthMemory) drop(key, secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.secret[key] == secret {
		delete(m.secret, key)
	}
}

// turn makes connections that need the same secret ask for it one after the
// other: the second finds the first one's answer.
func (m *AuthMemory) turn(ctx context.Context, key string) (done func(), err error) {
	m.mu.Lock()
	t := m.turns[key]
	if t == nil {
		t = make(chan struct{}, 1)
		m.turns[key] = t
	}
	m.mu.Unlock()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
