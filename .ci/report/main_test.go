package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const (
		pass   = `{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}` + "\n"
		skip   = `{"Action":"output","Package":"p","Test":"TestS","Output":"    x_test.go:9: needs fish\n"}` + "\n" + `{"Action":"skip","Package":"p","Test":"TestS"}` + "\n"
		fail   = `{"Action":"output","Package":"p","Test":"TestF","Output":"    x_test.go:7: wrong\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestF"}` + "\n"
		okP    = `{"Action":"pass","Package":"p","Elapsed":1}` + "\n"
		failP  = `{"Action":"fail","Package":"p","Elapsed":1}` + "\n"
		build  = `{"ImportPath":"p","Action":"build-output","Output":"p/x.go:1: undefined: y\n"}` + "\n"
		panics = `{"Action":"output","Package":"p","Output":"panic: boom\n"}` + "\n"
		empty  = `{"Action":"skip","Package":"q"}` + "\n"
	)
	for _, c := range []struct {
		name, in string
		noSkips  bool
		code     int
		says     string
	}{
		{"all pass", pass + okP, true, 0, "1 passed, 0 failed, 0 skipped"},
		{"a skip is told", pass + skip + okP, false, 0, "skipped: p TestS: x_test.go:9: needs fish"},
		{"a skip where none may be", pass + skip + okP, true, 1, "FAIL: a test was skipped"},
		{"a failure with its output", pass + fail + failP, false, 1, "x_test.go:7: wrong"},
		{"a package that does not build", build + failP + pass, false, 1, "undefined: y"},
		{"a package that dies outside a test", pass + panics + failP, false, 1, "panic: boom"},
		{"nothing ran", empty, false, 1, "no test ran"},
		{"no output at all", "", false, 1, "no test ran"},
		{"a package without tests", pass + okP + empty, true, 0, "all good"},
		{"noise between", "warning: x\n" + pass + okP, true, 0, "warning: x"},
	} {
		var out bytes.Buffer
		tally, err := read(strings.NewReader(c.in), &out)
		if err != nil {
			t.Fatal(err)
		}
		if code := tally.close(&out, c.noSkips); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s", c.name, code, c.code, c.says, out.String())
		}
	}
}

// TestRetry: what passes alone counts and is named; what does not, and what is too
// much, stays failed.
func TestRetry(t *testing.T) {
	failing := func(n int) tally {
		v := tally{passed: 1, failed: 2 * n, again: map[whole]int{}}
		for i := range n {
			v.again[whole{"p", fmt.Sprint("Test", i)}] = 2 // the test and a part of it
		}
		return v
	}
	for _, c := range []struct {
		name  string
		tally tally
		err   error
		code  int
		says  string
	}{
		{"passes alone", failing(1), nil, 0, "unsteady, passed only when run alone: p Test0"},
		{"fails again", failing(1), errors.New("exit status 1"), 1, "2 failed"},
		{"too many", failing(maxAgain + 1), nil, 1, "FAIL"},
		{"a broken package", tally{passed: 1, failed: 1, broken: 1, again: map[whole]int{{"p", "TestA"}: 1}}, nil, 1, "FAIL"},
	} {
		var out bytes.Buffer
		c.tally.retry(&out, func(whole) error { return c.err })
		if code := c.tally.close(&out, true); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: code %d, said %q", c.name, code, out.String())
		}
	}
}
