// Command rentop-store is the helper that carries out signed requests to object
// storage, on an instance that has neither curl nor python3. It is a program beside
// rentop-agent, which has no use for HTTP and stays small without it. Release builds
// of rentop carry it for linux/amd64 and linux/arm64.
package main

import (
	"context"
	"os"

	"rentop/remote/store/hand"
)

func main() { os.Exit(hand.Main(context.Background(), os.Args[1:])) }
