// Command carry puts a helper program where a release build embeds it: compressed,
// by the zstd program where there is one (a tenth smaller than pure Go makes it), with
// the SHA-256 of the program beside it.
//
//	go run ./.ci/carry PROGRAM ARCH
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

const dir = "remote/agent/carried"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: carry PROGRAM ARCH")
		os.Exit(2)
	}
	if err := carry(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "carry:", err)
		os.Exit(1)
	}
}

func carry(program, arch string) error {
	raw, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	packed, err := pack(raw)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, arch+".zst"), packed, 0o644); err != nil {
		return err
	}
	sum := fmt.Sprintf("%x\n", sha256.Sum256(raw))
	fmt.Printf("helper for linux/%s\t%d bytes, %d compressed\n", arch, len(raw), len(packed))
	return os.WriteFile(filepath.Join(dir, arch+".sha256"), []byte(sum), 0o644)
}

func pack(raw []byte) ([]byte, error) {
	cmd := exec.Command("zstd", "-q", "--ultra", "-22", "-c")
	cmd.Stdin = bytes.NewReader(raw)
	out, err := cmd.Output()
	if !errors.Is(err, exec.ErrNotFound) {
		return out, err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return nil, err
	}
	return w.EncodeAll(raw, nil), w.Close()
}
