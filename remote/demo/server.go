//go:build unix

package demo

// The SSH server of an instance.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

func (m *machine) config() *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-rentop_demo",
		MaxAuthTries:  6,
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(key.Marshal(), m.fleet.login.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("not the demo's key")
		},
	}
	c.AddHostKey(m.hostKey)
	return c
}

func (m *machine) accept(ctx context.Context, ln net.Listener) {
	config := m.config()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return // plugged out
		}
		m.mu.Lock()
		if m.ln != ln {
			conn.Close()
			m.mu.Unlock()
			return
		}
		m.conns[conn] = true
		m.serving.Go(func() {
			m.serve(ctx, conn, config)
			conn.Close()
			m.mu.Lock()
			delete(m.conns, conn)
			m.mu.Unlock()
		})
		m.mu.Unlock()
	}
}

// serve runs one connection until either side ends it.
func (m *machine) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // a refused login, a port scan
	}
	_ = conn.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer server.Close()
	wg.Go(func() { ssh.DiscardRequests(requests) }) // a keepalive is answered with "no", as OpenSSH does
	for nc := range channels {
		switch nc.ChannelType() {
		case "session":
			if ch, reqs, err := nc.Accept(); err == nil {
				wg.Go(func() { m.session(ctx, ch, reqs) })
			}
		case "direct-tcpip":
			wg.Go(func() { forward(ctx, nc) })
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "the demo has sessions and forwards only")
		}
	}
	cancel()
}

// forward connects to a port of this machine, and to no other.
func forward(ctx context.Context, nc ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if ssh.Unmarshal(nc.ExtraData(), &to) != nil || to.Port > 65535 {
		_ = nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	if ip := net.ParseIP(to.Host); to.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		_ = nc.Reject(ssh.Prohibited, "the demo forwards to loopback only")
		return
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, "connection refused")
		return
	}
	defer conn.Close()
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close(); ch.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { ssh.DiscardRequests(reqs) })
	wg.Go(func() {
		_, _ = io.Copy(conn, ch)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	})
	_, _ = io.Copy(ch, conn)
	_ = ch.CloseWrite()
	ch.Close()
	wg.Wait()
}

// serveFiles is the sftp subsystem. Relative paths are from the login's home.
func (m *machine) serveFiles(ch ssh.Channel) {
	server, err := sftp.NewServer(ch, sftp.WithServerWorkingDirectory(m.home))
	if err != nil {
		return
	}
	_ = server.Serve() // ends with the channel
	server.Close()
}
