package remote

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// What a person reads, word for word.
func TestSentences(t *testing.T) {
	ep := DirectEndpoint("root", "h.example", 41237)
	for _, tc := range []struct {
		err    error
		person bool
		want   string
	}{
		{&AuthError{User: "root", Methods: []string{"publickey"}}, true,
			"the login as root was refused; the server takes publickey; no key was offered. Add your public key on the platform's page or name the right key with -i"},
		{&AuthError{User: "root", Methods: []string{"publickey", "password"}, Keys: []string{"id_ed25519", "agent key me"}, Password: true}, true,
			"the login as root was refused; the server takes publickey, password; refused: id_ed25519, agent key me; the password was refused. Check user, key and password on the platform's page: some change at each start"},
		{&AuthError{User: "root", Methods: []string{"publickey", "password"}, Err: ErrNobodyToAsk}, true,
			"the login as root needs an answer, and this is not a terminal; the server takes publickey, password; no key was offered. Run this in a terminal once, or use a key of the ssh-agent"},
		{&AuthError{User: "root", Methods: []string{"password"}, Err: ErrDeclined}, true,
			"the login as root was given up: declined; the server takes password"},
		{&AuthError{User: "root", Methods: []string{"publickey"}, Keys: []string{"a"}, Err: errMoreKeys}, true,
			"the login as root was refused (other keys were not offered); the server takes publickey; refused: a. Name the right key with -i, and wait a minute before the next try"},
		{&HostKeyUnknownError{KeyType: "ssh-ed25519", Fingerprint: "SHA256:new", Err: ErrNobodyToAsk}, true,
			"its host key is not known yet: ssh-ed25519 SHA256:new. Compare it with the platform's page and accept it with --accept-host-key SHA256:new"},
		{&HostKeyUnknownError{KeyType: "ssh-ed25519", Fingerprint: "SHA256:new", Err: ErrDeclined, Conflict: true}, true,
			"its host key is not known yet: ssh-ed25519 SHA256:new (your known_hosts has another key for this address; rented addresses are reused); you did not accept it"},
		{&HostKeyUnknownError{KeyType: "ssh-ed25519", Fingerprint: "SHA256:new", Wanted: "SHA256:said"}, true,
			"its host key is not known yet: ssh-ed25519 SHA256:new; that is not the accepted SHA256:said"},
		{&HostKeyChangedError{KeyType: "ssh-ed25519", Known: []string{"SHA256:old"}, Now: "SHA256:new"}, true,
			"its host key has changed: it was SHA256:old and is now ssh-ed25519 SHA256:new. Either the machine was created anew or somebody listens in. If the platform's page says that it is new, accept it with --accept-host-key SHA256:new; otherwise do not log in"},
		{&HostKeyChangedError{KeyType: "ssh-ed25519", Now: "SHA256:new", Revoked: true}, true,
			"its host key SHA256:new is marked @revoked in your known_hosts: do not log in there"},
		{fmt.Errorf("ssh: handshake failed: %w", io.EOF), false,
			"the server ended the connection during the login; it may allow no more failures (MaxAuthTries) or block this address for a while"},
		{&ssh.AlgorithmNegotiationError{What: "host key", RequestedAlgorithms: []string{"ssh-dss"}}, false,
			"it and rentop share no algorithm for the host key (it offers ssh-dss); its SSH server is too old or too strict"},
		{errors.New("ssh: handshake failed: ssh: \x1b[2J"), false,
			"failed while logging in (ssh: ␛[2J)"},
	} {
		err := explain(ep, stageLogin, tc.err)
		if err.Error() != ep.Address()+": "+tc.want || NeedsPerson(err) != tc.person || !errors.Is(err, tc.err) {
			t.Errorf("needs a person: %v\n%s\nwant\n%s", NeedsPerson(err), err, tc.want)
		}
	}
}
