//go:build linux

package nvml

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watchKernelLog tells XID errors from the kernel's log where this login may read
// it: the library leaves some of them out (79, 119, 120: gpud#343). Only what is
// written from now on counts.
func watchKernelLog(ctx context.Context, every time.Duration, xid func(bus string, code int)) {
	fd, err := syscall.Open("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	if _, err := syscall.Seek(fd, 0, 2); err != nil {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	buf := make([]byte, 8<<10)
	for {
		for range 10_000 { // one record a read
			n, err := syscall.Read(fd, buf)
			if err == syscall.EPIPE { // records were overwritten before we read them
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			if bus, code, ok := parseXID(string(buf[:n])); ok {
				xid(bus, code)
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// parseXID reads "…;NVRM: Xid (PCI:0000:3b:00): 79, pid=…".
func parseXID(line string) (bus string, code int, ok bool) {
	_, rest, ok := strings.Cut(line, "NVRM: Xid (PCI:")
	if !ok {
		return "", 0, false
	}
	bus, rest, ok = strings.Cut(rest, "): ")
	if !ok || len(bus) > 20 {
		return "", 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.ParseUint(rest[:end], 10, 16)
	return bus, int(n), err == nil
}

// sameBus compares "00000000:3B:00.0" with "0000:3b:00".
func sameBus(a, b string) bool {
	norm := func(s string) string {
		s, _, _ = strings.Cut(strings.ToLower(s), ".")
		domain, rest, ok := strings.Cut(s, ":")
		if !ok {
			return s
		}
		return strings.TrimLeft(domain, "0") + ":" + rest
	}
	return a != "" && norm(a) == norm(b)
}
