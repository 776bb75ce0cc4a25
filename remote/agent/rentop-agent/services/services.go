// Package services lists what the helpers on an instance can do. `rentop agent` is all
// of them; a release has a program for each, because they are sent over slow lines.
package services

import (
	"context"
	"os"

	"rentop/remote/agent/serve"
	"rentop/remote/gpu/guard"
	"rentop/remote/gpu/nvml"
	"rentop/sync/far"
)

// Main runs one command line of the helper and returns the exit code. before are the
// words before it: "agent" where rentop is its own helper.
func Main(ctx context.Context, before, args []string) int {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	self := append([]string{program}, before...)
	if len(args) > 0 && args[0] == "guard" {
		return guard.Main(ctx, self, args[1:])
	}
	all := map[string]serve.Service{"sync": far.Serve, "guard": guard.Service(self)}
	if nvml.Built { // the driver's library needs cgo
		all["gpu"] = nvml.Serve
	}
	return serve.Main(ctx, args, all)
}
