package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
)

func TestNoticeAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"http://169.254.169.254/x": true, "http://127.0.0.1:80/x": true, "http://[fe80::1]/x": true,
		"http://10.0.0.1/x": false, "https://169.254.169.254/": false, "http://localhost/": false, "http://evil.example/": false,
		"http://me:secret@127.0.0.1/": false, "file:///etc/passwd": false, "": false, "x;y": false,
	} {
		if _, err := NoticeAt(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
	for kind, good := range map[string]bool{"aws": true, "alibaba": true, "tencent": true, "vast": false, "runpod": false, "lambda": false, "": false, "command": false, "new": false} {
		_, err := NoticeInside(kind)
		var no *NotInsideError
		if (err == nil) != good || err != nil && !errors.As(err, &no) {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// TestNoticeScript: each tool that an instance may have tells a notice, that there is
// none, and that nobody answers, apart.
func TestNoticeScript(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "sh")
	mux := http.NewServeMux()
	mux.HandleFunc("/none", http.NotFound)
	mux.HandleFunc("/given", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("2026-11-30T12:03:00Z")) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	gone := httptest.NewServer(mux)
	gone.Close()
	for _, tool := range []string{"curl", "python3", "wget"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			needtest.Program(t, tool)
			bin := t.TempDir()
			for _, p := range []string{tool, "tail", "sed", "head"} {
				full, err := exec.LookPath(p)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat("/usr/bin/" + p); err == nil { // a version manager's own needs more of PATH
					full = "/usr/bin/" + p
				}
				if err := os.WriteFile(filepath.Join(bin, p), []byte("#!/bin/sh\nexec "+full+" \"$@\"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			run := func(url string) (string, error) {
				script, err := NoticeAt(url)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
				cmd.Env = []string{"PATH=" + bin, "http_proxy=http://127.0.0.1:1"}
				out, err := cmd.CombinedOutput()
				return strings.TrimSpace(string(out)), err
			}
			if out, err := run(srv.URL + "/none"); out != "" || err != nil {
				t.Errorf("none: %q %v", out, err)
			}
			if out, err := run(srv.URL + "/given"); out != "2026-11-30T12:03:00Z" || err != nil {
				t.Errorf("given: %q %v", out, err)
			}
			if out, err := run(gone.URL + "/none"); err == nil {
				t.Errorf("nobody: %q", out)
			}
			if out, err := run(srv.URL + "/broken"); err == nil && tool != "wget" { // which does not tell errors apart
				t.Errorf("broken: %q", out)
			}
		})
	}
}
