package session

import "golang.org/x/sys/windows"

// errAddrInUse is what this system says of an address that another listens at.
const errAddrInUse = windows.WSAEADDRINUSE
