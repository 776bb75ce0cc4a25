package provider

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote/needtest"
)

// TestStopInside runs the scripts with stand-ins for the programs that they call.
func TestStopInside(t *testing.T) {
	t.Parallel()
	sh := needtest.Program(t, "sh")
	for _, c := range []struct {
		kind, program string
		env           []string
		want          string // what the stand-in was told
	}{
		{"runpod", "runpodctl", []string{"RUNPOD_POD_ID=abc", "RUNPOD_API_KEY=secret"}, "stop pod abc"},
		{"vast", "curl", []string{"CONTAINER_ID=42", "CONTAINER_API_KEY=secret"}, "/instances/42/"},
	} {
		in, err := StopInside(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		run := func(script string, env ...string) (string, error) {
			cmd := exec.Command(sh, "-c", script)
			cmd.Env = append(env, "PATH="+dir+":/usr/bin:/bin", "D="+dir)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := run(in.Check); err == nil || !strings.Contains(out, "no ") && !strings.Contains(out, "not ") {
			t.Errorf("%s: the check is content with nothing: %q", c.kind, out)
		}
		stand := "#!/bin/sh\nprintf '%s ' \"$@\" >>\"$D/args\"\n[ -t 0 ] || cat >>\"$D/stdin\" </dev/stdin\n"
		if err := os.WriteFile(filepath.Join(dir, c.program), []byte(stand), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := run(in.Check, c.env...); err != nil {
			t.Errorf("%s: check: %v %s", c.kind, err, out)
		}
		if out, err := run(in.Stop, c.env...); err != nil {
			t.Errorf("%s: stop: %v %s", c.kind, err, out)
		}
		args, _ := os.ReadFile(filepath.Join(dir, "args"))
		if !strings.Contains(string(args), c.want) || strings.Contains(string(args), "secret") {
			t.Errorf("%s was called with %q", c.program, args)
		}
	}
}

// TestNotInside: every kind has a way or says why not and what to do.
func TestNotInside(t *testing.T) {
	t.Parallel()
	for _, kind := range append(Kinds(), "", "command", "demo", "other") {
		in, err := StopInside(kind)
		var no *NotInsideError
		if (in.Stop == "") != (err != nil) || err != nil && (!errors.As(err, &no) || no.Why == "" || no.Cure == "") {
			t.Errorf("%q: %+v, %v", kind, in, err)
		}
	}
}
