package sync

import (
	"context"
	"strings"
	"testing"
)

type noMeter struct{}

func (noMeter) Content(int64)  {}
func (noMeter) Wire(int64)     {}
func (noMeter) Current(string) {}

// TestSinkKeeps: no file gets its name before its content is on disk.
func TestSinkKeeps(t *testing.T) {
	s, err := openSink(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var files []waiting
	for _, name := range []string{"a", "b", "c"} {
		w, err := s.write(context.Background(), Entry{Path: name, Size: 1, Mode: 0o400}, strings.NewReader("x"), noMeter{})
		if err != nil || w.safe {
			t.Fatal(err, w)
		}
		files = append(files, w)
	}
	s.discard(files[2])
	s.keepAll(files)
	if !files[0].safe || !files[1].safe || files[2].safe {
		t.Errorf("%+v", files)
	}
	if err := s.commit(files[0]); err != nil {
		t.Error(err)
	}
	if err := s.commit(files[2]); err == nil {
		t.Error("what could not be kept has its name")
	}
}
