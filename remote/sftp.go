// File access: the sftp subsystem, or the server's program run by hand.

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pkg/sftp"
)

// NoSFTPError is returned where an instance offers no sftp in any way. Files can
// still go through [Conn.Run] with cat.
type NoSFTPError struct {
	Subsystem error // why the subsystem failed
	Program   error // why running sftp-server failed
}

func (e *NoSFTPError) Error() string {
	return "the instance has no sftp: the subsystem: " + Short(e.Subsystem.Error(), 200) + "; sftp-server by hand: " + Short(e.Program.Error(), 200)
}

func (e *NoSFTPError) Unwrap() []error { return []error{e.Subsystem, e.Program} }

const sftpTimeout = 10 * time.Second // for the protocol's greeting: some servers hang instead of refusing

// sftpScript finds the program where distributions put it.
const sftpScript = `for f in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server /usr/lib/ssh/sftp-server /usr/lib/sftp-server /usr/local/libexec/sftp-server "$(command -v sftp-server)"; do
[ -x "$f" ] && exec "$f"
done
echo "no sftp-server program found" >&2
exit 127
`

// SFTP opens file access, closed by the caller or with the connection. Where
// the subsystem is missing, hangs, or is spoiled by start-up files that print, the
// sftp-server program is run behind a marker. ctx covers the opening only.
func (c *Conn) SFTP(ctx context.Context) (*sftp.Client, error) {
	f, first := c.open.subsystem(ctx)
	if first == nil {
		return f, nil
	}
	var busy *BusyError
	if ctx.Err() != nil || errors.Is(first, ErrCut) && c.Err() != nil || errors.As(first, &busy) {
		return nil, first
	}
	f, second := c.open.sftpProgram(ctx)
	if second == nil {
		return f, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, &NoSFTPError{first, second}
}

func (c *channels) subsystem(ctx context.Context) (*sftp.Client, error) {
	ch, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	go ch.wait()
	go io.Copy(io.Discard, ch.Stderr())
	asked := make(chan error, 1)
	go func() { asked <- ch.request("subsystem", struct{ Name string }{"sftp"}) }()
	select {
	case err = <-asked:
	case <-time.After(sftpTimeout):
		err = errors.New("the server does not answer the request for sftp")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		ch.abandon()
		return nil, err
	}
	hangUp := sync.OnceFunc(func() { // the server's program ends with its stdin
		go func() { // ends with the channel
			ch.CloseWrite()
			ch.end()
		}()
	})
	f, err := greet(ctx, ch, ch, hangUp)
	if err != nil {
		// Dropbear 2022.83 may close a new channel when an old one's process dies
		// at that moment.
		select {
		case <-ch.closed:
		case <-time.After(time.Second):
		}
	}
	return f, err
}

// sftpProgram talks to sftp-server over a script's stdin and stdout.
func (c *channels) sftpProgram(ctx context.Context) (*sftp.Client, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended, over := make(chan error, 1), make(chan struct{})
	go func() { // ends with the client, which closes the pipes, or the connection
		_, err := c.run(life, Cmd{Script: sftpScript, Stdin: inR, Stdout: outW})
		if err == nil {
			err = io.EOF
		}
		outW.CloseWithError(err)
		inR.CloseWithError(err)
		ended <- err
		close(over)
	}()
	end := sync.OnceFunc(func() { // the program ends with its stdin; only one that hangs is killed
		inW.Close()
		outR.Close()
		select {
		case <-over:
		case <-time.After(time.Second):
		}
		cancel()
	})
	f, err := greet(ctx, outR, inW, end)
	if err != nil {
		select { // the script's own words say more
		case why := <-ended:
			if why != io.EOF && !errors.Is(why, context.Canceled) {
				err = why
			}
		case <-time.After(time.Second):
		}
	}
	return f, err
}

// stream joins both directions; its Close ends what is behind them.
type stream struct {
	io.Writer
	end func()
}

func (s stream) Close() error { s.end(); return nil }

// greet begins the protocol, within sftpTimeout.
func greet(ctx context.Context, r io.Reader, w io.Writer, end func()) (*sftp.Client, error) {
	type result struct {
		f   *sftp.Client
		err error
	}
	done := make(chan result, 1)
	go func() { // ends when end closes the stream
		f, err := sftp.NewClientPipe(&namesLimit{r: r, max: maxListing}, stream{w, end},
			sftp.MaxConcurrentRequestsPerFile(256), sftp.UseConcurrentReads(true))
		done <- result{f, err}
	}()
	timer := time.NewTimer(sftpTimeout)
	defer timer.Stop()
	var err error
	select {
	case g := <-done:
		if g.err == nil {
			return g.f, nil
		}
		err = fmt.Errorf("no sftp greeting: %w", g.err)
	case <-timer.C:
		err = fmt.Errorf("no sftp greeting within %v", sftpTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	end()
	return nil, err
}
