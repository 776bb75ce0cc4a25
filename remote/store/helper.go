// Work by rentop's helper, where the instance has no program for it.

package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/remote/store/hand"
)

// askHelper has one job done. Where ctx ends first the link is closed: nothing else
// ends the wait.
func askHelper(ctx context.Context, l link.Link, j job) (answer, error) {
	want := hand.Job{URL: j.to.url, Headers: j.to.headers, At: j.at, N: j.n, Take: j.take}
	if j.file != nil {
		want.Path, want.Size = []byte(j.file.Path), j.file.Size
	}
	text, err := json.Marshal(want)
	if err != nil {
		return answer{}, err
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if err := l.Send(hand.Message, text); err != nil {
		return answer{}, helperEnded(ctx, err)
	}
	m, err := l.Recv()
	if err != nil {
		return answer{}, helperEnded(ctx, err)
	}
	defer m.Free()
	var got hand.Answer
	if len(m.Payload) > maxLine || json.Unmarshal(m.Payload, &got) != nil || got.Status < 0 || got.Status > 999 {
		return answer{}, misread(string(m.Payload[:min(len(m.Payload), 100)]))
	}
	a := answer{status: got.Status, body: []byte(got.Body), broke: remote.Short(got.Broke, 200), changed: got.Changed}
	switch {
	case a.changed:
	case a.broke != "" || a.status == 0:
		a.curl, a.status = 56, 0
	case j.take && a.status != 200, j.file == nil && a.status != 200:
		a.curl, a.broke = 22, fmt.Sprintf("it answered %d", a.status)
	case j.file == nil:
		if a.sum, err = hex.DecodeString(got.SHA256); err != nil {
			return answer{}, misread(got.SHA256)
		}
	}
	return a, nil
}

func helperEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("rentop's helper: %w", err)
}
