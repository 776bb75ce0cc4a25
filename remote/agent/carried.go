//go:build carried

package agent

// The helpers that a release build carries; .ci/build makes the files.

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed carried
var files embed.FS

// carried returns the helpers by GOARCH. Every build carries them for all.
func carried() (map[string]*Binary, error) {
	out, err := carriedAs("")
	if err != nil {
		return nil, err
	}
	for _, a := range arches {
		if out[a.goarch] == nil {
			return nil, fmt.Errorf("this build carries no helper for %s", a.goarch)
		}
	}
	return out, nil
}

// carriedGPU returns the helpers that read GPUs. One needs the compiler of its
// platform to be built: what this build does not carry is not there.
func carriedGPU() (map[string]*Binary, error) { return carriedAs("gpu-") }

// carriedStore returns the helpers that speak to object storage.
func carriedStore() (map[string]*Binary, error) { return carriedAs("store-") }

// carriedGuard returns the helpers that stay.
func carriedGuard() (map[string]*Binary, error) { return carriedAs("guard-") }

// carriedAs reads what there is: carried/PREFIX+ARCH.zst, and its program's SHA-256
// beside it in .sha256.
func carriedAs(prefix string) (map[string]*Binary, error) {
	out := map[string]*Binary{}
	for _, a := range arches {
		name := "carried/" + prefix + a.goarch
		packed, err := files.ReadFile(name + ".zst")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the helper that this build carries for %s: %w", a.goarch, err)
		}
		sum, err := files.ReadFile(name + ".sha256")
		if err != nil {
			return nil, fmt.Errorf("this build carries no hash of the helper for %s: %w", a.goarch, err)
		}
		out[a.goarch] = &Binary{SHA256: strings.TrimSpace(string(sum)), zstd: packed}
	}
	return out, nil
}
