//go:build carried

package agent

// The helpers that a release build carries; .ci/build makes the files.

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed carried
var files embed.FS

// carried returns the helpers by GOARCH: carried/ARCH.zst with its program's
// SHA-256 in carried/ARCH.sha256.
func carried() (map[string]*Binary, error) {
	out := map[string]*Binary{}
	for _, arch := range []string{"amd64", "arm64"} {
		packed, err := files.ReadFile("carried/" + arch + ".zst")
		if err != nil {
			return nil, fmt.Errorf("this build carries no helper for %s: %w", arch, err)
		}
		sum, err := files.ReadFile("carried/" + arch + ".sha256")
		if err != nil {
			return nil, fmt.Errorf("this build carries no hash of the helper for %s: %w", arch, err)
		}
		out[arch] = &Binary{SHA256: strings.TrimSpace(string(sum)), zstd: packed}
	}
	return out, nil
}
