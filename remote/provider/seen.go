package provider

// Which instances a key has seen: without it, "no such instance" is what a key
// of another account is told as well.

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Seen remembers which instances a key has seen, over restarts where it can.
type Seen interface {
	Add(kind, who, id string)
	Has(kind, who, id string) bool
}

// maxSeen bounds the file: about ten thousand rentals.
const maxSeen = 1 << 20

// SeenFile keeps them in a file of lines, "kind who id", which several processes
// may append to. A file that cannot be read or written only means that less can
// be proven later, so it is no error.
func SeenFile(path string) Seen { return &seen{path: path} }

// seen with an empty path remembers for the life of the process.
type seen struct {
	path string
	mu   sync.Mutex
	have map[string]bool
}

func (s *seen) Add(kind, who, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := kind + " " + who + " " + id
	if s.load(); s.have[line] || strings.ContainsAny(id, " \r\n") {
		return
	}
	s.have[line] = true
	if s.path == "" {
		return
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() < maxSeen {
		fmt.Fprintln(f, line)
	}
}

func (s *seen) Has(kind, who, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	return s.have[kind+" "+who+" "+id]
}

func (s *seen) load() {
	if s.have != nil {
		return
	}
	s.have = map[string]bool{}
	if s.path == "" {
		return
	}
	f, err := os.Open(s.path)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, 2*maxSeen)); lines.Scan(); {
		s.have[lines.Text()] = true
	}
}
