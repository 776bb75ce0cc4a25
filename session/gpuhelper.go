package session

import (
	"context"
	"errors"
	"fmt"

	"rentop/remote"
	"rentop/remote/agent"
	agentlink "rentop/remote/agent/link"
	"rentop/remote/gpu"
	"rentop/remote/gpu/nvml"
	"rentop/session/phrase"
)

// gpuHelper opens the helper that reads the GPUs at the source; nil where there is
// nothing for it to read, or nobody to read it.
func (s *Session) gpuHelper(conn *remote.Conn, facts *remote.Facts) gpu.Opener {
	if s.f.opt.Simulated || facts != nil && facts.NvidiaSMI == "" {
		return nil
	}
	known := agent.GPU(nvml.Built)
	var never error // what cannot be had there is not sent again and again over this connection
	return func(ctx context.Context) (agentlink.Link, error) {
		if never != nil {
			return nil, never
		}
		h, err := agent.Open(ctx, conn, facts, "gpu", agent.Options{Binaries: known, MaxStripes: 1})
		if missing := (*agent.MissingError)(nil); errors.As(err, &missing) {
			never = err
		}
		if err != nil {
			return nil, err
		}
		return &helperLink{h.Link(), h}, nil
	}
}

// helperLink is the link of a helper that ends with it.
type helperLink struct {
	agentlink.Link
	helper *agent.Session
}

// Recv says why the helper ended, where it said so.
func (l *helperLink) Recv() (agentlink.Message, error) {
	m, err := l.Link.Recv()
	if err != nil {
		err = l.helper.Explain(err)
	}
	return m, err
}

// Close ends both.
func (l *helperLink) Close() error { return errors.Join(l.Link.Close(), l.helper.Close()) }

// Hidden says what the processes hold that the container does not show, a text a
// GPU; none where the source does not tell it by GPU.
func Hidden(s *gpu.Sample) (rows []phrase.Text) {
	for _, g := range s.GPUs {
		mem, ok := g.HiddenMem.Get()
		held := "?"
		if ok {
			held = fmt.Sprintf("%.1f GiB", mem/(1<<30))
		}
		switch {
		case g.HiddenProcs > 0:
			rows = append(rows, phrase.Count("gpu.hidden", g.HiddenProcs, held, g.Index))
		case ok && mem > 0:
			rows = append(rows, phrase.Say("gpu.hidden.mem", held, g.Index))
		}
	}
	return rows
}

// Source says where a sample comes from, and why not from the helper; none where
// that is what was asked for.
func Source(s *gpu.Sample) phrase.Text {
	switch {
	case s.Source == "nvml":
		return phrase.Say("gpu.source.nvml")
	case s.Lesser != "":
		return phrase.Say("gpu.source.lesser", s.Source, s.Lesser)
	}
	return nil
}
