// Command report reads `go test -json` and tells what a person wants to know: a
// line a package as it ends, the output of what failed, every skipped test with
// its reason, and one closing line. It ends with 1 if anything failed, nothing
// ran, or, with -no-skips, anything was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// tally is what a run came to.
type tally struct {
	passed, failed, skipped int
	broken                  int // packages that failed outside any test
	skips                   []string
	unsteady                []string      // failed among others, passed alone
	again                   map[whole]int // failures, with those of its parts, by test
}

// whole is a test as `go test -run` can name it.
type whole struct{ pkg, test string }

func main() {
	noSkips := flag.Bool("no-skips", false, "a skipped test is a failure")
	again := flag.String("again", "", "run what failed once more, alone, with these arguments of `go test`")
	flag.Parse()
	t, err := read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	if *again != "" {
		t.retry(os.Stdout, func(w whole) error {
			args := append(append([]string{"test"}, strings.Fields(*again)...), "-count=1", "-run", "^"+w.test+"$", w.pkg)
			cmd := exec.Command("go", args...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			return cmd.Run()
		})
	}
	os.Exit(t.close(os.Stdout, *noSkips))
}

// read follows a run to its end.
func read(in io.Reader, out io.Writer) (tally, error) {
	var t tally
	output := map[string][]string{} // by package and test, until it ends
	failures := map[string]int{}    // failed tests by package
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return t, nil
		}
		if err != nil && err != io.EOF {
			return t, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line)
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			output[key] = append(output[key], e.Output)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "pass", "fail", "skip":
			t.ended(out, e, output[key], failures)
			delete(output, key)
		}
	}
}

// ended counts one test or package and prints what should be seen of it.
func (t *tally) ended(out io.Writer, e event, output []string, failures map[string]int) {
	switch {
	case e.Test == "" && e.Action == "skip":
		// a package without tests
	case e.Test == "":
		fmt.Fprintf(out, "%-4s %s  %.1fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Package, e.Elapsed)
		if e.Action == "fail" && failures[e.Package] == 0 {
			t.broken++
			fmt.Fprint(out, strings.Join(output, ""))
		}
	case e.Action == "pass":
		t.passed++
	case e.Action == "fail":
		t.failed++
		failures[e.Package]++
		if t.again == nil {
			t.again = map[whole]int{}
		}
		top, _, _ := strings.Cut(e.Test, "/")
		t.again[whole{e.Package, top}]++
		fmt.Fprintf(out, "--- FAIL: %s %s (%.2fs)\n%s", e.Package, e.Test, e.Elapsed, strings.Join(output, ""))
	case e.Action == "skip":
		t.skipped++
		t.skips = append(t.skips, e.Package+" "+e.Test+": "+reason(output))
	}
}

// reason is what a skipped test said.
func reason(output []string) string {
	var said []string
	for _, l := range output {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "=== ") && !strings.HasPrefix(l, "--- ") {
			said = append(said, l)
		}
	}
	return strings.Join(said, " ")
}

// maxAgain is how many tests may be unsteady at once: more is a real failure.
const maxAgain = 6

// retry runs each failed test once more, alone: the tests run against real servers
// and clocks, and a busy machine is slower than they allow. One that passes then
// counts, and is named.
func (t *tally) retry(out io.Writer, run func(whole) error) {
	if t.broken > 0 || len(t.again) > maxAgain {
		return
	}
	for w, n := range t.again {
		fmt.Fprintf(out, "\n== once more, alone: %s %s\n", w.pkg, w.test)
		if err := run(w); err != nil {
			continue
		}
		t.failed -= n
		t.passed += n
		t.unsteady = append(t.unsteady, w.pkg+" "+w.test)
	}
}

// close prints the end and returns the exit code.
func (t tally) close(out io.Writer, noSkips bool) int {
	fmt.Fprintln(out)
	for _, s := range t.skips {
		fmt.Fprintln(out, "skipped:", s)
	}
	for _, s := range t.unsteady {
		fmt.Fprintln(out, "unsteady, passed only when run alone:", s)
	}
	failed := t.failed + t.broken
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", t.passed, failed, t.skipped)
	switch {
	case failed > 0:
		fmt.Fprintln(out, "FAIL")
		return 1
	case t.passed == 0:
		fmt.Fprintln(out, "FAIL: no test ran")
		return 1
	case noSkips && t.skipped > 0:
		fmt.Fprintln(out, "FAIL: a test was skipped; here each must run")
		return 1
	}
	fmt.Fprintln(out, "all good")
	return 0
}
