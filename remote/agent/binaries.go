package agent

// Which helper fits: one that this build carries or, built from source on Linux,
// rentop itself.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Binary is a helper for one architecture.
type Binary struct {
	SHA256 string   // of the program, in hex
	Args   []string // before the helper's own: "agent" where rentop is its own helper

	mu   sync.Mutex // guards the fields below
	zstd []byte     // compressed; nil where only raw is there
	raw  func() ([]byte, error)
}

// FromFile is a helper in a file here.
func FromFile(name string, args ...string) (*Binary, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &Binary{SHA256: hex.EncodeToString(h.Sum(nil)), Args: args, raw: func() ([]byte, error) { return os.ReadFile(name) }}, nil
}

// FromBytes is a helper in memory.
func FromBytes(program []byte, args ...string) *Binary {
	sum := sha256.Sum256(program)
	return &Binary{SHA256: hex.EncodeToString(sum[:]), Args: args, raw: func() ([]byte, error) { return program, nil }}
}

// packing is how the program travels.
type packing string

const (
	packZstd packing = "zstd"
	packGzip packing = "gzip"
	packNone packing = "none"
)

// packed returns the program as p wants it.
func (b *Binary) packed(p packing) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p == packZstd && b.zstd != nil {
		return b.zstd, nil
	}
	raw, err := b.program()
	if err != nil {
		return nil, err
	}
	switch p {
	case packZstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		b.zstd = w.EncodeAll(raw, nil)
		return b.zstd, w.Close()
	case packGzip:
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(raw)
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
	return raw, nil
}

// program returns the program itself; it needs mu.
func (b *Binary) program() ([]byte, error) {
	if b.raw != nil {
		return b.raw()
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(b.zstd, nil)
}

// Binaries are the helpers of this build, by GOARCH; all are for Linux. The zero
// value is ready. Share one: a helper is read and hashed once.
type Binaries struct {
	gpu   bool // of the program rentop-gpu
	self  bool // with gpu: this program reads GPUs too
	store bool // of the program rentop-store
	guard bool // of the program rentop-guard
	once  sync.Once
	known map[string]*Binary
	err   error
}

// GPU are this build's helpers that read GPUs through the driver's library: those
// of rentop-gpu, or this program itself where it was built from source and self
// says that it can.
func GPU(self bool) *Binaries { return &Binaries{gpu: true, self: self} }

// Store are this build's helpers that speak to object storage: those of rentop-store,
// or this program itself where it was built from source.
func Store() *Binaries { return &Binaries{store: true} }

// Guard are this build's helpers that watch while nobody is connected: those of
// rentop-guard, or this program itself where it was built from source.
func Guard() *Binaries { return &Binaries{guard: true} }

// NewBinaries are given helpers by GOARCH, in place of this build's.
func NewBinaries(known map[string]*Binary) *Binaries {
	b := &Binaries{known: known}
	b.once.Do(func() {})
	return b
}

// main's package path: a test or another program that links this package is no helper.
const ownPath = "rentop"

func (b *Binaries) all() (map[string]*Binary, error) {
	b.once.Do(func() {
		of := carried
		switch {
		case b.gpu:
			of = carriedGPU
		case b.store:
			of = carriedStore
		case b.guard:
			of = carriedGuard
		}
		if b.known, b.err = of(); b.err != nil || b.known != nil || b.gpu && !b.self {
			return
		}
		info, ok := debug.ReadBuildInfo()
		if !ok || info.Path != ownPath || runtime.GOOS != "linux" {
			return
		}
		self, err := FromFile("/proc/self/exe", "agent")
		if err != nil {
			b.err = err
			return
		}
		b.known = map[string]*Binary{runtime.GOARCH: self}
	})
	return b.known, b.err
}
