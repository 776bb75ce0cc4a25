// Logging in: which method to try next, with which key or password, and when to
// stop. A server that counts failures (MaxAuthTries 6, fail2ban) must never see
// six wrong keys.

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"golang.org/x/crypto/ssh"
)

const (
	maxKeys    = 5 // offered on one connection
	maxPrompts = 3 // for one password
	// Beyond that a server is playing games with whoever answers.
	maxChallenges = 10
)

// authenticator logs in to one host. It lives through the redials of one Dial,
// so that what was refused is not tried again.
type authenticator struct {
	ctx   context.Context
	ep    Endpoint
	o     *DialOptions
	id    string                 // whose secrets: the instance's uid, or the jump host's address
	pause func() (resume func()) // stops the connect timer while the person is asked

	keys     []*candidate // nil until the server takes keys
	gathered bool
	bag      *keyBag

	// what this Dial has learned of the password
	pending      *secret // not judged yet
	staleStored  bool    // the kept one was refused
	refusedOnce  bool
	prompts      int    // how many of the person's answers were refused
	askedNow     bool   // the person answered for the method under way
	late         bool   // the server had hung up when the answer came
	turn         func() // ends our turn to find the password out
	fatal        error  // ends the login: declined, nobody to ask
	accepted     string // fingerprint of the key that was taken
	acceptedName string

	// this connection
	broken     func() bool
	tried      int // methods refused so far
	partial    int
	offers     int // keys
	last       string
	lastKey    *candidate
	challenged bool // keyboard-interactive came to a prompt
	challenges int
	gave       bool            // … and got the password
	dead       map[string]bool // methods that lead nowhere
	methods    []string        // what the server takes
}

// secret is a password and where it came from.
type secret struct {
	text     string
	stored   bool
	remember bool
}

// errMoreKeys says that this connection has seen enough keys and that others are
// left, errTooMany that the server has seen enough failures.
var (
	errMoreKeys = errors.New("other keys were not offered")
	errTooMany  = errors.New("too many failures for this server")
)

// begin prepares for a new connection; broken says whether it has died.
func (a *authenticator) begin(broken func() bool) {
	a.broken = broken
	a.methods, a.tried, a.partial, a.offers, a.last, a.lastKey = nil, 0, 0, 0, "", nil
	a.challenges, a.dead, a.askedNow, a.late = 0, map[string]bool{}, false, false
}

// begun is true where this connection came to the login.
func (a *authenticator) begun() bool { return a.methods != nil }

// next is the ssh.ClientAuthCallback.
func (a *authenticator) next(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.methods = c.AllowedMethods
	switch {
	case a.fatal != nil:
		return nil, a.failed(a.fatal)
	case a.ctx.Err() != nil:
		return nil, a.ctx.Err()
	case a.broken():
		return nil, errCut
	}
	a.judge(c)
	var left bool
	if a.takes("publickey") {
		var k *candidate
		if k, left = a.nextKey(); k != nil {
			a.last, a.lastKey = "publickey", k
			a.offers++
			return ssh.PublicKeys(k.signer), nil
		}
	}
	// As in OpenSSH: keyboard-interactive before password, because only it can
	// ask for a second factor.
	for _, m := range []string{"keyboard-interactive", "password"} {
		if !a.takes(m) {
			continue
		}
		a.last = m
		if m == "password" {
			return ssh.PasswordCallback(func() (string, error) { return a.password("") }), nil
		}
		a.challenged, a.gave = false, false
		return ssh.KeyboardInteractive(a.challenge), nil
	}
	if left {
		return nil, a.failed(errMoreKeys)
	}
	return nil, a.failed(nil)
}

// failed is the error of a login that ended here because of err.
func (a *authenticator) failed(err error) *AuthError {
	return &AuthError{User: a.ep.User, Methods: a.methods, Keys: a.refusedKeys(), Password: a.refusedOnce,
		Notes: slices.Concat(a.ep.Notes, a.bag.notes), Err: err}
}

func (a *authenticator) takes(method string) bool {
	return !a.dead[method] && slices.Contains(a.methods, method)
}

