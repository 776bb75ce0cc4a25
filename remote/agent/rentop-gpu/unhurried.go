//go:build linux

package main

import (
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slack is how much later than asked for a thread may be woken: little beside a
// sample a second.
const slack = 10 * time.Millisecond

// begunAnew is in the environment of a process that has its slack.
const begunAnew = "RENTOP_GPU_UNHURRIED=1"

// unhurried lets the kernel wake every thread of this process a little late. While
// Go code runs or waits for the driver, the runtime looks after it every 20 µs,
// which is a third of all that this process costs. The runtime's own thread begins
// before main, with the slack of the thread that begins it: so the program is begun
// once more. Where the kernel does not let it, it is only as busy as without.
func unhurried() {
	if slices.Contains(os.Environ(), begunAnew) {
		return
	}
	own, err := os.Executable()
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Nanoseconds()), 0, 0, 0) != nil {
		return
	}
	syscall.Exec(own, os.Args, append(os.Environ(), begunAnew))
}
