package sync

import "context"

// This file is what a transport with a helper on the instance offers beside
// Transport: it moves things as they are named, so that the first byte leaves
// before the last file has been looked at.

// Streamer is such a transport; the engine streams where it has one.
type Streamer interface {
	Transport
	// Walk is List in tree order.
	Walk(ctx context.Context, root string, emit func(Entry) error) error
	// Push carries out actions as they come, in order, until the channel is closed:
	// Mkdir, Send, Link, Attr, Delete, Move. done is called as by Send, with what the
	// instance confirmed. Several Sends are on their way at once; an action that needs an
	// earlier one (a file in a new folder) is ordered after it.
	Push(ctx context.Context, src, root string, actions <-chan Action, m Meter, done func(Action, error)) error
	// Pull fetches entries as they come into dst.
	Pull(ctx context.Context, root, dst string, files <-chan Action, m Meter, done func(Action, error)) error
}
