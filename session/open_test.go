package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkOpen is what stands before the first frame: config, ledger, sessions.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "[instance.box%d]\nssh = \"root@192.0.2.1\"\nrate = { per_hour = \"8\", currency = \"CNY\" }\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Open(b.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}})
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
