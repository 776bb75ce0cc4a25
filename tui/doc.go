// Package tui is what meets a person at a terminal. It draws the fleet's
// immutable views and asks the fleet to act; it has no network, files or money
// of its own.
//
// [Run] starts it. One model owns all state; a screen or a dialog is a plain
// struct with a file of its own. What a key does is an [action] in one list from
// which the footer, the help and the command palette are made. Everything is
// drawn on a [cell.Grid], which cleans and cuts all text.
package tui
