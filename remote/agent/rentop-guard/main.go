// Command rentop-guard is the helper that a person leaves running on an instance: it
// keeps the history and acts by rules while nobody is connected. It is a program
// beside rentop-agent, so that neither is sent with what the other does. Release
// builds of rentop carry it for linux/amd64 and linux/arm64.
package main

import (
	"context"
	"os"

	"rentop/remote/agent/rentop-agent/services"
)

func main() { os.Exit(services.Guard(context.Background(), nil, os.Args[1:])) }
