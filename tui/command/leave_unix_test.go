//go:build !windows

package command_test

import "syscall"

// leaveTerminal gives the process a session of its own, without a terminal. It
// fails, as it should, where a script gave it a terminal and a session.
func leaveTerminal() { _, _ = syscall.Setsid() }
