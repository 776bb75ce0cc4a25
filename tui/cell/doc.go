// Package cell is the paper that screens are drawn on: a grid of terminal cells.
//
// Text is cleaned, measured and cut in one place, [Area.Put], so that no escape
// sequence of an instance reaches the terminal and no line is ever wider than
// it, whatever a screen asks for.
package cell
