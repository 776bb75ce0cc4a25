// Package hello is what rentop and its helper on an instance say to each other
// before anything else: who they are and which protocol they speak. Both send at
// once. It depends only on the standard library.
package hello

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Version of the protocol that this build speaks, and the oldest that it also
// speaks. It covers the link and the services over it.
const (
	Version = 1
	Oldest  = 1
)

const (
	// Magic begins a greeting.
	Magic = "rentop-agent"
	// Absent comes in its place where the helper is not installed. It is as long.
	Absent = "rentop-none\n"
	// Joined is what a further stripe begins with, from the helper; Go is the answer.
	Joined = "rentop-join\n"
	Go     = "go\n"

	maxLength = 8 << 10
)

// Hello is one side's greeting.
type Hello struct {
	Oldest, Version int
	Program         string // the file that runs, on the helper's side
	Join            string // the socket at which further stripes join; "" where none can
	Error           string // why the helper cannot serve; "" where it can
}

// New is a greeting with the versions that this build speaks.
func New() Hello { return Hello{Oldest: Oldest, Version: Version} }

// Write sends a greeting: the magic word, a length and lines of a key and a value.
func (h Hello) Write(w io.Writer) error {
	var b bytes.Buffer
	line := func(key, value string) {
		if value != "" && value != "0" {
			fmt.Fprintf(&b, "%s %s\n", key, strings.NewReplacer("\n", " ", "\r", " ").Replace(value))
		}
	}
	b.WriteString(Magic + "\x00\x00\x00\x00")
	line("oldest", strconv.Itoa(h.Oldest))
	line("version", strconv.Itoa(h.Version))
	line("program", h.Program)
	line("join", h.Join)
	line("error", h.Error)
	out := b.Bytes()
	if len(out) > maxLength {
		return fmt.Errorf("a greeting of %d bytes", len(out))
	}
	binary.BigEndian.PutUint32(out[len(Magic):], uint32(len(out)-len(Magic)-4))
	_, err := w.Write(out)
	return err
}

// Read reads a greeting and not a byte more.
func Read(r io.Reader) (Hello, error) {
	var magic [len(Magic)]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return Hello{}, fmt.Errorf("no greeting: %w", err)
	}
	if string(magic[:]) != Magic {
		return Hello{}, fmt.Errorf("no greeting: %q came instead", magic[:])
	}
	return ReadRest(r)
}

// ReadRest reads what follows the magic word.
func ReadRest(r io.Reader) (Hello, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return Hello{}, fmt.Errorf("half a greeting: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxLength {
		return Hello{}, fmt.Errorf("a greeting of %d bytes; at most %d are allowed", n, maxLength)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return Hello{}, fmt.Errorf("half a greeting: %w", err)
	}
	return parse(string(body))
}

// parse reads the lines; keys that it does not know are another version's.
func parse(text string) (h Hello, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number := func(into *int) {
			n, e := strconv.Atoi(value)
			if e != nil || n < 0 || n > 1<<24 {
				err = fmt.Errorf("a greeting with %s %q", key, value)
			}
			*into = n
		}
		switch key {
		case "oldest":
			number(&h.Oldest)
		case "version":
			number(&h.Version)
		case "program":
			h.Program = value
		case "join":
			h.Join = value
		case "error":
			h.Error = value
		}
		if err != nil {
			return Hello{}, err
		}
	}
	if h.Version == 0 {
		return Hello{}, fmt.Errorf("a greeting without a version")
	}
	return h, nil
}

// VersionError is returned where the two sides have no version in common.
type VersionError struct{ Oldest, Version int } // the other side's

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks version %d to %d of the helper's protocol, this one %d to %d: bring both to the same release of rentop",
		e.Oldest, e.Version, Oldest, Version)
}

// Agree returns the version that both speak.
func (h Hello) Agree() (int, error) {
	v := min(h.Version, Version)
	if v < h.Oldest || v < Oldest {
		return 0, &VersionError{h.Oldest, h.Version}
	}
	return v, nil
}
