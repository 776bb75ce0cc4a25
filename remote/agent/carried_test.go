//go:build carried

package agent

import "testing"

// TestCarried: what a release build carries is what its hash says; .ci/build runs it.
func TestCarried(t *testing.T) {
	known, err := (&Binaries{}).all()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		b := known[arch]
		if b == nil {
			t.Fatalf("none for %s", arch)
		}
		raw, err := b.packed(packNone)
		if err != nil {
			t.Fatal(err)
		}
		if got := FromBytes(raw).SHA256; got != b.SHA256 {
			t.Errorf("%s: the program's SHA-256 is %s, not %s", arch, got, b.SHA256)
		}
	}
}
