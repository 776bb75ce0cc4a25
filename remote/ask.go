package remote

import (
	"context"
	"errors"
)

// QuestionKind says what a Question asks for.
type QuestionKind int

const (
	AskHostKey     QuestionKind = iota // trust this host key? Answer.OK
	AskPassword                        // the login's password
	AskPassphrase                      // a key file's passphrase
	AskInteractive                     // one keyboard-interactive prompt (a code, a token)
)

// Question is something only the person can answer while connecting. All texts
// from the server are cleaned.
type Question struct {
	Kind        QuestionKind
	Instance    string // the instance's name
	Host        string // user@host:port as dialled (a jump host has its own)
	Prompt      string // what to show; the server's own prompt for AskInteractive
	Echo        bool   // whether the answer may be shown while typed
	KeyType     string // AskHostKey: "ssh-ed25519"
	Fingerprint string // AskHostKey: "SHA256:…"
	KeyFile     string // AskPassphrase
	CanRemember bool   // an OS keyring is there to keep the answer
	Retry       bool   // an earlier answer was refused
}

// Answer is the person's reply. Remember asks to keep Text in the OS keyring;
// it is never set on the person's behalf.
type Answer struct {
	OK       bool // false: the person declined
	Text     string
	Remember bool
}

// Asker reaches the person: a dialog in the screen, a prompt on a terminal.
// Ask blocks until the answer or ctx's end.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ErrNobodyToAsk is returned by an Asker without a person (no terminal). A
// command that meets it ends with exit code 3.
var ErrNobodyToAsk = errors.New("nobody to ask: this is not a terminal")

// ErrDeclined is returned where the person answered no.
var ErrDeclined = errors.New("declined")

// Secrets keeps passwords and passphrases in the OS keyring. Keys are
// "instance-uid/kind"; ok is false where nothing is kept or there is no keyring.
type Secrets interface {
	Get(key string) (secret string, ok bool)
	Set(key, secret string) error
	Delete(key string) error
	Available() bool
}
