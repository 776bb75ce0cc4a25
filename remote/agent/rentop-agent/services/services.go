// Package services lists what the helper on an instance can do. `rentop agent` is
// the same.
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
	return serve.Main(ctx, args, all(self))
}

// all are the services by name, of a helper that is started as self.
func all(self []string) map[string]serve.Service {
	all := map[string]serve.Service{"sync": far.Serve, "guard": guard.Service(self)}
	if nvml.Built { // a release's helper is built without; its rentop-gpu is with
		all["gpu"] = nvml.Serve
	}
	return all
}
