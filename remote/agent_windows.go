package remote

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/Microsoft/go-winio"
)

const windowsAgent = `\\.\pipe\openssh-ssh-agent`

// dialAgent reaches the agent at path, the one of the environment, or the one
// that Windows brings. Git for Windows names a socket file, Windows a pipe.
func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	if path == "" {
		path = os.Getenv("SSH_AUTH_SOCK")
	}
	if path == "" {
		path = windowsAgent
	}
	if strings.HasPrefix(strings.ReplaceAll(path, "/", `\`), `\\.\pipe\`) {
		return winio.DialPipeContext(ctx, strings.ReplaceAll(path, "/", `\`))
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
