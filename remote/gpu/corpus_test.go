package gpu

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rentop/remote/needtest"
)

// corpus is the folder of recorded outputs (not part of the repository).
func corpus(t *testing.T) string {
	t.Helper()
	return needtest.Shared(t, "corpus", "gpu")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

var unitSuffix = regexp.MustCompile(` \[[^\]]*\]$`)

// header makes field names of a header line, by which only the test goes: the
// collector matches by position.
func header(line string) []string {
	f := strings.Split(line, ",")
	for i := range f {
		f[i] = unitSuffix.ReplaceAllString(strings.TrimSpace(f[i]), "")
	}
	return f
}

var saysNothing = regexp.MustCompile(`(?i)^\[?(n/a|not supported|unknown error|err!|gpu requires reset|requested functionality has been deprecated|insufficient permissions|not found)\]?$`)

// honest fails where a cell's text and its value disagree: a number must come out
// as that number, a word as no number at all.
func honest(t *testing.T, where, field, text string, v Value) {
	t.Helper()
	text = strings.TrimSpace(text)
	if saysNothing.MatchString(text) {
		if v.State == OK {
			t.Errorf("%s: %s is %q and became %g", where, field, text, v.V)
		}
		if v.Why == "" {
			t.Errorf("%s: %s is %q and lost its reason", where, field, text)
		}
		return
	}
	if v.State != OK {
		t.Errorf("%s: %s is %q and became %+v", where, field, text, v)
		return
	}
	digits, _, _ := strings.Cut(text, " ")
	if strings.Trim(digits, "0.") != "" && v.V == 0 {
		t.Errorf("%s: %s is %q and became 0", where, field, text)
	}
}

// checkRows reads every row under a header, and says how many there were.
func checkRows(t *testing.T, where string, fields []string, lines []string) int {
	t.Helper()
	n := 0
	for _, line := range lines {
		if strings.Count(line, ",") < len(fields)-1 || strings.HasPrefix(line, "#") {
			break
		}
		r, ok := parseRow(fields, line)
		if !ok {
			t.Errorf("%s: not read: %.120s", where, line)
			continue
		}
		n++
		cells, _ := splitRow(line, len(fields), slices.Index(fields, "name"))
		for i, f := range fields {
			var g GPU
			if c := measured(&g, f, cells[i]); c != nil {
				honest(t, where, f, cells[i], c.value)
			}
		}
		for i, f := range fields { // and each where it belongs
			switch f {
			case "utilization.gpu":
				honest(t, where, f, cells[i], r.Util)
			case "memory.total":
				honest(t, where, f, cells[i], r.MemTotal)
			case "temperature.gpu.tlimit":
				honest(t, where, f, cells[i], r.TempMargin)
			case "name":
				if !strings.HasSuffix(cells[i], r.Name) || r.Name == "" && !saysNothing.MatchString(cells[i]) {
					t.Errorf("%s: name %q became %q", where, cells[i], r.Name)
				}
			}
		}
	}
	return n
}

// Every --query-gpu output of the corpus: whole captures, cut captures, samples.
func TestCorpusQueries(t *testing.T) {
	dir := corpus(t)
	var files []string
	for _, p := range []string{"full-*", "split/*/*query-gpu.txt", "csv-*", "mock535/*query.csv", "excerpt/csv-*"} {
		m, _ := filepath.Glob(filepath.Join(dir, p))
		files = append(files, m...)
	}
	total := 0
	for _, path := range files {
		name, _ := filepath.Rel(dir, path)
		lines := strings.Split(read(t, path), "\n")
		n := 0
		for i, l := range lines {
			if h := header(l); len(h) > 3 && !strings.HasPrefix(l, "#") && slices.Index(h, "process_name") < 0 && (slices.Index(h, "memory.used") >= 0 || slices.Index(h, "temperature.gpu") >= 0) {
				n += checkRows(t, name, h, lines[i+1:])
			}
		}
		if n == 0 && !headless[filepath.Base(path)] {
			t.Errorf("%s: no row was read", name)
		}
		total += n
	}
	t.Logf("%d rows in %d files", total, len(files))
	if total < 60 {
		t.Errorf("only %d rows in %d files", total, len(files))
	}
}

// headless excerpts hold rows without a header, or processes; they have their own tests.
var headless = map[string]bool{
	"csv-all-na-3080-oldlib.txt": true, "csv-unknown-error-1080ti-rig.txt": true,
	"csv-h20-hidden-proc.txt": true, "csv-apps-not-found.txt": true,
}

func TestCorpusHeadless(t *testing.T) {
	dir := filepath.Join(corpus(t), "excerpt")
	old := strings.TrimSpace(read(t, filepath.Join(dir, "csv-all-na-3080-oldlib.txt")))
	fields := strings.Split("timestamp,index,name,uuid,fan.speed,utilization.gpu,utilization.memory,memory.total,memory.free,memory.used,"+
		"x1,x2,x3,temperature.gpu,x4,power.draw,power.limit,x5,x6,x7,pstate,clocks.current.sm,clocks.current.memory,x8,clocks.max.sm,x9,x10", ",")
	if n := checkRows(t, "3080", fields, []string{old}); n != 1 {
		t.Fatalf("%d rows of the 3080", n)
	}
	r, _ := parseRow(fields, old)
	for name, v := range map[string]Value{"util": r.Util, "fan": r.Fan, "power": r.Power, "clock": r.ClockSM} {
		if v.State != NA || v.Why != "[N/A]" {
			t.Errorf("%s = %+v, want NA", name, v)
		}
	}
	has3080 := r.MemUsed == Of(1211<<20) && r.MemTotal == Of(10240<<20) && r.Temp == Of(54)
	if !has3080 { // --format=nounits: MiB all the same
		t.Errorf("3080 = %+v", r.GPU)
	}

	rig := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "csv-unknown-error-1080ti-rig.txt"))), "\n")
	fields = strings.Split("name,utilization.gpu,utilization.memory,temperature.gpu,power.draw,power.limit,fan.speed,pstate,clocks.current.sm,clocks.current.memory,x1,x2", ",")
	if n := checkRows(t, "rig", fields, rig); n != 3 {
		t.Errorf("%d rows of the rig", n)
	}
	if r, _ := parseRow(fields, rig[0]); r.Fan.State != Failed || r.Util != Of(53) {
		t.Errorf("rig = %+v", r.GPU)
	}

	h20 := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "csv-h20-hidden-proc.txt"))), "\n")
	g, ok := parseRow(strings.Split("index,uuid,name,memory.total,memory.used,utilization.gpu", ","), h20[0])
	p, ok2 := parseApp(appFields, h20[1])
	if !ok || !ok2 || g.MemUsed != Of(56533<<20) || p.name != "" || p.mem != Of(56510<<20) || p.pid != 2151955 {
		t.Errorf("H20 = %+v, %+v", g, p)
	}

	reset := strings.Split(read(t, filepath.Join(dir, "csv-reset-required-h100.txt")), "\n")
	if r, ok := parseRow(header(reset[0]), reset[1]); !ok || r.Problem == "" || r.Util.State != Failed || r.MemUsed.State != OK {
		t.Errorf("reset required = %+v", r.GPU)
	}
}

