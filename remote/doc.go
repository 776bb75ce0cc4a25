// Package remote is one SSH connection and what can be done through it.
//
// A [Target] is what a person wrote, an [Endpoint] what their ssh_config makes of
// it, a [Conn] the live connection. Everything that runs on an instance goes
// through [Conn.Run], which hides the login shell and its noise; what comes back
// is hostile until [Clean] has seen it, and every word put into a script goes
// through [Quote].
package remote
