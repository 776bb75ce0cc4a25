// Package services lists what the helpers on an instance can do. A release has a
// program for each, because they are sent over slow lines; `rentop agent` is all of
// them.
package services

import (
	"context"
	"os"

	"rentop/remote/agent/serve"
	"rentop/remote/gpu/guard"
	"rentop/remote/gpu/nvml"
	"rentop/sync/far"
)

// Main runs one command line of a helper that can do everything and returns the exit
// code. before are the words before it: "agent" where rentop is its own helper.
func Main(ctx context.Context, before, args []string) int {
	if len(args) > 0 && args[0] == "guard" {
		return Guard(ctx, before, args)
	}
	all := map[string]serve.Service{"sync": far.Serve, "guard": guard.Service(self(before))}
	if nvml.Built { // the driver's library needs cgo
		all["gpu"] = nvml.Serve
	}
	return serve.Main(ctx, args, all)
}

// Transfers is Main of the program rentop-agent.
func Transfers(ctx context.Context, args []string) int {
	return serve.Main(ctx, args, map[string]serve.Service{"sync": far.Serve})
}

// Guard is Main of the program rentop-guard.
func Guard(ctx context.Context, before, args []string) int {
	if len(args) > 0 && args[0] == "guard" {
		return guard.Main(ctx, self(before), args[1:])
	}
	return serve.Main(ctx, args, map[string]serve.Service{"guard": guard.Service(self(before))})
}

// self is how this program was started.
func self(before []string) []string {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return append([]string{program}, before...)
}
