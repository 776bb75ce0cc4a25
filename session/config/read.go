package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"rentop/remote"
)

// This file gets the config's text, whatever an editor made of the file, and
// says in one sentence what is wrong with it.

// maxFile bounds a config: a file beyond it is not one.
const maxFile = 4 << 20

// readFile reads path. A pipe or a device is refused before it is opened: it
// would block or never end. A link to nothing is not "no config yet": the place
// it points to may not be mounted, and writing here would cut the link.
func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if to, lerr := os.Readlink(path); lerr == nil {
			return nil, &Error{File: path, What: fmt.Sprintf("is a link to %s, which is not there; mount or restore it, or remove the link", remote.Clean(to))}
		}
		return nil, err
	}
	if err == nil && !st.Mode().IsRegular() {
		return nil, &Error{File: path, What: "is not a file; move it away, or set RENTOP_CONFIG_DIR to another folder"}
	}
	var text []byte
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
			f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the config: %w%s", err, cure(err))
	}
	return text, nil
}

// cure is what to do about a system's error, as the end of a sentence.
func cure(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "; change its permissions or its folder's, or set RENTOP_CONFIG_DIR to a folder of yours"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; free some space there and try again"
	}
	return ""
}

// byteOrderMark is what Windows editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// blankMark makes a leading byte order mark white space, so that every offset
// into the text stays true.
func blankMark(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(byteOrderMark)) {
		return text
	}
	text = bytes.Clone(text)
	copy(text, "   ")
	return text
}

// notText says why the bytes cannot be a config at all, "" where they can.
func notText(text []byte) string {
	switch {
	case len(text) > maxFile:
		return "is larger than 4 MiB: this is not a rentop config"
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "is saved as UTF-16; save it as UTF-8 (PowerShell: Set-Content -Encoding utf8)"
	}
	return ""
}

// tomlError turns the library's errors into one sentence with its line.
func tomlError(path string, err error) error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		first := missing.Errors[0]
		row, _ := first.Position()
		key := strings.Join(first.Key(), ".")
		return &Error{File: path, Line: row, What: fmt.Sprintf("unknown key %q; the keys are in docs/config.md", remote.Short(key, 100))}
	}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		row, _ := de.Position()
		return &Error{File: path, Line: row, What: plainTOML(de.Error(), de.Key())}
	}
	return &Error{File: path, What: plainTOML(err.Error(), nil)}
}

// wrongType is the library's sentence where a value has another type than ours.
var wrongType = regexp.MustCompile(`^cannot (?:decode TOML|store an?) ([a-z ]+) in(?:to)? (?:a |struct field [\w.]+\.(\w+) of type )?(\S+)$`)

// words finds where the words of a Go name meet.
var words = regexp.MustCompile(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)

// plainTOML says a TOML fault without the names of our types.
func plainTOML(text string, key []string) string {
	text = strings.TrimPrefix(text, "toml: ")
	m := wrongType.FindStringSubmatch(text)
	if m == nil {
		return remote.Short(text, 300)
	}
	// In an inline table the library's key stops before the field.
	field := strings.ToLower(words.ReplaceAllString(m[2], "${1}${3}_${2}${4}"))
	if n := len(key); field != "" && (n == 0 || key[n-1] != field) {
		key = append(slices.Clone(key), field)
	}
	name := remote.Short(strings.Join(key, "."), 100)
	want := "a table, as in [instance.NAME]"
	switch t := m[3]; {
	case t == "string":
		want = `text in quotes, as in "8.00"`
	case t == "bool":
		want = "true or false"
	case strings.HasPrefix(t, "int"):
		want = "a whole number without quotes"
	case strings.HasPrefix(t, "[]"):
		want = "a list, as in [ … ]"
	}
	return fmt.Sprintf("%s must be %s, not a TOML %s; the keys are in docs/config.md", name, want, m[1])
}
