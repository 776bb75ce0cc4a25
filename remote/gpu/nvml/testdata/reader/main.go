// Reader serves the GPUs over its own streams, as the helper does: what the tests
// and measurements of package nvml run.
package main

import (
	"context"
	"fmt"
	"os"

	"rentop/remote/agent/link"
	"rentop/remote/gpu/nvml"
)

// streams are the process's own.
type streams struct{}

func (streams) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (streams) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (streams) Close() error                { os.Stdout.Close(); return os.Stdin.Close() }

func main() {
	l := link.New(streams{}, link.Options{})
	defer l.Close()
	if err := nvml.Serve(context.Background(), l); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
