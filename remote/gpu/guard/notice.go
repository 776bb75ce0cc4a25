package guard

// The provider's notice that it takes the machine back: asked for in the background,
// since who is asked may be silent for seconds.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rentop/remote/clean"
)

const (
	noticeEvery = 5 * time.Second
	noticeFor   = 4 * time.Second // one question may take
)

// Notice is what was last heard.
type Notice struct {
	Asked bool
	Err   string // it could not be asked
	Given bool
	At    time.Time // when it will be taken back, as announced; zero where that is not told
}

// noticeForms are how a time stands alone on a page: Alibaba's is in UTC, Tencent's in
// China's time in every region (https://www.tencentcloud.com/document/product/213/32487).
var noticeForms = []struct {
	layout string
	zone   *time.Location
}{{time.RFC3339, time.UTC}, {time.DateTime, time.FixedZone("UTC+8", 8*60*60)}}

// noticeTime reads a page that is a time, or AWS's object of an action and its time. Any
// other page may be there, and a save that begins for nothing is told as a reclaim.
func noticeTime(out string) (time.Time, bool) {
	text := strings.TrimSpace(out)
	if strings.HasPrefix(text, "{") {
		var aws struct{ Action, Time string }
		if json.Unmarshal([]byte(text), &aws) != nil || !slices.Contains([]string{"terminate", "stop", "hibernate"}, aws.Action) {
			return time.Time{}, false
		}
		text = aws.Time
	}
	for _, form := range noticeForms {
		if at, err := time.ParseInLocation(form.layout, text, form.zone); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// noticeOf reads an answer.
func noticeOf(out string, err error) Notice {
	n := Notice{Asked: true}
	switch {
	case err != nil && out != "":
		n.Err = clean.Short(out, 200)
	case err != nil:
		n.Err = clean.Short(err.Error(), 200)
	case out == "":
	default:
		if n.At, n.Given = noticeTime(out); !n.Given {
			n.Err = "the answer is not understood: " + clean.Short(out, 120)
		}
	}
	return n
}

// asker asks in the background, one question at a time. It is the daemon's.
type asker struct {
	answers chan noticed
	asking  bool
	last    time.Duration
	heard   Notice
	of      string // the spec's id that heard belongs to
}

// noticed is an answer, with the spec that it was asked for.
type noticed struct {
	id string
	Notice
}

// ask begins a question where one is due. run is ended with ctx.
func (a *asker) ask(ctx context.Context, spec *Spec, mono time.Duration, run func(context.Context, script) (string, error)) {
	if a.of != spec.ID {
		a.of, a.heard, a.last = spec.ID, Notice{}, 0
	}
	text := spec.notice()
	if text == "" || a.asking || a.last != 0 && mono-a.last < noticeEvery {
		return
	}
	a.asking, a.last = true, mono
	id := spec.ID
	go func() { // ends with its script, whose end is the limit or ctx
		out, err := run(ctx, script{name: "notice", text: text, limit: noticeFor})
		select {
		case a.answers <- noticed{id, noticeOf(out, err)}:
		case <-ctx.Done():
		}
	}()
}

// took keeps an answer. What was announced stays so: silence after it takes nothing back.
func (a *asker) took(n noticed) {
	a.asking = false
	if n.id == a.of && !a.heard.Given {
		a.heard = n.Notice
	}
}

func (s *Spec) notice() string {
	for _, r := range s.Rules {
		if r.Kind == Reclaim {
			return r.Script
		}
	}
	return ""
}
