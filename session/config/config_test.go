package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/session/billing"
)

var update = flag.Bool("update", false, "rewrite golden files")

const sample = `# my machines
[ui]
theme = "dark" # I like it

# the big one
[instance.a100]
ssh = "ssh -p 41237 root@connect.example" # from the console
provider = "command" # own lines
command = { status = "true", destroy = "false" }
# price went up in May
rate = { per_hour = "8.00", currency = "CNY", billed = "second", while_stopped = "0.02" }
artifacts = [
  { path = "~/out/**", to = "./out" }, # results
  { path = "~/ckpt", to = "s3://bucket/run7" },
]

# the small one
[instance."4090"]
host = "box"

[[instance."4090".sync]]
local = "."
remote = "~/p"
`

func TestParseSample(t *testing.T) {
	f, err := Parse("config.toml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	a := f.Instance["a100"]
	if a.Name != "a100" || a.Rate.PerHour != "8.00" || len(a.Artifacts) != 2 || f.UI.Theme != "dark" {
		t.Errorf("got %+v", a)
	}
	if got := f.Instance["4090"].Sync; len(got) != 1 || got[0].Remote != "~/p" {
		t.Errorf("sync of a sub-table: %+v", got)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "[instance.a]\nssh = \"u@h\"\nrat = 1\n", `config.toml:3: unknown key "instance.a.rat"`},
		{"unknown key inline", "[instance.a]\nssh = \"u@h\"\nrate = { per_hourr = \"1\" }\n", "config.toml:3: unknown key"},
		{"broken toml", "[instance.a\n", "config.toml:1: "},
		{"wrong type", "[instance.a]\nssh = 5\n", "config.toml:2: "},
		{"wrong type in words", "[instance.a]\nssh = 5\n", `config.toml:2: instance.a.ssh must be text in quotes, as in "8.00", not a TOML integer`},
		{"price without quotes", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = 8.0 }\n", `config.toml:3: instance.a.rate.per_hour must be text in quotes`},
		{"text for a number", "[instance.a]\nssh = \"u@h\"\ndisk = { gb = \"5\" }\n", `config.toml:3: instance.a.disk.gb must be a whole number without quotes, not a TOML string`},
		{"no table", "instance = 5\n", "config.toml:1: instance must be a table, as in [instance.NAME], not a TOML integer"},
		{"text for an instance", "[instance]\na = \"ssh x@y\"\n", "config.toml:2: instance.a must be a table, as in [instance.NAME], not a TOML string"},
		{"array of instances", "[[instance.a]]\nssh = \"u@h\"\n", "config.toml:1: instance.a must be a table"},
		{"UTF-16", "\xff\xfe[\x00i\x00", "config.toml: is saved as UTF-16; save it as UTF-8"},
		{"endless name", "[instance." + strings.Repeat("a", 5000) + "]\nssh = \"u@h\"\n", "…\": the name is longer than 64 bytes"},
		{"price of galaxies", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"99999999999999999999\", currency = \"CNY\" }\n", "config.toml:3: instance \"a\": rate.per_hour"},
		{"no address", "[instance.a]\nbudget = \"5\"\n", `config.toml:1: instance "a": needs ssh`},
		{"negative price", "[instance.a]\nssh = \"u@h\"\n\nrate = { per_hour = \"-8\", currency = \"CNY\" }\n", "config.toml:4: instance \"a\": rate.per_hour"},
		{"price in words", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"cheap\", currency = \"CNY\" }\n", "config.toml:3: "},
		{"no currency", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"8\" }\n", "currency"},
		{"quantum", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"8\", currency = \"CNY\", billed = \"day\" }\n", "billed"},
		{"provider", "[instance.a]\nssh = \"u@h\"\nprovider = \"acme\"\n", "not known"},
		{"command without status", "[instance.a]\nssh = \"u@h\"\nprovider = \"command\"\n", "status"},
		{"idle stop", "[instance.a]\nssh = \"u@h\"\nidle = { below = 5, for = \"20m\", then = \"stop\" }\n", "never stops"},
		{"budget without rate", "[instance.a]\nssh = \"u@h\"\nbudget = \"50\"\n", "budget"},
		{"name", "[instance.\"a b\"]\nssh = \"u@h\"\n", "name"},
		{"exchange", "[money]\nrates = { USDCNY = \"7\" }\n", "USD_CNY"},
		{"limit", "[transfer]\nlimit = \"fast\"\n", "transfer.limit: \"fast\" is no rate"},
		{"traffic without a currency", "[instance.a]\nssh = \"u@h\"\ntraffic = { out_per_gb = \"0.12\" }\n", "config.toml:3: instance \"a\": traffic has a price"},
		{"traffic below nothing", "[instance.a]\nssh = \"u@h\"\nrate = { currency = \"USD\" }\ntraffic = { out_per_gb = \"-1\" }\n", "traffic.out_per_gb"},
		{"steps in disorder", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"1\", currency = \"CNY\", steps = [{ after = \"2h\", per_hour = \"1\" }, { after = \"1h\", per_hour = \"1\" }] }\n", "later and later"},
		{"a step of words", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"1\", currency = \"CNY\", steps = [{ after = \"soon\", per_hour = \"1\" }] }\n", "rate.steps"},
		{"settled by the moon", "[instance.a]\nssh = \"u@h\"\nrate = { per_hour = \"1\", currency = \"CNY\", settle = \"moon\" }\n", "rate.settle"},
		{"a meter without a price", "[instance.a]\nssh = \"u@h\"\nrate = { currency = \"CNY\", also = [{ what = \"ip\" }] }\n", "ip needs per_hour"},
		{"a meter in no state", "[instance.a]\nssh = \"u@h\"\nrate = { currency = \"CNY\", also = [{ what = \"ip\", per_hour = \"1\", while = [\"asleep\"] }] }\n", "hibernated"},
		{"a tag of two words", "[instance.a]\nssh = \"u@h\"\ntags = [\"a b\"]\n", "a tag is a word"},
		{"escape in name", "[instance.\"\\u001b[2J\"]\nssh = \"u@h\"\n", "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("config.toml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("not one clean sentence: %q", err)
			}
		})
	}
}

