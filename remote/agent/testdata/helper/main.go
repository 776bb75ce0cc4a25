// Command helper serves what the tests of package agent ask for.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/agent/serve"
)

func main() {
	os.Exit(serve.Main(context.Background(), os.Args[1:], map[string]serve.Service{"echo": echo, "flood": flood, "sink": sink, "busy": busy}))
}

// echo sends back what it gets.
func echo(_ context.Context, l link.Link) error {
	for {
		m, err := l.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = l.Send(m.Kind, m.Payload)
		}
		if err != nil {
			return err
		}
		m.Free()
	}
}

// flood sends until nobody takes it, at 50 MiB/s: more than a window carries far away,
// and cores are left to others.
func flood(_ context.Context, l link.Link) error {
	block := make([]byte, 1<<20)
	for {
		if err := l.Send(1, block); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sink takes all.
func sink(_ context.Context, l link.Link) error {
	for {
		m, err := l.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		m.Free()
	}
}

// busy never looks at its link.
func busy(context.Context, link.Link) error {
	time.Sleep(time.Hour)
	return nil
}
