//go:build !windows

package session

import "syscall"

// errAddrInUse is what this system says of an address that another listens at.
const errAddrInUse = syscall.EADDRINUSE
