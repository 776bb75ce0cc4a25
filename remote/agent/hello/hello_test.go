package hello

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	h := New()
	h.Program, h.Join = "/root/.cache/with space/x", "/tmp/j\nk"
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("rest")
	got, err := Read(&b)
	h.Join = "/tmp/j k"
	if err != nil || got != h {
		t.Errorf("%+v, %v", got, err)
	}
	if rest, _ := io.ReadAll(&b); string(rest) != "rest" {
		t.Errorf("read too far: %q is left", rest)
	}
}

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		h    Hello
		want int
	}{
		{Hello{Oldest: 1, Version: 1}, 1},
		{Hello{Oldest: 1, Version: 9}, Version},
		{Hello{Oldest: Version + 1, Version: Version + 3}, 0},
	} {
		got, err := c.h.Agree()
		var ve *VersionError
		if got != c.want || (err != nil) != (c.want == 0) || err != nil && !errors.As(err, &ve) {
			t.Errorf("%+v: %d, %v", c.h, got, err)
		}
	}
}

func TestHostile(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "no greeting"},
		{"Welcome to Ubuntu 22.04", "came instead"},
		{Magic + "\xff\xff\xff\xff", "at most"},
		{Magic + "\x00\x00\x00\x05ver", "half"},
		{Magic + "\x00\x00\x00\x0aversion -1", "version \"-1\""},
		{Magic + "\x00\x00\x00\x00", "without a version"},
	} {
		if _, err := Read(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.in, err)
		}
	}
	if err := (Hello{Version: 1, Error: strings.Repeat("x", maxLength)}).Write(io.Discard); err == nil {
		t.Error("a giant greeting was sent")
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	New().Write(&b)
	f.Add(b.Bytes())
	f.Add([]byte(Magic + "\x00\x00\x00\x0aversion 1\nprocs x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if h.Write(&again) != nil {
			return
		}
		if _, err := Read(&again); err != nil {
			t.Errorf("%+v cannot be read again: %v", h, err)
		}
	})
}
