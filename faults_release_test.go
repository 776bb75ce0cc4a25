package main_test

// An instance is torn down only after every artifact was proven, or waived by its
// name; a crash skips no check; "gone" is the provider's word and nobody else's.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// slowTools would have each release list this machine's packages.
var slowTools = []string{"dpkg-query", "apt-mark", "pip", "pip3"}

// cloud is a provider of shell lines. It writes down each call; destroy compares
// the artifact's two sides by itself at that moment, and asks nobody.
type cloud struct {
	*rig
	dir, far, near string
}

// newCloud makes box one of the cloud's, with ~/out as its artifact. status and
// destroy are what the lines do after they were written down.
func newCloud(t *testing.T, status, destroy string) *cloud {
	t.Helper()
	c := &cloud{rig: newRig(t, sshtest.Options{Hide: slowTools})}
	c.dir = filepath.Join(c.rig.dir, "cloud")
	c.far, c.near = filepath.Join(c.srv.Home, "out/model.bin"), filepath.Join(c.rig.dir, "near/model.bin")
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.say("running")
	in := "cd '" + c.dir + "' && "
	c.run("edit", "box", "--provider", "command", "--look-in", "~/out", "--artifact", "~/out="+filepath.Dir(c.near),
		"--command", "status="+in+"echo status >>calls; "+status,
		"--command", "destroy="+in+fmt.Sprintf("if cmp -s '%s' '%s'; then echo destroy proven; else echo destroy UNPROVEN; fi >>calls; ", c.far, c.near)+destroy)
	c.train("weights 0")
	c.save()
	return c
}

// stillAnswers is how a release ends that was torn down and proven: the cloud's
// machine goes on answering here, so it may be billed, which is no success.
const stillAnswers = 1

// say changes what the cloud says about the instance.
func (c *cloud) say(state string) {
	if err := os.WriteFile(filepath.Join(c.dir, "state"), []byte(state+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cloud) says() string { return c.file("state") }

func (c *cloud) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(c.dir, name))
	return strings.TrimSpace(string(b))
}

// destroys counts the requests.
func (c *cloud) destroys() int { return strings.Count(c.file("calls"), "destroy") }

// train changes the artifact there; save brings it here.
func (c *cloud) train(text string) {
	c.run("exec", "box", "--", "mkdir -p out && echo '"+text+"' >out/model.bin")
}
func (c *cloud) save() { c.run("pull", "box", "out", filepath.Dir(c.near)) }

// give is the release as a script asks for it.
func (c *cloud) give(more ...string) []string {
	return append([]string{"release", "box", "--destroy", "--name", "box"}, more...)
}

// TestFaultsReleaseKilled9 kills rentop at random moments of a release. After some
// of the kills the artifact changes, so that what was proven before is worth
// nothing any more.
func TestFaultsReleaseKilled9(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "sleep 0.05; cat state", "sleep 0.3; echo gone >state")
	rng := seeded(5)
	before := c.proxy.Passed(sshtest.ToServer)
	if out, errs, code := c.try("release", "box", "--check"); code != 0 {
		t.Fatalf("not all is safe in the first place: %d %s%s", code, out, errs)
	}
	most := 2 * (c.proxy.Passed(sshtest.ToServer) - before) // a release checks twice
	done, kills := false, 0
	for i := 1; i <= 6 && !done; i++ {
		if done = !c.killed9(sshtest.ToServer, rng.Int64N(most), c.give()...); done {
			break
		}
		kills++
		if i%3 == 0 && c.destroys() == 0 { // not saved: the next release must see that and refuse
			c.train(fmt.Sprint("weights ", i))
			out, errs, code := c.try(c.give()...)
			if code != 3 || !strings.Contains(errs, "model.bin") {
				t.Errorf("with an unsaved artifact after a kill: %d\n%s%s", code, out, errs)
			}
			c.save()
		}
	}
	if !done {
		if out, errs, code := c.try(c.give()...); code != stillAnswers || !strings.Contains(errs, "command says gone") {
			t.Errorf("the last release: %d\n%s%s", code, out, errs)
		}
	}
	if calls := c.file("calls"); c.says() != "gone" || c.destroys() != 1 || strings.Contains(calls, "UNPROVEN") {
		t.Errorf("the cloud says %s, destroyed %d times: %s", c.says(), c.destroys(), calls)
	}
	if kills < 3 {
		t.Errorf("%d kills: that proves little", kills)
	}
}