// Every list of processes.
func TestCorpusProcesses(t *testing.T) {
	dir := corpus(t)
	files, _ := filepath.Glob(filepath.Join(dir, "split/*/*query-compute-apps.txt"))
	files = append(files, filepath.Join(dir, "excerpt/csv-apps-not-found.txt"))
	total := 0
	for _, path := range files {
		lines := strings.Split(read(t, path), "\n")
		var fields []string
		for _, l := range lines {
			if h := header(l); slices.Index(h, "process_name") >= 0 {
				fields = h
				continue
			}
			if fields == nil || strings.Count(l, ",") < len(fields)-1 {
				continue
			}
			a, ok := parseApp(fields, l)
			if !ok || a.pid <= 0 {
				t.Errorf("%s: not read: %s", path, l)
				continue
			}
			total++
			cells := strings.Split(l, ",")
			honest(t, path, "used_gpu_memory", cells[len(cells)-1], a.mem)
		}
		if fields == nil {
			t.Errorf("%s: no header", path)
		}
	}
	t.Logf("%d processes in %d files", total, len(files))
	if total < 40 {
		t.Errorf("only %d processes in %d files", total, len(files))
	}
}

// Every recorded complaint becomes a sentence with a cure, and never a row.
func TestCorpusComplaints(t *testing.T) {
	dir := corpus(t)
	var files []string
	for _, p := range []string{"err-*", "excerpt/err-*"} {
		m, _ := filepath.Glob(filepath.Join(dir, p))
		files = append(files, m...)
	}
	if len(files) < 13 {
		t.Fatalf("only %d complaints in %s", len(files), dir)
	}
	for _, path := range files {
		text := read(t, path)
		p := problem(255, text)
		if p.What == "" || p.Cure == "" || strings.HasPrefix(p.What, "nvidia-smi failed") {
			t.Errorf("%s: no sentence of ours: %+v", filepath.Base(path), p)
		}
		for _, l := range strings.Split(text, "\n") {
			if r, ok := parseRow(queryFields, l); ok {
				t.Errorf("%s: a row: %+v", path, r)
			}
		}
	}
	if p := problem(15, read(t, filepath.Join(dir, "excerpt/err-gpu-lost.txt"))); !strings.Contains(p.What, "0000:02:00.0") {
		t.Errorf("the lost GPU is not named: %q", p.What)
	}
}
