// Command rentop-guard is the helper that a person leaves running on an instance: it
// keeps the history and acts by rules while nobody is connected. It is a program
// beside rentop-agent, so that neither is sent with what the other does. Release
// builds of rentop carry it for linux/amd64 and linux/arm64.
package main

import (
	"context"
	"os"

	"rentop/remote/agent/serve"
	"rentop/remote/gpu/guard"
)

func main() {
	ctx, args := context.Background(), os.Args[1:]
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	if len(args) > 0 && args[0] == "guard" {
		os.Exit(guard.Main(ctx, []string{program}, args[1:]))
	}
	os.Exit(serve.Main(ctx, args, map[string]serve.Service{"guard": guard.Service([]string{program})}))
}