// TestPlanOfEverything reads a rate with all that it may have, and writes it back.
func TestPlanOfEverything(t *testing.T) {
	text := []byte(`[instance.a]
ssh = "u@h"
tags = ["paper", "x"]
rate = { per_hour = "1.35", currency = "USD", while_stopped = "1.35", while_hibernated = "0", floor = "0.01", settle = "hour", steps = [{ after = "96h", per_hour = "0.9" }], also = [{ what = "disk", gb = 100, per_gb_month = "0.07", while = ["hibernated"] }, { what = "ip", per_hour = "0.005" }] }
`)
	f, err := Parse("config.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Instance["a"].Plan()
	if err != nil || p.Settle != time.Hour || len(p.Steps) != 1 || len(p.Also) != 2 || len(p.Also[1].In) != 3 ||
		billing.BurnPerHour(p, billing.Hibernated).Exact(6) != "0.014589" {
		t.Errorf("%+v %v", p, err)
	}
	in := f.Instance["a"]
	in.Budget = "5"
	out, err := Edit(text, "a", in)
	if err != nil || string(out) != string(text)+"budget = \"5\"\n" {
		t.Errorf("%s %v", out, err)
	}
}

// TestEditKeepsComments compares whole files: what an edit leaves must stay to the byte.
func TestEditKeepsComments(t *testing.T) {
	f, err := Parse("config.toml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	change := func(name string, f2 func(*Instance)) func([]byte) ([]byte, error) {
		in := f.Instance[name]
		f2(&in)
		return func(text []byte) ([]byte, error) { return Edit(text, name, in) }
	}
	for _, c := range []struct {
		name string
		do   func([]byte) ([]byte, error)
	}{
		{"add", func(b []byte) ([]byte, error) {
			return Add(b, Instance{Name: "new-1", SSH: "ssh -p 22 u@h", Rate: &Rate{PerHour: "0.69", Currency: "USD"}, Budget: "5"})
		}},
		{"price", change("a100", func(in *Instance) { r := *in.Rate; r.PerHour = "7.20"; in.Rate = &r })},
		{"drop-key", change("a100", func(in *Instance) { in.Rate = nil })},
		{"new-key", change("a100", func(in *Instance) { in.Budget = "50" })},
		{"artifacts", change("a100", func(in *Instance) { in.Artifacts = in.Artifacts[:1] })},
		{"rename", change("4090", func(in *Instance) { in.Name = "four" })},
		{"sub-table", change("4090", func(in *Instance) { in.Sync = []Pair{{Local: "a", Remote: "b"}} })},
		{"remove-first", func(b []byte) ([]byte, error) { return Remove(b, "a100") }},
		{"remove-last", func(b []byte) ([]byte, error) { return Remove(b, "4090") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.do([]byte(sample))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", c.name+".toml")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	in := Instance{Name: "a", SSH: "u@h"}
	if _, err := Add([]byte(sample), Instance{Name: "a100", SSH: "u@h"}); !errors.Is(err, ErrExists) {
		t.Errorf("add twice: %v", err)
	}
	if _, err := Remove([]byte(sample), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("remove unknown: %v", err)
	}
	for _, text := range []string{
		"instance.a.ssh = \"u@h\"\n",
		"[instance]\na = { ssh = \"u@h\" }\n",
	} {
		in.Budget = ""
		in.SSH = "u@other"
		if _, err := Edit([]byte(text), "a", in); err == nil || !strings.Contains(err.Error(), "by hand") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestUpdateIsAtomic: a folder that cannot be written leaves the old file.
func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "config.toml")
	add := func(name string) error {
		return Update(path, func(text []byte) ([]byte, error) { return Add(text, Instance{Name: name, SSH: "u@h"}) })
	}
	for _, n := range []string{"a", "b"} {
		if err := add(n); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Load(path)
	if err != nil || len(f.Instance) != 2 {
		t.Fatalf("%v %v", f, err)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".config-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// FuzzEdit: whatever the file, an edit either fails or says exactly what was meant.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(sample), "x")
	f.Add([]byte("[instance.a]\nssh='u@h'\n[instance.a.disk]\ngb=1\nper_gb_month='1'"), "a")
	f.Add([]byte("\ufeff[instance.a]"), "a")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		in := Instance{Name: name, SSH: "ssh -p 2 u@h", Budget: "1", Rate: &Rate{PerHour: "1", Currency: "USD"}}
		if out, err := Add(text, in); err == nil {
			file, err := Parse("c", out)
			if err != nil || !sameInstance(file.Instance[name], in) {
				t.Fatalf("added, but reads back as %+v, %v", file, err)
			}
			back, err := Remove(out, name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse("c", back); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := Edit(text, name, in); err == nil {
			if file, err := Parse("c", out); err != nil || !sameInstance(file.Instance[name], in) {
				t.Fatalf("edited, but reads back as %+v, %v", file, err)
			}
		}
	})
}

// Windows editors write a byte order mark; edits must keep it and hit the right bytes.
func TestByteOrderMark(t *testing.T) {
	text := []byte("\xef\xbb\xbf[instance.a]\nssh = \"u@h\" # mine\nbudget = \"5\"\nrate = { per_hour = \"1\", currency = \"CNY\" }\n")
	f, err := Parse("config.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	in := f.Instance["a"]
	in.Budget = "6"
	got, err := Edit(text, "a", in)
	if want := strings.Replace(string(text), `"5"`, `"6"`, 1); err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

// What is no file must neither block nor fill memory, and a link to a place that
// is not mounted must not be replaced by a new file.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	add := func() error {
		return Update(path, func(text []byte) ([]byte, error) { return Add(text, Instance{Name: "a", SSH: "u@h"}) })
	}
	for _, c := range []struct {
		name, want string
		make       func() error
	}{
		{"folder", "is not a file", func() error { return os.Mkdir(path, 0o700) }},
		{"device", "is not a file", func() error { return os.Symlink(os.DevNull, path) }},
		{"link to nothing", "is a link to", func() error { return os.Symlink(filepath.Join(dir, "unmounted"), path) }},
	} {
		if err := c.make(); err != nil {
			needtest.Done(t, err, "a file system with links and devices")
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Load gives %v", c.name, err)
		}
		if err := add(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Update gives %v", c.name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Many at once, each its own instance: none is lost.
func TestUpdateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	const n = 24
	errs := make(chan error, n)
	for i := range n {
		go func() {
			errs <- Update(path, func(text []byte) ([]byte, error) {
				return Add(text, Instance{Name: fmt.Sprintf("a%d", i), SSH: "u@h"})
			})
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	f, err := Load(path)
	if err != nil || len(f.Instance) != n {
		t.Errorf("%d of %d instances are there: %v", len(f.Instance), n, err)
	}
}

// A fault that another part finds in a key names the file and the line.
func TestFaultNamesTheLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[ui]\nreadonly = true\n\n[ui.keys]\nopen = [\"v\"]\nrelaese = [\"R\"]\n", "c.toml:6: odd"},
		{"[ui]\ntheme = \"dark\"\nkeys = { relaese = [\"R\"] }\n", "c.toml:3: odd"},
		{"# nothing\n", "c.toml: odd"},
	} {
		f, err := Parse("c.toml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Fault("odd", "ui", "keys", "relaese").Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for _, text := range []string{"[ui]\nkeys = { open = [] }\n", "[ui]\nkeys = { open = [\"\"] }\n", "[ui]\nreadonly = \"yes\"\n", "[ui]\nkeys = { open = \"v\" }\n"} {
		if _, err := Parse("c.toml", []byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// A name becomes that of a folder, on whichever computer the config is used.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"a100": true, "console": true, "con": false, "LPT1": false, "nul.txt": false, "a.": false, "a/b": false, "": false} {
		if what := CheckName(name); (what == "") != good {
			t.Errorf("%q: %q", name, what)
		}
	}
}

func TestTransferKeys(t *testing.T) {
	f, err := Parse("config.toml", []byte("[transfer]\nlimit = \"20M\"\nagent = false\n[instance.a]\nssh = \"u@h\"\nrate = { currency = \"USD\" }\ntraffic = { out_per_gb = \"0.12\" }\n"))
	if err != nil {
		t.Fatal(err)
	}
	in, out, err := f.Instance["a"].Traffic.Prices()
	if f.Transfer.Rate() != 20<<20 || f.Transfer.MayUseAgent() || in != nil || out == nil || out.FloatString(2) != "0.12" || err != nil {
		t.Errorf("%+v, in %v, out %v, %v", f.Transfer, in, out, err)
	}
	if !(&File{}).Transfer.MayUseAgent() {
		t.Error("left out, the helper is not used")
	}
}
