// Command syncbench keeps a rentop session open and moves trees over it when it
// is told to, so that a benchmark can time a transfer of a running rentop beside
// peers over an open ControlMaster. .ci/bench-sync uses it.
//
//	syncbench hold SOCKET NAME            log in, listen, until stopped
//	syncbench push SOCKET LOCAL REMOTE    ask for a transfer and wait for its end
//	syncbench pull SOCKET REMOTE LOCAL
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"rentop/session"
	"rentop/sync"
)

// order is what push and pull send; answer what comes back.
type order struct {
	Direction     sync.Direction
	Local, Remote string
}

type answer struct {
	Err    string
	Failed []string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "syncbench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case len(args) == 3 && args[0] == "hold":
		return hold(ctx, args[1], args[2])
	case len(args) == 4 && args[0] == "push":
		return ask(args[1], order{sync.Push, args[2], args[3]})
	case len(args) == 4 && args[0] == "pull":
		return ask(args[1], order{sync.Pull, args[3], args[2]})
	}
	return errors.New("usage: syncbench hold SOCKET NAME | push SOCKET LOCAL REMOTE | pull SOCKET REMOTE LOCAL")
}

// hold is a rentop whose screen is open: its sessions are live, telemetry flows.
func hold(ctx context.Context, socket, name string) error {
	dirs, err := session.DefaultDirs()
	if err != nil {
		return err
	}
	fleet, err := session.Open(ctx, session.Options{Dirs: dirs, Live: true})
	if err != nil {
		return err
	}
	defer fleet.Close()
	s, err := fleet.Session(name)
	if err != nil {
		return err
	}
	if err := s.Ready(ctx); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		serve(ctx, s, c)
	}
}

func serve(ctx context.Context, s *session.Session, c net.Conn) {
	defer c.Close()
	var o order
	if err := json.NewDecoder(bufio.NewReader(c)).Decode(&o); err != nil {
		return
	}
	var a answer
	res, err := s.Transfer(ctx, session.TransferSpec{Direction: o.Direction, Local: o.Local, Remote: o.Remote}, nil, nil)
	if err != nil {
		a.Err = err.Error()
	}
	if res != nil {
		for _, f := range res.Failed {
			a.Failed = append(a.Failed, f.Path+": "+f.Err.Error())
		}
	}
	json.NewEncoder(c).Encode(a)
}

func ask(socket string, o order) error {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := json.NewEncoder(c).Encode(o); err != nil {
		return err
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return err
	}
	if a.Err != "" || len(a.Failed) > 0 {
		return fmt.Errorf("%s %v", a.Err, a.Failed)
	}
	return nil
}
