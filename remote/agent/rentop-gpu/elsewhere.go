//go:build !linux

package main

// unhurried does nothing: the program serves on Linux.
func unhurried() {}
