// Package storetest starts a real S3 server for tests: versitygw over a folder.
package storetest

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote/needtest"
)

// Bucket is there in each server; KeyID and Secret open it.
const (
	Bucket = "runs"
	KeyID  = "RENTOPTESTKEY"
	Secret = "rentop-test-secret-0123456789"
)

// Server is a running one.
type Server struct {
	Endpoint string // http://127.0.0.1:port
	Root     string // its folder: Root/Bucket/key is an object's content
}

// Start starts a server that ends with the test. root "" is a temporary folder.
func Start(t testing.TB, root string) *Server {
	t.Helper()
	program := needtest.Program(t, "versitygw")
	if root == "" {
		root = t.TempDir()
	}
	if err := os.MkdirAll(filepath.Join(root, Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 { // a port may be taken between
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		var said bytes.Buffer
		cmd := exec.Command(program, "--quiet", "--port", addr, "posix", root)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+KeyID, "ROOT_SECRET_KEY="+Secret)
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		if answers(addr, ended) {
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				<-ended
			})
			return &Server{Endpoint: "http://" + addr, Root: root}
		}
		_ = cmd.Process.Kill()
		<-ended
		t.Logf("versitygw: %s", said.String())
	}
	t.Fatal("versitygw does not start")
	return nil
}

func answers(addr string, ended <-chan struct{}) bool {
	for range 200 {
		select {
		case <-ended:
			return false
		case <-time.After(25 * time.Millisecond):
		}
		if resp, err := http.Get("http://" + addr + "/"); err == nil {
			resp.Body.Close()
			return true
		}
	}
	return false
}
