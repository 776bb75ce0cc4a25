package agent

// Installing: once for each helper and instance.

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rentop/remote"
)

// absence is what an instance without the helper says of itself.
type absence struct {
	system, machine string
	tools           []string
}

const (
	maxAbsence = 8 << 10 // bytes
	folders    = 6       // that candidates names
)

func parseAbsence(text string) absence {
	var a absence
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "system":
			a.system = remote.Short(value, 40)
		case "machine":
			a.machine = remote.Short(value, 40)
		case "tool":
			a.tools = append(a.tools, value)
		}
	}
	return a
}

// pick says which helper an instance needs.
func pick(known map[string]*Binary, a absence) (*Binary, error) {
	arch := goarch(a.machine)
	switch {
	case a.system != "Linux":
		return nil, &MissingError{Why: fmt.Sprintf("it is for Linux, the instance runs %q", a.system)}
	case arch == "":
		return nil, &MissingError{Why: fmt.Sprintf("it is for x86_64 and aarch64, the instance is %q", a.machine)}
	case known[arch] == nil:
		return nil, &MissingError{Why: fmt.Sprintf("this build of rentop carries none for %s; a release build does", a.machine)}
	}
	return known[arch], nil
}

// install puts b into the first folder that takes it. Where a folder fails late, as
// a full disk does, the next is tried.
func install(ctx context.Context, h Host, b *Binary, a absence) error {
	pack := packNone
	switch {
	case slices.Contains(a.tools, "zstd"):
		pack = packZstd
	case slices.Contains(a.tools, "gzip"):
		pack = packGzip
	}
	way := func(ctx context.Context, skip int) (report, error) { return overExec(ctx, h, b, pack, skip) }
	if !slices.Contains(a.tools, "cat") && pack == packNone {
		way = func(ctx context.Context, skip int) (report, error) { return overSFTP(ctx, h, b, skip) }
	}
	var tried []Attempt
	for skip := 0; skip < folders; {
		r, err := way(ctx, skip)
		tried = append(tried, r.tried...)
		switch {
		case err != nil:
			return &MissingError{Why: "it could not be sent: " + remote.Short(err.Error(), 300), Tried: tried, Err: err}
		case r.done:
			return nil
		case r.nowhere || r.passed == 0:
			skip = folders
		default:
			skip += r.passed
		}
	}
	return &MissingError{Why: "no folder will hold and run it", Tried: tried}
}

// report is what the scripts say, line by line.
type report struct {
	tried   []Attempt
	at      string // the folder that was chosen
	passed  int    // folders that are done with
	done    bool
	nowhere bool
}

// parseReport reads it; err is for an answer that is none.
func parseReport(text string) (r report, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "no":
			dir, why, _ := strings.Cut(value, "\t")
			if dir != r.at || dir == "" {
				r.passed++
			}
			r.tried = append(r.tried, Attempt{remote.Short(dir, 100), remote.Short(strings.TrimRight(why, ": "), 200)})
		case "skip":
			r.passed++
		case "at":
			r.at = value
			r.passed++
		case "done":
			r.done = true
		case "nowhere":
			r.nowhere = true
		default: // a second line of a reason
			if n := len(r.tried); n > 0 {
				r.tried[n-1].Why = remote.Short(r.tried[n-1].Why+" "+line, 200)
			}
		}
		if r.passed > folders {
			return r, errors.New("the instance reports on more folders than it was asked for")
		}
	}
	if !r.done && !r.nowhere && r.passed == 0 {
		return r, fmt.Errorf("the instance answered %q", remote.Short(text, 100))
	}
	return r, nil
}

// overExec sends the helper through a script's stdin.
func overExec(ctx context.Context, h Host, b *Binary, p packing, skip int) (report, error) {
	data, err := b.packed(p)
	if err != nil {
		return report{}, err
	}
	script := placeScript(b, skip, newToken()) + receiveScript(p) + finishScript(b)
	return runReport(ctx, h, remote.Cmd{Script: script, Stdin: bytes.NewReader(data)})
}

// overSFTP sends it as a file, between two scripts: where no program would take it.
func overSFTP(ctx context.Context, h Host, b *Binary, skip int) (report, error) {
	data, err := b.packed(packNone)
	if err != nil {
		return report{}, err
	}
	token := newToken()
	place := placeScript(b, skip, token)
	r, err := runReport(ctx, h, remote.Cmd{Script: place})
	if err != nil || r.at == "" {
		return r, err
	}
	name := r.at + "/" + halfName(b, token)
	fail := func(err error) (report, error) {
		r.tried = append(r.tried, Attempt{remote.Short(r.at, 100), "could not take it: " + remote.Short(err.Error(), 200)})
		return r, nil
	}
	f, err := h.SFTP(ctx)
	if err != nil {
		return r, err
	}
	defer f.Close()
	w, err := f.Create(name)
	if err != nil {
		return fail(err)
	}
	_, err = w.ReadFrom(bytes.NewReader(data))
	if err = errors.Join(err, w.Close()); err != nil {
		f.Remove(name)
		return fail(err)
	}
	head := fmt.Sprintf("d=%s h=%s t=%s\n", remote.Quote(r.at), remote.Quote(fileName(b)), remote.Quote(name))
	end, err := runReport(ctx, h, remote.Cmd{Script: head + finishScript(b)})
	end.tried, end.passed = append(r.tried, end.tried...), r.passed
	return end, err
}

func runReport(ctx context.Context, h Host, c remote.Cmd) (report, error) {
	var out bounded
	c.Stdout = &out
	if err := h.Run(ctx, c); err != nil {
		return report{}, err
	}
	return parseReport(out.b.String())
}

// bounded keeps a short answer; a long one is an error, which ends the script.
type bounded struct{ b bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.b.Len()+len(p) > 64<<10 {
		return 0, remote.ErrTooLong
	}
	return b.b.Write(p)
}

// newToken is a part of a file's name that no other install uses.
func newToken() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
