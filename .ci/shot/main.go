// Command shot turns a captured terminal screen (`tmux capture-pane -pe`) on
// standard input into an SVG picture on standard output.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	cols := flag.Int("cols", 120, "width of the screen in cells")
	rows := flag.Int("rows", 36, "height of the screen in cells")
	title := flag.String("title", "rentop", "shown in the window's bar")
	flag.Parse()
	text, err := io.ReadAll(io.LimitReader(os.Stdin, 8<<20))
	if err == nil {
		_, err = io.WriteString(os.Stdout, draw(parse(string(text), *cols, *rows), *title))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shot:", err)
		os.Exit(1)
	}
}
