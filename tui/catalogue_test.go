package tui

// Every text that the screens ask for is in the catalogues, and every action has
// its words.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/release"
	"rentop/tui/text"
)

func TestTextsExist(t *testing.T) {
	l, err := text.Load("en")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	want := func(at token.Pos, id string) {
		asked++
		if !l.Has(id) {
			t.Errorf("%s: the catalogues lack %q", fset.Position(at), id)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "T" && sel.Sel.Name != "N" || len(n.Args) == 0 {
					return true
				}
				if id, ok := literal(n.Args[0]); ok {
					want(n.Pos(), id)
				}
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				if !ok || key.Name != "id" {
					return true
				}
				id, ok := literal(n.Value)
				switch {
				case !ok:
				case strings.Contains(id, ".") || id == "typename":
					want(n.Pos(), id)
				default: // of an action
					want(n.Pos(), "act."+id)
					want(n.Pos(), "act."+id+".help")
				}
			}
			return true
		})
	}
	if asked < 300 {
		t.Errorf("found only %d texts asked for: the test looks in the wrong place", asked)
	}
	for _, id := range []string{
		"state." + string(session.Idle), "state." + string(session.Connecting), "state." + string(session.Asking), "state." + string(session.Live),
		"state." + string(session.Stalled), "state." + string(session.Waiting), "state." + string(session.Refused), "state." + string(session.Stopped), "state." + string(session.Gone),
		"phase." + string(release.Checking), "phase." + string(release.Waiting), "phase." + string(release.Saving), "phase." + string(release.Rechecking), "phase." + string(release.Tearing),
		"phase." + string(release.Proving), "phase." + string(release.Review), "phase." + string(release.Stuck), "phase." + string(release.Cancelled),
		"goal." + string(release.CheckOnly), "goal." + string(release.Stop), "goal." + string(release.Destroy),
		"check." + string(release.CheckJobs), "check." + string(release.CheckArtifacts), "check." + string(release.CheckUnsaved), "check." + string(release.CheckGit),
		"check." + string(release.CheckEnv), "check." + string(release.CheckSnapshot), "check." + string(release.CheckCosts),
		"choice." + string(release.ProviderSnapshot), "choice." + string(release.PortableSnapshot), "choice." + string(release.NoSnapshot), "choice.push", "choice.pull",
		"confirm.title.stop", "confirm.title.destroy", "confirm.name.stop", "confirm.name.destroy", "confirm.lost.stop", "confirm.lost.destroy",
		"plan.title.push", "plan.title.pull", "form.do.stop", "form.do.destroy",
		"stage.queued", "stage.scan", "stage.plan", "stage.send", "stage.verify", "stage.done",
	} {
		want(token.NoPos, id)
	}
	for _, list := range [][]string{groups, spans} {
		for _, x := range list {
			if !l.Has("group."+x) && !l.Has("span."+x) {
				t.Errorf("the catalogues lack %q", x)
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(b.Value)
	return s, err == nil && !strings.HasSuffix(s, ".")
}

// Every state of a job has a word, and none is another's.
func TestJobWords(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	seen := map[string]tmux.State{}
	for _, s := range []tmux.State{tmux.Starting, tmux.Running, tmux.Done, tmux.Killed, tmux.Lost} {
		w, _ := d.jobWord(&tmux.Job{State: s, StartedAt: noon})
		if old, ok := seen[w]; ok {
			t.Errorf("%s and %s are both %q", old, s, w)
		}
		seen[w] = s
	}
}