// judge learns from how the last method ended.
func (a *authenticator) judge(c *ssh.ClientAuthContext) {
	if n := len(c.PartialSuccessMethods); n > a.partial {
		a.partial = n
		a.worked()
		a.dead[a.last] = a.last != "publickey" // a second key may be wanted
		if a.last == "publickey" {
			a.lastKey.refused = true // it has done its part
		}
	}
	n := len(c.TriedMethods)
	if n == a.tried {
		return
	}
	a.tried = n
	switch a.last {
	case "publickey":
		a.lastKey.refused = true
	case "password":
		a.refuse()
	case "keyboard-interactive":
		// Refused without a question (message 51 to Go): it leads nowhere here.
		if !a.challenged {
			a.dead["keyboard-interactive"] = true
			return
		}
		a.refuse()
	}
}

// hungUp learns from a server that ended the connection after one failure too
// many: what was tried last was refused.
func (a *authenticator) hungUp() {
	switch {
	case a.last == "publickey":
		a.lastKey.refused = true
	case a.last != "":
		a.refuse()
	}
}

// refuse gives up a password that the server did not take.
func (a *authenticator) refuse() {
	if p := a.pending; p != nil {
		a.o.Memory.drop(passwordKey(a.id), p.text)
		a.staleStored = a.staleStored || p.stored
		a.pending = nil
	}
	if a.askedNow {
		a.prompts++
	}
	a.refusedOnce, a.askedNow = true, false
	a.endTurn()
	if a.prompts >= maxPrompts {
		a.dead["password"], a.dead["keyboard-interactive"] = true, true
	}
}

// worked keeps what the server took: after a success, or a part of one.
func (a *authenticator) worked() {
	switch a.last {
	case "publickey":
		a.accepted, a.acceptedName = a.lastKey.fingerprint(), a.lastKey.name
		a.o.Memory.SetWorkingKey(a.id, a.accepted)
	case "password", "keyboard-interactive":
		defer a.endTurn()
		p := a.pending
		if p == nil {
			return
		}
		a.pending = nil
		a.o.Memory.put(passwordKey(a.id), p.text)
		switch s := a.o.Secrets; {
		case s == nil:
		case p.remember:
			if err := s.Set(passwordKey(a.id), p.text); err != nil {
				a.bag.note("%v", err)
			}
		case a.staleStored:
			s.Delete(passwordKey(a.id)) // proven wrong
		}
	}
}

func (a *authenticator) nextKey() (k *candidate, left bool) {
	if !a.gathered {
		a.gathered = true
		a.keys = a.bag.candidates(a.ctx, a.o.Memory.WorkingKey(a.id))
	}
	for _, c := range a.keys {
		if !c.refused {
			if a.offers >= maxKeys {
				return nil, true
			}
			return c, false
		}
	}
	return nil, false
}

// nextKeyAnew is the key that a new connection would begin with.
func (a *authenticator) nextKeyAnew() *candidate {
	a.offers = 0
	k, _ := a.nextKey()
	return k
}

func (a *authenticator) refusedKeys() (names []string) {
	for _, k := range a.keys {
		if k.refused {
			names = append(names, k.name)
		}
	}
	return names
}

// password is the next one to try: typed in this run, kept, or asked for.
func (a *authenticator) password(prompt string) (string, error) {
	key := passwordKey(a.id)
	if a.pending != nil { // typed while the last connection died
		return a.pending.text, nil
	}
	if a.turn == nil {
		done, err := a.wait(key)
		if err != nil {
			return "", err
		}
		a.turn = done
	}
	if text, ok := a.o.Memory.get(key); ok {
		a.pending = &secret{text: text}
		return text, nil
	}
	if a.o.Secrets != nil && !a.staleStored {
		if text, ok := a.o.Secrets.Get(key); ok {
			a.pending = &secret{text: text, stored: true}
			return text, nil
		}
	}
	q := Question{Kind: AskPassword, Prompt: prompt, Retry: a.refusedOnce, CanRemember: a.canRemember()}
	if prompt == "" {
		q.Prompt = "Password of " + a.ep.Address()
	}
	ans, err := a.ask(q)
	if err != nil {
		return "", err
	}
	a.pending = &secret{text: ans.Text, remember: ans.Remember}
	return ans.Text, nil
}

// wait waits for the turn to ask for a secret. The connect timer stands still:
// another connection's person may be typing.
func (a *authenticator) wait(key string) (done func(), err error) {
	defer a.pause()()
	done, err = a.o.Memory.turn(a.ctx, key)
	a.late = a.broken()
	return done, err
}

