package tree

import (
	"testing"
	"unicode"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"README", "readme", true}, {"caf\u00e9", "CAFE\u0301", true}, {"\uac01", "\u1100\u1161\u11a8", true}, {"\u1ec7", "e\u0323\u0302", true},
		{"\u212b", "A\u030a", true}, {"\xff", "\xff", true}, {"\xff", "\xfe", false}, {"a", "b", false}, {"e", "\u00e9", false}, {"\u2000", "\u2002", true},
		{"日本", "日本", true}, {"Straße", "STRASSE", false},
	} {
		if (Fold(c.a) == Fold(c.b)) != c.same {
			t.Errorf("%q and %q: %q, %q", c.a, c.b, Fold(c.a), Fold(c.b))
		}
	}
	// the table decomposes to the end, and only letters that have a lower case or none
	for r, parts := range decomposed() {
		if parts == "" || unicode.ToLower(r) != r || Fold(parts) != parts {
			t.Errorf("%q is made of %q", r, parts)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("CAF\u00c9\xff")
	f.Fuzz(func(t *testing.T, name string) {
		if once := Fold(name); Fold(once) != once {
			t.Errorf("%q folds to %q and that to %q", name, once, Fold(once))
		}
	})
}

func FuzzHashes(f *testing.F) {
	f.Add([]byte(hashesMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &Hashes{rows: map[[16]byte]hashed{}}
		if h.load(b); len(h.rows) > 0 && len(b) < hashRow {
			t.Error("rows from nothing")
		}
	})
}
