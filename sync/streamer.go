package sync

import "context"

// This file is what a transport with a helper on the instance offers beside
// Transport: the engine streams through it where it is there.

// Streamer moves files as they are found, without a plan of the whole before
// the first byte leaves. Memory does not grow with the tree.
type Streamer interface {
	Transport
	// Walk is List in the order of tree.Compare.
	Walk(ctx context.Context, root string, emit func(Entry) error) error
	// Push carries out actions as they come until the channel is closed: Mkdir,
	// Send, Link, Attr, Delete and Move, under root on the instance, which exists. An
	// action that needs an earlier one (a file in a new folder) is ordered after
	// it; else several are on their way at once. The mode of a folder that its
	// owner may not write is set after all else. done is called once an action,
	// never from two goroutines at once, for a Send with the SHA-256 that both
	// sides computed. A source that changes while it is read is sent again once.
	// What waits in the channel is sent once nothing follows it for some
	// milliseconds, so the channel may stay open. The error is for what ended
	// the whole; actions not reported by then were not confirmed.
	Push(ctx context.Context, src, root string, actions <-chan Action, m Meter, done func(Action, error)) error
	// Pull is Push the other way, into the folder dst of this machine, which
	// exists and which no entry leaves.
	Pull(ctx context.Context, root, dst string, actions <-chan Action, m Meter, done func(Action, error)) error
}
