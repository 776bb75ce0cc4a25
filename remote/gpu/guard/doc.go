// Package guard watches an instance while nobody is connected: it keeps the history
// of its GPUs, and acts when a rule that a person gave is met. The guard is a process
// of its own on the instance; it needs no port, no root and no credential.
//
// rentop sends a [Spec] through the helper's "guard" service, which starts the guard
// and answers when every rule is armed, or says which cannot be. What is believed
// afterwards is only what [ReadScript] reads back: the living process and its
// [State]. All that the guard has is in ~/.rentop/guard:
//
//	spec      what it was asked for
//	state     where it stands, written beside and renamed
//	journal   what it did, a line each, synced
//	pid       its process
//	ring/     the history
//
// Deciding ([Watch]) is apart from doing, and knows no clock of its own.
package guard
