package main_test

// The house rules of docs/architecture.md as a test: which room may import
// what, and how a file and a package look. It reads the source of every
// platform, not only of the one that runs it.

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const module = "rentop"

// maxLines is how long a source file may grow before it must be split.
const maxLines = 500

// floors are the rooms from top to bottom. A room imports itself and what lies
// below it; themes is beside tui and imports nothing of ours.
var floors = []string{"tui", "session", "sync", "remote"}

// doors names the only packages that may import something. A key ending in "/"
// covers everything below it.
var doors = []struct {
	what string
	only []string
	why  string
}{
	{"rentop/themes", []string{".", "tui/"}, "colours are the screen's affair"},
	{"charm.land/", []string{".", "tui/"}, "only tui meets a person"},
	{"github.com/spf13/", []string{".", "tui/command/"}, "only commands have flags"},
	{"golang.org/x/crypto/ssh", []string{"remote/"}, "remote is the one SSH connection"},
	{"github.com/pkg/sftp", []string{"remote/", "sync/"}, "files move in sync, over remote"},
	{"modernc.org/sqlite", []string{"session/ledger/"}, "the ledger is the only database"},
	{"database/sql", []string{"session/ledger/"}, "the ledger is the only database"},
	{"github.com/pelletier/go-toml", []string{"session/config/"}, "one reader of config.toml"},
	{"github.com/zalando/go-keyring", []string{"remote/"}, "one place that keeps secrets"},
	{"github.com/creack/pty", []string{"remote/demo/", "remote/sshtest/"}, "only our own servers make terminals"},
	{"os/exec", []string{
		"remote",                 // ssh -G, ProxyCommand, a local runner
		"remote/provider",        // the person's own lines for provider = "command"
		"remote/demo",            // the simulated instances' shells
		"remote/sshtest",         // the tests' servers
		"remote/store/storetest", // the tests' bucket
		"remote/agent/agenttest", // go build, for tests
		"remote/gpu/guard",       // on the instance: the readers of GPUs, the person's save and action
		"remote/needtest",        // looks whether a program is there
	}, "a program of this machine is started only where this list says"},
	{"net", []string{"remote/"}, "remote owns the network"},
	{"net/http", []string{"remote/"}, "remote owns the network"},
	{"C", nil, "every build is CGO_ENABLED=0"},
	{"plugin", nil, "every build is CGO_ENABLED=0"},
}

// ladders are the imports that go upwards for a reason: what the helper on an instance
// does belongs to other rooms.
var ladders = map[string][]string{
	"remote/agent/rentop-agent":          {"sync/far"},
	"remote/agent/rentop-agent/services": {"sync/far"},
}

// bare lists packages that may import nothing of ours but what is named.
var bare = map[string][]string{
	"session/billing": {},
	"session/fit":     {},
	"session/ledger":  {"session/billing", "session/phrase"},
	"session/plan":    {"session/billing"},
	"themes":          {},
}

// pure packages compute: no files, no network, no clock of their own.
var pure = []string{"session/billing", "session/fit", "session/plan", "themes"}

type source struct {
	pkg   string // folder relative to the root, "." for main
	name  string // path relative to the root
	test  bool
	lines int
	file  *ast.File
	fset  *token.FileSet
}

func (s source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// TestLayers is the layering of docs/architecture.md.
func TestLayers(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue // a test may stand on any floor to see its own
		}
		for _, imp := range s.imports() {
			for _, complaint := range judge(s.pkg, imp) {
				t.Errorf("%s imports %q\n\t%s", s.name, imp, complaint)
			}
		}
	}
}

// judge returns why package pkg must not import imp; nothing where it may.
func judge(pkg, imp string) []string {
	var out []string
	ours, isOurs := strings.CutPrefix(imp, module+"/")
	if isOurs {
		if why := climb(pkg, ours); why != "" {
			out = append(out, why)
		}
		if allowed, is := bare[pkg]; is && !within(ours, allowed) {
			out = append(out, fmt.Sprintf("%s stands alone: of ours it may import only %s", pkg, list(allowed)))
		}
		if strings.HasSuffix(ours, "test") && !strings.HasSuffix(pkg, "test") {
			out = append(out, "a package named …test is only for tests")
		}
	}
	for _, d := range doors {
		if (imp == d.what || strings.HasPrefix(imp, strings.TrimSuffix(d.what, "/")+"/") && d.what != "net") && !within(pkg, d.only) {
			out = append(out, fmt.Sprintf("%s: allowed only in %s", d.why, list(d.only)))
		}
	}
	if within(pkg, pure) {
		switch imp {
		case "os", "os/exec", "net", "net/http", "io/ioutil", "log":
			out = append(out, pkg+" only computes: it takes values and returns values")
		}
	}
	return out
}

// climb says why an import from pkg to a package of ours goes upwards.
func climb(pkg, imp string) string {
	from, to := room(pkg), room(imp)
	if from == "." || from == to {
		return ""
	}
	if to == "." {
		return "nothing imports main"
	}
	have, want := index(floors, from), index(floors, to)
	if have >= 0 && want >= 0 && want < have && !within(imp, ladders[pkg]) {
		return fmt.Sprintf("imports run downwards only: %s; %s is above %s", strings.Join(floors, " → "), to, from)
	}
	return ""
}

