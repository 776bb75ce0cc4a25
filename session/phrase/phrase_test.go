package phrase

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	idle := Say("alert.idle", "24 min").Then(Say("alert.idle.rate", "4.98 CNY"), Count("alert.idle.files", 1))
	for want, text := range map[string]Text{
		"has been idle for 24 min at 4.98 CNY/h and holds 1 file that exists nowhere else": idle,
		"could not be checked: no route":                    Say("release.unchecked").Of(errors.New("no route")),
		"2 uncommitted, 1 stashed":                          List(Say("git.uncommitted", 2), nil, Say("git.stashed", 1)),
		"uncommitted or unpushed work in the git tree":      Count("git.lost", 1, 1),
		"uncommitted or unpushed work in 2 of 3 git trees":  Count("git.lost", 3, 2),
		"95 % of the budget of 50 is used":                  Say("alert.budget.part", 95, 50),
		"100 % of everything, which nobody formats: 1 file": Plain("100 % of everything, which nobody formats: 1 file"),
	} {
		if got := text.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	raw, err := json.Marshal(struct {
		A Text `json:"a"`
		B Text `json:"b,omitempty"`
	}{A: Say("snapshot.declined")})
	if err != nil || string(raw) != `{"a":"declined"}` {
		t.Errorf("JSON %s, %v", raw, err)
	}
	if s := Say("job.killed", "a\x1b[31mb\nc").String(); strings.ContainsAny(s, "\x1b\n") {
		t.Errorf("not clean: %q", s)
	}
}

// The singular that a language does not have is its plural.
func TestSingular(t *testing.T) {
	zh := map[ID]string{"snapshot.taken": "%s 个"}
	if got := Count("snapshot.taken", 1).In(zh); got != "1 个" {
		t.Errorf("%q", got)
	}
}

var verb = regexp.MustCompile(`%(\[\d+\])?s`)

// Session says only what is in the list, with as many arguments as its template
// takes; and all of the list is said somewhere.
func TestEveryIDIsSaid(t *testing.T) {
	said := map[ID]bool{"comma": true}
	var prefixes []string
	fset := token.NewFileSet()
	look := func(call *ast.CallExpr, name string) {
		at := fset.Position(call.Pos())
		for i, arg := range call.Args {
			id, err := "", error(nil)
			switch arg := arg.(type) {
			case *ast.BasicLit:
				id, err = strconv.Unquote(arg.Value)
				if name == "Word" {
					prefixes = append(prefixes, id)
					continue
				}
			case *ast.BinaryExpr: // "note.until."+state
				if lit, ok := arg.X.(*ast.BasicLit); ok {
					if p, err := strconv.Unquote(lit.Value); err == nil && strings.HasSuffix(p, ".") {
						prefixes = append(prefixes, p)
					}
				}
				continue
			}
			if err != nil || id == "" || !strings.Contains(id, ".") || i > 0 && name != "ofKind" && name != "ofGoal" && name != "counting" {
				continue
			}
			template, ok := english[ID(id)]
			said[ID(id)] = true
			if !ok {
				t.Errorf("%s: %q is not in the list", at, id)
				continue
			}
			n := len(call.Args) - 1
			switch name {
			case "Say":
			case "Count":
				said[ID(id+".1")] = true
				if _, ok := english[ID(id+".1")]; !ok {
					t.Errorf("%s: %q has no singular", at, id)
				}
			default:
				continue
			}
			if want := len(verb.FindAllString(template, -1)); n != want && !call.Ellipsis.IsValid() {
				t.Errorf("%s: %q takes %d arguments, not %d", at, id, want, n)
			}
		}
	}
	// The rules give keys with their arguments: Text{Key: "alert.x", Args: []any{…}}.
	rule := func(lit *ast.CompositeLit) {
		id, args, many := "", 0, false
		for _, e := range lit.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return
			}
			switch key, _ := kv.Key.(*ast.Ident); key.Name {
			case "Key":
				switch v := kv.Value.(type) {
				case *ast.BasicLit:
					id, _ = strconv.Unquote(v.Value)
				case *ast.BinaryExpr:
					if l, ok := v.X.(*ast.BasicLit); ok {
						p, _ := strconv.Unquote(l.Value)
						prefixes = append(prefixes, p)
					}
				}
			case "Args":
				if l, ok := kv.Value.(*ast.CompositeLit); ok {
					args = len(l.Elts)
				}
			case "Many":
				many = true
			}
		}
		if !strings.Contains(id, ".") {
			return
		}
		template, ok := english[ID(id)]
		said[ID(id)] = true
		if many {
			args++
			said[ID(id+".1")] = true
			if _, ok := english[ID(id+".1")]; !ok {
				t.Errorf("%q has no singular", id)
			}
		}
		if n := len(verb.FindAllString(template, -1)); !ok || n != args {
			t.Errorf("%s: %q takes %d arguments, not %d", fset.Position(lit.Pos()), id, n, args)
		}
	}
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if kind, ok := lit.Type.(*ast.Ident); ok && kind.Name == "Text" || lit.Type == nil && len(lit.Elts) > 0 {
					rule(lit)
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			switch name {
			case "Say", "Count", "Word", "note", "ofKind", "ofGoal", "counting", "ID":
				look(call, name)
			}
			return true
		})
		return nil
	}
	for _, dir := range []string{"..", "../../remote/gpu/alarm"} {
		if err := filepath.WalkDir(dir, walk); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) < 100 {
		t.Fatalf("found only %d: the test looks in the wrong place", len(said))
	}
next:
	for id := range english {
		if said[id] {
			continue
		}
		for _, p := range prefixes {
			if strings.HasPrefix(string(id), p) {
				continue next
			}
		}
		t.Errorf("nothing says %q", id)
	}
}
