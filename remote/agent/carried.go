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

// carriedGPU returns the helpers that read GPUs. One needs the compiler of its
// platform to be built: what this build does not carry is not there.
func carriedGPU() (map[string]*Binary, error) {
	out := map[string]*Binary{}
	for _, arch := range []string{"amd64", "arm64"} {
		packed, err := files.ReadFile("carried/gpu-" + arch + ".zst")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the GPU helper for %s: %w", arch, err)
		}
		sum, err := files.ReadFile("carried/gpu-" + arch + ".sha256")
		if err != nil {
			return nil, fmt.Errorf("this build carries no hash of the GPU helper for %s: %w", arch, err)
		}
		out[arch] = &Binary{SHA256: strings.TrimSpace(string(sum)), zstd: packed}
	}
	return out, nil
}
