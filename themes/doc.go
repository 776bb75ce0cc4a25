// Package themes is what the screens look like: colours by meaning, and the
// glyphs that lines and bars are made of. It is plain data; colour is never the
// only sign of anything, so every theme may be replaced by mono.
package themes
