package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// This file is about names: those that may never be used, those that a file
// system cannot hold, and our own temporary ones.

const (
	TmpPrefix = ".rentop-tmp-"  // small files on their way, in folders beside their destination
	PartInfix = ".rentop-part-" // a large file on its way: .NAME.rentop-part-HASH, and .at beside it
	TrashDir  = ".rentop-trash" // in a transfer's root: what --delete removed. Listings name it and do not go into it
)

// MaxPath bounds a path from an instance; PATH_MAX is 4096 on Linux.
const MaxPath = 8 << 10

// Ours says whether a name is one of our own: never part of what is moved.
func Ours(name string) bool {
	return strings.HasPrefix(name, TmpPrefix) || name == TrashDir || strings.HasPrefix(name, ".") && strings.Contains(name, PartInfix)
}

// OursIn says whether any part of p is one of our own names.
func OursIn(p string) bool {
	if !strings.Contains(p, ".rentop-") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if Ours(part) {
			return true
		}
	}
	return false
}

// CheckPath refuses what an honest listing never holds.
func CheckPath(p string) error {
	switch {
	case p == "" || p == ".":
		return errors.New("empty path")
	case len(p) > MaxPath:
		return fmt.Errorf("path of %d bytes is too long", len(p))
	case strings.HasPrefix(p, "/"):
		return errors.New("absolute path")
	case strings.IndexByte(p, 0) >= 0:
		return errors.New("path with a zero byte")
	case path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../"):
		return errors.New("path leaves its folder")
	}
	return nil
}

// LinkLeaves says whether a symlink at p with this target points out of the root.
func LinkLeaves(p, target string) bool {
	if path.IsAbs(target) || strings.Contains(target, `\`) || strings.Contains(target, ":") && len(target) > 1 && target[1] == ':' {
		return true
	}
	full := path.Join(path.Dir(p), target)
	return full == ".." || strings.HasPrefix(full, "../")
}

// WindowsName says why Windows cannot hold p, "" where it can.
func WindowsName(p string) string {
	for part := range strings.SplitSeq(p, "/") {
		if i := strings.IndexAny(part, "<>:\"|?*\\"); i >= 0 {
			return fmt.Sprintf("Windows allows no %q in a name", part[i])
		}
		for i := range len(part) {
			if part[i] < 0x20 {
				return "Windows allows no control characters in a name"
			}
		}
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return "Windows drops the dot or space at the end of a name"
		}
		stem, _, _ := strings.Cut(part, ".")
		switch s := strings.ToUpper(strings.TrimRight(stem, " ")); s {
		case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
			return s + " is a reserved name on Windows"
		default:
			if len(s) == 4 && (s[:3] == "COM" || s[:3] == "LPT") && s[3] >= '0' && s[3] <= '9' {
				return s + " is a reserved name on Windows"
			}
		}
	}
	return ""
}

// TypeName is the word for what an entry is.
func TypeName(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	case m.IsRegular():
		return "file"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
