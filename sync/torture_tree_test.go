//go:build unix

package sync_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rentop/sync/tree"
)

// This file is the trees of TestTorture: random ones, and what is done to them.

// contents is what is at root: "dir", "link TARGET" or a file's sum, by path.
func (x *torment) contents(root string) map[string]string {
	x.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a killed side is still at work
		}
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if rel == "." {
			return nil
		}
		if strings.HasPrefix(d.Name(), ".rentop-") || tree.Ours(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
			out[rel] = "dir"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			out[rel] = "link " + target
		default:
			data, err := os.ReadFile(p)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			h := sha256.Sum256(data)
			out[rel] = fmt.Sprintf("%d bytes %s", len(data), hex.EncodeToString(h[:4]))
		}
		return nil
	})
	if err != nil {
		x.Fatal(err)
	}
	return out
}

// remember notes what the source is now: any of it may arrive.
func (x *torment) remember() {
	for p, c := range x.contents(x.src) {
		if x.versions[p] == nil {
			x.versions[p] = map[string]bool{}
		}
		x.versions[p][c] = true
	}
}

func (x *torment) bytes() (n int64) {
	filepath.WalkDir(x.src, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}

// files are the source's paths of one kind, sorted so that a seed picks the same.
func (x *torment) pick(dirs bool) string {
	var all []string
	if dirs {
		all = append(all, x.src)
	}
	filepath.WalkDir(x.src, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != x.src && d.IsDir() == dirs && (dirs || d.Type().IsRegular()) {
			all = append(all, p)
		}
		return nil
	})
	slices.Sort(all)
	if len(all) == 0 {
		return ""
	}
	return all[x.rnd.IntN(len(all))]
}

func (x *torment) name() string {
	x.names++
	odd := []string{"f", "a b", "é", "n\nl", "-x", "q'\"", "\xff", "$(x)", "d.ir", "ü"}
	return fmt.Sprint(odd[x.rnd.IntN(len(odd))], x.names)
}

func (x *torment) data() []byte {
	size := x.rnd.IntN(3000)
	switch x.rnd.IntN(8) {
	case 0:
		size = 0
	case 1:
		size = x.rnd.IntN(200_000)
	case 2:
		size = x.rnd.IntN(6 << 20)
	}
	data := make([]byte, size)
	switch x.rnd.IntN(3) {
	case 0: // does not compress
		var key [32]byte
		key[0], key[1], key[2] = byte(x.rnd.Uint32()), byte(x.rnd.Uint32()), byte(x.rnd.Uint32())
		rand.NewChaCha8(key).Read(data)
	case 1: // does
		copy(data, bytes.Repeat(fmt.Appendf(nil, "line %d\n", x.rnd.IntN(1000)), size/8+1))
	} // else zeros: a sparse file
	return data
}

func (x *torment) create() {
	dir := x.pick(true)
	p := filepath.Join(dir, x.name())
	switch x.rnd.IntN(10) {
	case 0, 1:
		os.Mkdir(p, 0o755)
		x.own(p)
	case 2:
		os.Symlink("target "+fmt.Sprint(x.names), p)
		x.own(p)
	default:
		x.write(p, x.data())
	}
}

func (x *torment) write(p string, data []byte) {
	if rel, err := filepath.Rel(x.src, p); err == nil { // for a moment it is empty
		if x.versions[rel] == nil {
			x.versions[rel] = map[string]bool{}
		}
		x.versions[rel][empty] = true
	}
	os.WriteFile(p, data, 0o644)
	x.own(p)
	// Times of their own, so that equal size and equal time mean equal content.
	at := time.Unix(1_700_000_000+int64(x.rnd.IntN(1e7)), int64(x.rnd.IntN(1e9)))
	os.Chtimes(p, at, at)
}

// own gives what lies on the instance to the login.
func (x *torment) own(p string) {
	if fi, err := os.Stat(x.s.Home); err == nil && strings.HasPrefix(p, x.s.Home) {
		st := fi.Sys().(*syscall.Stat_t)
		os.Lchown(p, int(st.Uid), int(st.Gid))
	}
}

// edit changes a few things of the source.
func (x *torment) edit() {
	for i := range 1 + x.rnd.IntN(8) {
		if i > 0 {
			x.remember() // it may be read between two of them
		}
		p := x.pick(false)
		if p == "" {
			x.create()
			continue
		}
		data, _ := os.ReadFile(p)
		switch x.rnd.IntN(9) {
		case 0, 1:
			x.create()
		case 2: // an insert, somewhere
			at := x.rnd.IntN(len(data) + 1)
			x.write(p, slices.Concat(data[:at], []byte("inserted"), data[at:]))
		case 3: // bytes rewritten in place
			if len(data) > 0 {
				data[x.rnd.IntN(len(data))] ^= 0x55
			}
			x.write(p, data)
		case 4:
			x.write(p, data[:x.rnd.IntN(len(data)+1)])
		case 5:
			os.Remove(p)
		case 6: // moved
			os.Rename(p, filepath.Join(x.pick(true), x.name()))
		case 7:
			os.Chmod(p, []fs.FileMode{0o600, 0o644, 0o755, 0o444}[x.rnd.IntN(4)])
		case 8: // a file becomes a symlink
			if x.spec.Delete {
				os.Remove(p)
				os.Symlink("elsewhere", p)
				x.own(p)
			}
		}
	}
}
