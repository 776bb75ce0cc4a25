// Package scrape gives one page of text to who asks for it by HTTP on this
// machine: a Prometheus. It can be read and nothing else.
package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// ErrBeyond is wrapped where an address would be reachable from other machines.
var ErrBeyond = errors.New("it could be read from other machines")

// Options say where the page is.
type Options struct {
	Listen string            // "127.0.0.1:9100", "localhost:9100", ":9100"; port 0 is any free one
	Beyond bool              // other machines may read it too
	Type   string            // the page's content type
	Page   func(io.Writer)   // writes the page; it may be called by several at once
	Ready  func(addr string) // nil, or called once with the address listened on
}

// pageTime bounds a request from its first byte to its last.
const pageTime = 10 * time.Second

// Serve answers until ctx ends, which is no error. It returns when the last
// answer is out.
func Serve(ctx context.Context, o Options) error {
	ln, err := listen(ctx, o)
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler:     handler(o),
		ReadTimeout: pageTime, WriteTimeout: pageTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if s.Shutdown(last) != nil {
			s.Close()
		}
	})
	if o.Ready != nil {
		o.Ready(ln.Addr().String())
	}
	err = s.Serve(ln)
	if !stop() {
		<-stopped
	}
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("answer at %s: %w", ln.Addr(), err)
}

func listen(ctx context.Context, o Options) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: it is written HOST:PORT, as in 127.0.0.1:9100", o.Listen)
	}
	if !o.Beyond && !loopback(host) {
		return nil, fmt.Errorf("listen on %s: %w", o.Listen, ErrBeyond)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; is something else there? another port is chosen with --listen", o.Listen, err)
	}
	if tcp, is := ln.Addr().(*net.TCPAddr); !o.Beyond && (!is || !tcp.IP.IsLoopback()) { // a name that means something else here
		ln.Close()
		return nil, fmt.Errorf("listen on %s: %w", o.Listen, ErrBeyond)
	}
	return ln, nil
}

// loopback says whether a host can only be this machine.
func loopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// handler gives the page to GET /metrics. Bound to this machine it refuses a request
// that names another host: a web page could make a browser ask on its behalf
// (DNS rebinding), and what an instance costs is nobody's business.
func handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		o.Page(&page)
		w.Header().Set("Content-Type", o.Type)
		w.Write(page.Bytes()) // who asked may be gone: nothing is lost
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "rentop: the figures are at /metrics\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !o.Beyond && !loopback(strings.Trim(host, "[]")) {
			http.Error(w, "rentop answers only to this machine's own name", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
