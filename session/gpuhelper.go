package session

import (
	"context"
	"errors"

	"rentop/remote"
	"rentop/remote/agent"
	agentlink "rentop/remote/agent/link"
	"rentop/remote/gpu"
	"rentop/remote/gpu/nvml"
)

// gpuHelper opens the helper that reads the GPUs at the source; nil where there is
// nothing for it to read, or nobody to read it.
func (s *Session) gpuHelper(conn *remote.Conn, facts *remote.Facts) gpu.Opener {
	if s.f.opt.Simulated || facts != nil && facts.NvidiaSMI == "" {
		return nil
	}
	known := agent.GPU(nvml.Built)
	return func(ctx context.Context) (agentlink.Link, error) {
		h, err := agent.Open(ctx, conn, facts, "gpu", agent.Options{Binaries: known, MaxStripes: 1})
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
