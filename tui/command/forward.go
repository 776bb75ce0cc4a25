package command

import (
	"net/netip"
	"strconv"
	"strings"
	stdsync "sync"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
)

func (a *app) forwardCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "forward NAME PORT[:PORT]",
		Short:   "Bring a port of the instance to this machine, until Ctrl-C",
		Example: "  rentop forward a100 8888          Jupyter there, at http://127.0.0.1:8888\n  rentop forward a100 9000:6006     TensorBoard there, at port 9000 here",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			local, there, err := ports(args[1])
			if err != nil {
				return err
			}
			var once stdsync.Once // a browser tries many times
			refused := func(err error) {
				once.Do(func() { a.note("rentop: %s: %s", args[0], remote.Clean(err.Error())) })
			}
			return a.session(cmd.Context(), args[0], func(s *session.Session) error {
				err := s.Forward(cmd.Context(), local, there, func(at string) {
					a.note("http://%s is %s on %s; Ctrl-C ends it", at, there, s.Name())
				}, refused)
				if cmd.Context().Err() != nil {
					return nil
				}
				return err
			})
		},
		ValidArgsFunction: a.instanceNames,
	}
	return a.connects(c)
}

// ports reads LOCAL[:REMOTE]. Only this machine may use the local end.
func ports(s string) (local, there string, err error) {
	left, right, two := strings.Cut(s, ":")
	if !two {
		right = left
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var out [2]string
	for i, p := range []string{left, right} {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", "", badUsage("%q is no port: write 8888, or 9000:8888 for port 8888 there at 9000 here", s)
		}
		out[i] = netip.AddrPortFrom(loopback, uint16(n)).String()
	}
	return out[0], out[1], nil
}
