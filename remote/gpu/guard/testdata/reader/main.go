// Command reader is a helper that reads two imaginary GPUs, for the tests of the guard.
// With a file named "refuse" beside it, it has nothing to read.
package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/agent/serve"
	"rentop/remote/gpu/sample"
)

func main() {
	os.Exit(serve.Main(context.Background(), os.Args[1:], map[string]serve.Service{"gpu": read}))
}

func read(ctx context.Context, l link.Link) error {
	if _, err := os.Stat(filepath.Join(filepath.Dir(os.Args[0]), "refuse")); err == nil {
		return l.Send(sample.MessageRefused, sample.AppendProblem(nil, sample.Problem{What: "no driver"}))
	}
	var e sample.Encoder
	for {
		s := sample.Sample{TakenAt: time.Now(), Source: "nvml"}
		for i := range 2 {
			g := sample.NewGPU("")
			g.Index, g.Util = i, sample.Of(float64(i))
			s.GPUs = append(s.GPUs, g)
		}
		if err := l.Send(sample.MessageSample, e.Append(nil, s)); err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}
