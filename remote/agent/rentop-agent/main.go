// Command rentop-agent is rentop's helper on an instance: transfers' other end. rentop
// installs it by the hash of its content, starts it over its own SSH connection and
// speaks to it over its stdin and stdout; it is gone when they close. Release builds
// of rentop carry it for linux/amd64 and linux/arm64.
package main

import (
	"context"
	"os"

	"rentop/remote/agent/serve"
	"rentop/sync/far"
)

func main() {
	os.Exit(serve.Main(context.Background(), os.Args[1:], map[string]serve.Service{"sync": far.Serve}))
}
