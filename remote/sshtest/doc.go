// Package sshtest gives tests a real SSH server on loopback: OpenSSH's sshd or
// Dropbear, with a throw-away user whose login shell, home and noise the test
// chooses, and a [Proxy] that breaks the network between.
//
//	s := sshtest.Start(t, sshtest.Options{Shell: "fish"})
//	c, err := ssh.Dial("tcp", s.Addr, s.ClientConfig())
//
// It needs Linux and root (a login shell belongs to a user); elsewhere, and
// where a program is missing, it skips the test and names what is missing.
package sshtest
