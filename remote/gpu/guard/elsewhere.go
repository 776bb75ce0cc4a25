//go:build !linux

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"

	"rentop/remote/agent/link"
)

// Main says that the guard runs on Linux alone.
func Main(context.Context, []string, []string) int {
	fmt.Fprintln(os.Stderr, "rentop's guard runs on Linux alone")
	return 1
}

// Service says so too.
func Service([]string) func(context.Context, link.Link) error {
	return func(context.Context, link.Link) error { return errors.New("rentop's guard runs on Linux alone") }
}
