// Package session owns all state: what you rent, what it costs, what runs there
// and what must be saved. One goroutine a session owns its state; everyone else
// sends it messages and reads immutable views. It is usable without a screen:
// every screen action is a method here, and a command calls the same one.
package session
