package session

// The person's own line for alarms: run on this computer, one after the other.

import (
	"context"
	"errors"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

// lineTime bounds one run of the line; lineQueue how many wait: a machine that raises
// more than that at once is told of by the first.
const (
	lineTime  = 30 * time.Second
	lineQueue = 32
)

// raised is an alarm that was just said.
type raised struct {
	instance string
	alarmData
}

// raise hands a new alarm to the line; it never waits.
func (f *Fleet) raise(instance string, d alarmData) {
	w := f.Config().Alarms
	if w.Command == "" || int(d.Level) < w.Level() {
		return
	}
	select {
	case f.raised <- raised{instance, d}:
	default:
	}
}

// runLines runs the line for each alarm until ctx ends. What an instance said is in
// its environment only, cleaned: never a word of the line.
func (f *Fleet) runLines() {
	told := false
	for {
		var x raised
		select {
		case x = <-f.raised:
		case <-f.ctx.Done():
			return
		}
		line := f.Config().Alarms.Command
		if line == "" { // edited meanwhile
			continue
		}
		ctx, cancel := context.WithTimeoutCause(f.ctx, lineTime, errors.New("it took longer than 30 s"))
		err := provider.Line(ctx, line, []string{"RENTOP_NAME=" + x.instance, "RENTOP_ALARM=" + remote.Clean(x.ID), "RENTOP_LEVEL=" + x.Level.String(),
			"RENTOP_TEXT=" + phrase.Text(x.Text).String(), "RENTOP_SINCE=" + x.Since.UTC().Format(time.RFC3339)})
		cancel()
		if err != nil && f.ctx.Err() == nil && !told { // once: it would be said with each alarm
			told = true
			f.notice(x.instance, Warn, phrase.Say("notice.alarm.line", err))
		}
	}
}