// endTurn lets others look for the password: it was judged, or this login is over.
func (a *authenticator) endTurn() {
	if a.turn != nil {
		a.turn()
		a.turn = nil
	}
}

func (a *authenticator) canRemember() bool { return a.o.Secrets != nil && a.o.Secrets.Available() }

// ask reaches the person; the connect timer stands still meanwhile.
func (a *authenticator) ask(q Question) (Answer, error) {
	q.Instance, q.Host = a.o.Instance, a.ep.Address()
	defer a.pause()()
	ans, err := askPerson(a.ctx, a.o, q)
	if err != nil {
		if q.Kind != AskPassphrase { // without that key another method may do
			a.fatal = err
		}
		return Answer{}, err
	}
	a.askedNow = q.Kind != AskPassphrase
	a.late = a.broken()
	return ans, nil
}

// askPerson puts q to the person; an answer of no is ErrDeclined.
func askPerson(ctx context.Context, o *DialOptions, q Question) (Answer, error) {
	if o.Ask == nil {
		return Answer{}, ErrNobodyToAsk
	}
	o.stage("waiting for your answer")
	ans, err := o.Ask.Ask(ctx, q)
	switch {
	case err != nil:
		return Answer{}, err
	case !ans.OK:
		return Answer{}, ErrDeclined
	}
	return ans, nil
}

// passphrase is the keyBag's way to ask. The answer is kept once it has opened
// the file.
func (a *authenticator) passphrase(file string, retry bool) (string, func(), error) {
	key := passphraseKey(file)
	done, err := a.wait(key)
	if err != nil {
		return "", nil, err
	}
	defer done()
	if retry { // what is remembered has just failed
		if p, ok := a.o.Memory.get(key); ok {
			a.o.Memory.drop(key, p)
		}
	} else {
		if p, ok := a.o.Memory.get(key); ok {
			return p, func() {}, nil
		}
		if a.o.Secrets != nil {
			if p, ok := a.o.Secrets.Get(key); ok {
				return p, func() { a.o.Memory.put(key, p) }, nil
			}
		}
	}
	ans, err := a.ask(Question{Kind: AskPassphrase, Prompt: "Passphrase of " + Clean(file), KeyFile: Clean(file), Retry: retry, CanRemember: a.canRemember()})
	if err != nil {
		return "", nil, err
	}
	// Others that wait for their turn shall find it at once; a wrong one is
	// replaced by the retry.
	a.o.Memory.put(key, ans.Text)
	return ans.Text, func() {
		if ans.Remember && a.o.Secrets != nil {
			if err := a.o.Secrets.Set(key, ans.Text); err != nil {
				a.bag.note("%v", err)
			}
		}
	}, nil
}

// secondFactor matches prompts that want something other than the password.
var secondFactor = regexp.MustCompile(`(?i)code|token|otp|factor|verif|pin\b|passcode|answer|question|验证|令牌|动态`)

// challenge answers keyboard-interactive. The first lone prompt that is not shown
// while typed is the password; everything else goes to the person.
func (a *authenticator) challenge(name, instruction string, prompts []string, echos []bool) ([]string, error) {
	if len(prompts) == 0 {
		return nil, nil
	}
	if a.challenges++; a.challenges > maxChallenges || len(prompts) > maxChallenges {
		return nil, fmt.Errorf("the server asked more than %d questions", maxChallenges)
	}
	a.challenged = true
	if len(prompts) == 1 && !echos[0] && !a.gave && !secondFactor.MatchString(prompts[0]) {
		a.gave = true
		text, err := a.password(Short(prompts[0], 200))
		return []string{text}, err
	}
	answers := make([]string, len(prompts))
	for i, p := range prompts {
		if p = Short(p, 200); p == "" {
			p = Short(instruction, 200)
		}
		ans, err := a.ask(Question{Kind: AskInteractive, Prompt: p, Echo: echos[i], Retry: a.refusedOnce && i == 0})
		if err != nil {
			return nil, err
		}
		answers[i] = ans.Text
	}
	return answers, nil
}

// jumpID names a jump host in secrets and host keys: it is no instance.
func jumpID(e Endpoint) string {
	return "jump:" + url.PathEscape(e.User) + "@" + joinPort(e.Host, e.Port)
}
