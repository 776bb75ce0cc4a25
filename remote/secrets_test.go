package remote

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"rentop/remote/needtest"
)

func TestKeyring(t *testing.T) {
	needtest.That(t, runtime.GOOS != "windows" && runtime.GOOS != "darwin", "a keyring that is not this person's own")
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	headless := Keyring()
	if _, ok := headless.Get("k"); ok || headless.Available() || headless.Set("k", "s") == nil || headless.Delete("k") != nil {
		t.Error("a keyring without a desktop")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	for name, s := range map[string]Secrets{"keyring": Keyring(), "memory": &MemorySecrets{}} {
		if !s.Available() {
			t.Fatal(name, "is not available")
		}
		if _, ok := s.Get("uid/password"); ok {
			t.Error(name, "is not empty")
		}
		if err := s.Set("uid/password", "geheim"); err != nil {
			t.Error(name, err)
		}
		if got, ok := s.Get("uid/password"); !ok || got != "geheim" {
			t.Error(name, got, ok)
		}
		if err := errors.Join(s.Delete("uid/password"), s.Delete("uid/password")); err != nil {
			t.Error(name, err)
		}
		if _, ok := s.Get("uid/password"); ok {
			t.Error(name, "did not delete")
		}
	}
	keyring.MockInitWithError(errors.New("no service"))
	if Keyring().Available() {
		t.Error("a keyring that fails")
	}
}

func TestKeyringThatHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	k := &osKeyring{available: func() bool { return true }, timeout: 50 * time.Millisecond}
	start := time.Now()
	for range 3 { // it costs its timeout once
		if _, err := k.call(func() (string, error) { <-release; return "", nil }); !errors.Is(err, errKeyringHung) {
			t.Error(err)
		}
	}
	if took := time.Since(start); took > time.Second || k.Available() {
		t.Error(took, k.Available())
	}
}
