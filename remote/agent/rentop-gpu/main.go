// Command rentop-gpu is the helper that reads GPUs through the driver's library. It
// is a program beside rentop-agent, because it needs the instance's C library, and
// because it may die with the driver. Release builds of rentop carry it for
// linux/amd64 and linux/arm64, linked so that it starts on glibc 2.17 (.ci/oldlibc).
package main

import (
	"context"
	"os"
	"runtime"

	"rentop/remote/agent/serve"
	"rentop/remote/gpu/nvml"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		unhurried()
	}
	runtime.GOMAXPROCS(1) // it works a few hundred microseconds a second; more threads only wake each other
	os.Exit(serve.Main(context.Background(), os.Args[1:], map[string]serve.Service{"gpu": nvml.Serve}))
}
