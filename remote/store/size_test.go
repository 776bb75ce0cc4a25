package store

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"rentop/remote/needtest"
)

func TestPartsFitTheRules(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, basePart - 1, basePart, basePart + 1, 1 << 30, 5 << 30, 5<<30 + 1, maxParts * basePart, maxParts*basePart + 1, 5 << 40, maxObject - 1, maxObject} {
		each := partSize(size)
		n := (size + each - 1) / each
		if each < minPart || each > maxPart || each%mebibyte != 0 || n > maxParts {
			t.Errorf("%d bytes: %d parts of %d", size, n, each)
		}
		if n > 200 {
			continue
		}
		at := int64(0)
		for i, p := range parts(size, each) {
			if p.number != i+1 || p.at != at || p.n > each || p.n == 0 && size > 0 {
				t.Errorf("%d bytes: part %+v at %d", size, p, at)
			}
			at += p.n
		}
		if at != size {
			t.Errorf("%d bytes: the parts have %d", size, at)
		}
	}
	if checkSize(maxObject) != nil || checkSize(maxObject+1) == nil || checkSize(-1) == nil {
		t.Error("the largest object")
	}
	if partSize(5<<30) != basePart || partSize(maxParts*basePart+1) != 2*basePart {
		t.Error("a part's size changed: what was saved before is read back to be proven")
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"s3://runs": "runs ", "s3://runs/": "runs ", "s3://runs/a/b/": "runs a/b", "s3://my.bucket-1/x y": "my.bucket-1 x y",
		"s3://": "", "s3://A/x": "", "s3://ab/x": "", "s3://runs/../x": "", "s3://runs/a//b": "", "s3://runs/a\x1bb": "", "http://runs": "", "s3://ru/ns": "", "s3://192.168.1.1/x": "",
	} {
		bucket, prefix, err := ParseURL(to)
		if got := bucket + " " + prefix; err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", to, got, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	env := map[string]string{"RENTOP_S3_MY_RUNS_KEY_ID": "own", "RENTOP_S3_MY_RUNS_SECRET": "s", "AWS_ACCESS_KEY_ID": "aws", "AWS_SECRET_ACCESS_KEY": "t", "RENTOP_S3_HALF_KEY_ID": "x"}
	k := Keys{Getenv: func(n string) string { return env[n] }}
	if key, err := k.Find("my-runs"); err != nil || key.ID != "own" {
		t.Errorf("%q %v", key.ID, err)
	}
	if key, err := k.Find("other"); err != nil || key.ID != "aws" {
		t.Errorf("%q %v", key.ID, err)
	}
	if _, err := k.Find("half"); err == nil {
		t.Error("an id without a secret")
	}
	delete(env, "AWS_ACCESS_KEY_ID")
	if _, err := k.Find("other"); err == nil || !strings.Contains(err.Error(), "RENTOP_S3_OTHER_KEY_ID") {
		t.Error(err)
	}
}

// TestOctal: a shell makes of it what it was.
func TestOctal(t *testing.T) {
	t.Parallel()
	all := make([]byte, 0, 255)
	for b := 1; b < 256; b++ {
		all = append(all, byte(b))
	}
	for _, sh := range []string{"sh", "bash", "busybox"} {
		args := []string{"-c", decode + `name "$1"; printf %s "$f"`, "sh", octal(string(all) + "\n")}
		if sh == "busybox" {
			args = append([]string{"sh"}, args...)
		}
		out, err := exec.Command(needtest.Program(t, sh), args...).Output()
		if err != nil || !bytes.Equal(out, append(all, '\n')) {
			t.Errorf("%s: %v %q", sh, err, out)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("put <Error><Code>SlowDown</Code></Error> 503 0")
	f.Add("got 00 0")
	f.Add("changed")
	f.Fuzz(func(t *testing.T, line string) {
		a, err := parseAnswer(line)
		if err == nil && a.status >= 400 {
			_ = faultOf(a.status, a.body).Error()
		}
	})
}

func FuzzSumLine(f *testing.F) {
	f.Add("a/b c")
	f.Add(`back\slash`)
	f.Fuzz(func(t *testing.T, rel string) {
		if checkName(rel) != nil {
			return
		}
		sum := strings.Repeat("0f", 32)
		got, s, ok := parseSumLine(strings.TrimSuffix(sumLine(rel, sum), "\n"))
		if !ok || got != rel || s != sum {
			t.Errorf("%q became %q %v", rel, got, ok)
		}
	})
}