// TestLayersCatch proves that the rules bite.
func TestLayersCatch(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		bad      bool
	}{
		{"remote", "rentop/session", true},
		{"remote/gpu", "rentop/sync", true},
		{"sync", "rentop/session/ledger", true},
		{"session", "rentop/tui/command", true},
		{"session", "rentop/themes", true},
		{"session/billing", "rentop/remote", true},
		{"session/billing", "os", true},
		{"session/ledger", "rentop/session/billing", false},
		{"session/ledger", "rentop/remote", true},
		{"session", "charm.land/lipgloss/v2", true},
		{"tui", "net", true},
		{"tui", "net/url", false},
		{"tui/command", "os/exec", true},
		{"sync", "rentop/remote/sshtest", true},
		{"remote/agent/rentop-agent/services", "rentop/sync/far", false},
		{"remote/agent/rentop-agent/services", "rentop/sync", true},
		{"remote/agent", "rentop/sync/far", true},
		{"tui", "rentop/session", false},
		{"tui/command", "rentop/remote/demo", false},
		{".", "rentop/tui/command", false},
		{"sync", "rentop/remote", false},
	} {
		if got := judge(c.pkg, c.imp); (len(got) > 0) != c.bad {
			t.Errorf("%s importing %s: complaints %q, want some: %v", c.pkg, c.imp, got, c.bad)
		}
	}
}

// TestHelperIsSmall: what runs on an instance links nothing that only we need.
func TestHelperIsSmall(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range load(t) {
		if !s.test {
			imports[s.pkg] = append(imports[s.pkg], s.imports()...)
		}
	}
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, imp := range imports[pkg] {
			if ours, is := strings.CutPrefix(imp, module+"/"); is {
				visit(ours)
			}
			switch {
			case imp == "rentop/remote", imp == "rentop/sync", imp == "net", imp == "net/http",
				strings.HasPrefix(imp, "golang.org/x/crypto"), strings.HasPrefix(imp, "github.com/pkg/sftp"):
				t.Errorf("%s imports %q: the helper on an instance would carry it", pkg, imp)
			}
		}
	}
	visit("remote/agent/rentop-agent")
	visit("remote/agent/rentop-guard")
	if !seen["sync/far"] || !seen["remote/agent/link"] {
		t.Error("the helper was not found whole")
	}
}

// TestRooms keeps the top level as it is: five rooms and nothing else.
func TestRooms(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range load(t) {
		r := room(s.pkg)
		if !seen[r] && r != "." && r != "themes" && index(floors, r) < 0 {
			t.Errorf("%s: there is no room %q; the rooms are %s and themes", s.name, r, strings.Join(floors, ", "))
		}
		seen[r] = true
	}
}

// TestFiles: no file too long to hold in the head, no work in init.
func TestFiles(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue
		}
		if s.lines > maxLines && !strings.HasSuffix(s.pkg, "test") { // a conformance suite is a test
			t.Errorf("%s has %d lines; split it by purpose (at most %d)", s.name, s.lines, maxLines)
		}
		for _, d := range s.file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: give the work an owner who calls it", s.fset.Position(f.Pos()))
			}
		}
	}
}

// TestSkips: one package skips tests, and it says what is missing.
func TestSkips(t *testing.T) {
	for _, s := range load(t) {
		if s.pkg == "remote/needtest" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if f, is := call.Fun.(*ast.SelectorExpr); is && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf" || f.Sel.Name == "SkipNow") {
				if x, is := f.X.(*ast.Ident); is && (x.Name == "t" || x.Name == "b" || x.Name == "f" || x.Name == "tb") {
					t.Errorf("%s: ask remote/needtest for what the test needs", s.fset.Position(call.Pos()))
				}
			}
			return true
		})
	}
}

// TestPackageDocs: every package says what it is for.
func TestPackageDocs(t *testing.T) {
	docs, where := map[string]bool{}, map[string]string{}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		where[s.pkg] = s.name
		docs[s.pkg] = docs[s.pkg] || s.file.Doc.Text() != ""
	}
	for pkg, has := range docs {
		if !has {
			t.Errorf("package %s (%s …) has no comment: its first lines say what it is for", pkg, where[pkg])
		}
	}
}

// TestDependenciesExplained: each direct module is in docs/dependencies.md.
func TestDependenciesExplained(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllSubmatch(mod, -1) {
		if !bytes.Contains(doc, append([]byte("`"), append(m[1], '`')...)) {
			t.Errorf("docs/dependencies.md does not say why %s is needed", m[1])
		}
	}
}

// load parses every Go file of the module.
func load(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		out = append(out, source{
			pkg: path.Dir(p), name: p, test: strings.HasSuffix(name, "_test.go"),
			lines: bytes.Count(text, []byte("\n")), file: f, fset: fset,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d Go files: the test must run at the module's root", len(out))
	}
	return out
}

func room(pkg string) string {
	r, _, _ := strings.Cut(pkg, "/")
	return r
}

// within tells whether pkg is one of allowed; an entry ending in "/" covers the
// package before the slash and all below it.
func within(pkg string, allowed []string) bool {
	for _, a := range allowed {
		if below, is := strings.CutSuffix(a, "/"); pkg == a || is && (pkg == below || strings.HasPrefix(pkg, a)) {
			return true
		}
	}
	return false
}

func index(in []string, s string) int {
	for i, v := range in {
		if v == s {
			return i
		}
	}
	return -1
}

func list(in []string) string {
	if len(in) == 0 {
		return "nothing"
	}
	out := append([]string(nil), in...)
	sort.Strings(out)
	return strings.Join(out, ", ")
}
