// Package agent puts rentop's helper on an instance, starts it and opens links to
// its services.
//
// The helper is one static program, named by the hash of its content. It goes
// compressed to the first folder there that may hold and run it, is checked there
// before it runs, and lives as long as the channel that started it. It needs no
// port, no daemon and no root. Starting one that is there is one command and one
// round trip; see [Open].
package agent
