package release

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rentop/remote"
)

// liar answers every script with the same records.
type liar func(c remote.Cmd)

func (l liar) Run(_ context.Context, c remote.Cmd) error { l(c); return nil }

// An instance that names places and files without end fills no memory, and sizes
// that no disk holds add up to no negative number.
func TestScanIsBounded(t *testing.T) {
	long := strings.Repeat("/"+strings.Repeat("b", 250), 12)
	m := &Machine{runner: liar(func(c remote.Cmd) {
		for i := range 25_000 {
			for _, kind := range []string{"n %s/%d\x00", "g %s/%d/.git\x00", "p %s/%d\x00", "f 9223372036854775807 1 1 %s/%d\x00"} {
				fmt.Fprintf(c.Stdout, kind, long, i)
			}
		}
		fmt.Fprint(c.Stdout, "e 0\x00")
	})}
	s, err := m.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.names > maxNames || len(s.network) > 10_000 || len(s.gits) > 10_000 {
		t.Errorf("%d bytes of names, %d network places, %d git trees are held", s.names, len(s.network), len(s.gits))
	}
	sum := s.moreSize
	for _, f := range s.files {
		if sum += f.size; sum < 0 {
			t.Fatal("the sizes add up to a negative number")
		}
	}
	if len(s.files)+s.more != 25_000 {
		t.Errorf("%d files held, %d counted", len(s.files), s.more)
	}
}
