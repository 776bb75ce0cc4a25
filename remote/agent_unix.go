//go:build !windows

package remote

import (
	"context"
	"net"
	"os"
)

// dialAgent reaches the agent at path, or the one of the environment.
func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	if path == "" {
		path = os.Getenv("SSH_AUTH_SOCK")
	}
	if path == "" {
		return nil, errNoAgent
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