// TestFaultsReleaseKilledAtTeardown kills rentop right when the request is made:
// it is asked about, not made again.
func TestFaultsReleaseKilledAtTeardown(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "cat state", "sleep 0.5; echo gone >state")
	if !c.killedWhen(func() bool { return c.destroys() > 0 }, c.give()...) {
		t.Fatal("over before the kill")
	}
	out, errs, code := c.try(c.give()...)
	if code != stillAnswers || c.says() != "gone" || c.destroys() != 1 {
		t.Errorf("%d, the cloud says %s after %d requests\n%s%s", code, c.says(), c.destroys(), out, errs)
	}
}

// TestFaultsReleaseNotDone: accepted and not done is not gone, also after a kill, on
// the next screen, and until the cloud says so.
func TestFaultsReleaseNotDone(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "cat state", "true")
	if !c.killedWhen(func() bool { return strings.HasSuffix(c.file("calls"), "destroy proven\nstatus\nstatus") }, c.give()...) {
		t.Fatal("over without the cloud's word")
	}
	var list []struct{ State string }
	if c.runJSON(&list, "ls", "--json"); len(list) != 1 || list[0].State != "live" {
		t.Errorf("ls: %+v", list)
	}
	p := c.sitDown(100, 30)
	p.sees(20*time.Second, "● live")
	p.press("r")
	if screen := p.sees(5*time.Second, "Waiting for the provider's proof"); strings.Contains(screen, "says gone") {
		t.Errorf("gone, says the screen:\n%s", screen)
	}
	c.say("gone")
	p.sees(40*time.Second, "command says gone")
	if n := c.destroys(); n != 1 {
		t.Errorf("requested %d times", n)
	}
}

// TestFaultsReleaseLies: a status line that fails or talks nonsense proves nothing,
// and "gone" about an instance that answers is not believed.
func TestFaultsReleaseLies(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "cat state; exit $(cat code)", "echo gone >state; echo 0 >code")
	c.train("weights 1") // and not saved
	for _, lie := range []struct{ state, code string }{{"", "1"}, {"perhaps", "0"}, {"gone", "0"}, {`{"state": 7}`, "0"}, {"running", "4"}} {
		c.say(lie.state)
		if err := os.WriteFile(filepath.Join(c.dir, "code"), []byte(lie.code), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := c.try(c.give()...)
		if code != 3 || c.destroys() > 0 || strings.Contains(errs, "says gone") || !strings.Contains(errs, "model.bin") {
			t.Errorf("status says %q with %s: ended with %d, %d requests\n%s%s", lie.state, lie.code, code, c.destroys(), out, errs)
		}
	}
	// Waived by the name, it goes: unproven, and only then.
	if out, errs, code := c.try(c.give("--yes")...); code != stillAnswers || !strings.Contains(c.file("calls"), "destroy UNPROVEN") {
		t.Errorf("waived: %d\n%s%s", code, out, errs)
	}
}

// TestFaultsProviderHangs: a status line that never ends holds nothing else up.
func TestFaultsProviderHangs(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "cat state", "true")
	c.run("edit", "box", "--command", "status=sleep 1000")
	began := time.Now()
	c.run("exec", "box", "--", "true")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("a command waited %v for a provider that hangs", took)
	}
	p := c.sitDown(100, 30)
	p.sees(15*time.Second, "● live")
	p.press("q")
	p.sees(5*time.Second, "ended with 0")
}
