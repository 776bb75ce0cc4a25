//go:build unix

package gpu

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Through the collector under a real sh, as on an instance without nvidia-smi.
func TestOtherToolsThroughTheCollector(t *testing.T) {
	for tool, c := range map[string]struct {
		print string
		cards int
		name  string
	}{
		"rocm-smi": {recorded(t, "rocm-telegraf-vega-20-WKS-GL-XE.json"), 1, "Radeon Instinct MI50 32GB"},
		"npu-smi":  {recorded(t, "excerpt/npu-smi-25.2.0-910B4.txt"), 2, "910B4-1"},
		"amd-smi":  {`[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}}]`, 1, ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "answer"), []byte(c.print), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tool), []byte("#!/bin/sh\ncat '"+dir+"/answer'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		r := local{edit: func(s string) string { return "PATH='" + dir + "':$PATH\n" + s }}
		s, err := Once(t.Context(), r, nil, Options{})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		if s.Source != tool || len(s.GPUs) != c.cards || s.GPUs[0].Name != c.name || s.Problem != nil || s.Host.MemTotal.State != OK {
			t.Errorf("%s: %+v", tool, s)
		}
		n := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		Stream(ctx, r, nil, Options{}, func(s Sample) {
			if s.Source == tool && len(s.GPUs) == c.cards && s.Host.CPU.State == OK {
				if n++; n == 2 {
					cancel()
				}
			}
		})
		cancel()
		if n < 2 {
			t.Errorf("%s: %d samples in a stream", tool, n)
		}
	}
}
