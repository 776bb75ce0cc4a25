// Keys of storage: from the environment or the OS keyring, never from the config.

package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"rentop/remote"
)

// Key opens a bucket. It prints as nothing.
type Key struct {
	ID     string
	Secret string
	Token  string // of temporary keys; "" for others
}

// String keeps a key out of logs.
func (Key) String() string { return "[key]" }

// GoString does so for %#v.
func (Key) GoString() string { return "[key]" }

// Keys finds the keys of this computer.
type Keys struct {
	Secrets remote.Secrets      // nil: the environment only
	Getenv  func(string) string // nil: os.Getenv
}

// ErrNoKey says that no key was found.
var ErrNoKey = errors.New("there is no key")

const maxKey = 4096

// Find gives the key of a bucket: in RENTOP_S3_BUCKET_KEY_ID and …_SECRET, which win,
// in the keyring, or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
func (k Keys) Find(bucket string) (Key, error) {
	getenv := k.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	own := envPrefix(bucket)
	if id := strings.TrimSpace(getenv(own + "KEY_ID")); id != "" {
		return checked(Key{id, strings.TrimSpace(getenv(own + "SECRET")), strings.TrimSpace(getenv(own + "TOKEN"))}, own+"KEY_ID and "+own+"SECRET")
	}
	if k.Secrets != nil {
		if v, ok := k.Secrets.Get(keyringName(bucket)); ok {
			id, secret, _ := strings.Cut(v, "\n")
			return checked(Key{ID: id, Secret: secret}, "the keyring")
		}
	}
	if id := strings.TrimSpace(getenv("AWS_ACCESS_KEY_ID")); id != "" {
		return checked(Key{id, strings.TrimSpace(getenv("AWS_SECRET_ACCESS_KEY")), strings.TrimSpace(getenv("AWS_SESSION_TOKEN"))}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	return Key{}, fmt.Errorf("%w for the bucket %s: set %sKEY_ID and %sSECRET (or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), or keep it in the keyring with rentop save --save-key %s", ErrNoKey, bucket, own, own, bucket)
}

// Save keeps a key in the keyring.
func (k Keys) Save(bucket string, key Key) error {
	if _, err := checked(key, "what was given"); err != nil {
		return err
	}
	if k.Secrets == nil {
		return fmt.Errorf("there is no keyring here; set %sKEY_ID and %sSECRET instead", envPrefix(bucket), envPrefix(bucket))
	}
	return k.Secrets.Set(keyringName(bucket), key.ID+"\n"+key.Secret)
}

func keyringName(bucket string) string { return "s3:" + bucket }

// envPrefix begins the names of a bucket's own variables.
func envPrefix(bucket string) string {
	return "RENTOP_S3_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, bucket) + "_"
}

func checked(k Key, where string) (Key, error) {
	for _, v := range []string{k.ID, k.Secret, k.Token} {
		if len(v) > maxKey || strings.ContainsFunc(v, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' }) {
			return Key{}, fmt.Errorf("%s: no usable key: an id and a secret are a line of letters, digits and signs each", where)
		}
	}
	if k.ID == "" || k.Secret == "" {
		return Key{}, fmt.Errorf("%s: a key is an id and a secret; one of them is empty", where)
	}
	return k, nil
}
