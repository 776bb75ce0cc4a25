// Package far is the sync service: what rentop asks the helper on an instance
// for, over one link. [Serve] runs there, a [Client] here, and both ends use the
// same two pumps for content: a sender that reads, packs and sends files, and a
// receiver that writes them.
//
//	c := far.NewClient(l)
//	abs, e, err := c.Resolve(ctx, "~/project")
//	err = c.Push(ctx, ".", abs, items, far.Options{Done: done})
//
// Many calls share the link. No side may send more than the other has granted,
// so the goroutine that reads the link never waits for a consumer: nothing
// deadlocks, and memory does not grow with the transfer.
//
// A file has under its name the old content or the whole new one: it is written
// beside, its SHA-256 compared between the two sides, put on disk and renamed.
// Neither side trusts the other: lengths, counts and paths are checked, and what
// breaks the protocol ends the link with an error that says which rule.
package far
