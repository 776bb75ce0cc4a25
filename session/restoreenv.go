package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session/environment"
	"rentop/session/release"
)

// This file brings the environment of a snapshot nearer on another instance.

// Installed is what the commands came to that were run.
type Installed struct {
	Steps []InstalledStep
}

// InstalledStep is one command, as a job there.
type InstalledStep struct {
	environment.Step
	Job tmux.Job
}

// Failed counts the commands that did not succeed.
func (i *Installed) Failed() int {
	n := 0
	for _, s := range i.Steps {
		if s.Job.ExitCode == nil || *s.Job.ExitCode != 0 {
			n++
		}
	}
	return n
}

const (
	maxEnvFile  = 8 << 20
	maxEnvFiles = 200
)

// compareEnv says what the instance lacks of a snapshot's environment, and puts there
// the lists that its commands read.
func (s *Session) compareEnv(ctx context.Context, p release.Portable) (environment.Report, error) {
	was, err := loadEnv(p.EnvDir())
	if err != nil {
		return environment.Report{}, err
	}
	is, err := s.capture(ctx)
	if err != nil {
		return environment.Report{}, err
	}
	return s.compareWith(ctx, is, was, p.Home, p.Name())
}

// captured is an environment as it is now, and whose.
type captured struct {
	files environment.Files
	home  string
	root  bool
}

func (s *Session) capture(ctx context.Context) (captured, error) {
	r := reachable{s}
	files, _, err := release.CaptureEnv(ctx, r)
	if err != nil {
		return captured{}, err
	}
	who, err := remote.Output(ctx, r, `printf '%s\0%s' "$HOME" "$(id -u)"`)
	if err != nil {
		return captured{}, err
	}
	home, uid, ok := strings.Cut(string(who), "\x00")
	if !ok || !strings.HasPrefix(home, "/") {
		return captured{}, errors.New("the instance does not say where its login's home is")
	}
	return captured{files, home, uid == "0"}, nil
}

func (s *Session) compareWith(ctx context.Context, is captured, was environment.Files, home, name string) (environment.Report, error) {
	dir := is.home + "/.rentop/environment/" + name
	out := environment.Compare(was, is.files, environment.Options{Home: home, HomeThere: is.home, Dir: dir, Root: is.root})
	for _, step := range out.Steps {
		if step.Input == "" {
			continue
		}
		script := "umask 077; d=" + remote.Quote(dir) + "; f=" + remote.Quote(step.Input) + `; mkdir -p -- "$d" && cat >"$d/.$f" && mv -f -- "$d/.$f" "$d/$f"`
		if err := (reachable{s}).Run(ctx, remote.Cmd{Script: script, Stdin: bytes.NewReader(step.Content)}); err != nil {
			return out, fmt.Errorf("put %s there: %w", step.Input, err)
		}
	}
	return out, nil
}

// loadEnv reads the folder beside a snapshot.
func loadEnv(dir string) (environment.Files, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the snapshot has no environment beside it")
	}
	if err != nil {
		return nil, err
	}
	out := environment.Files{}
	for _, f := range list[:min(len(list), maxEnvFiles)] {
		if !f.Type().IsRegular() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		h, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(h, maxEnvFile))
		h.Close()
		if err != nil {
			return nil, err
		}
		out[f.Name()] = b
	}
	return out, nil
}

// morePath is where conda usually is: a job's shell may not know it.
const morePath = `PATH=$PATH:/opt/conda/bin:$HOME/miniconda3/bin:$HOME/anaconda3/bin:$HOME/miniforge3/bin; export PATH; `

// install runs pip's and conda's commands, each as a job there, one after the other.
// That one fails is told in its job, and the next ones are tried.
func (s *Session) install(ctx context.Context, r environment.Report) (*Installed, error) {
	out := &Installed{}
	for _, step := range r.Steps {
		if !step.Runs {
			continue
		}
		job, err := s.StartJob(ctx, JobSpec{Name: "install-" + step.Tool, Command: "sh -c " + remote.Quote(morePath+step.Command)})
		if err != nil {
			return out, err
		}
		if _, err := s.Follow(ctx, job.ID, 0, true, io.Discard); err != nil {
			return out, fmt.Errorf("it goes on there as the job %s: %w", job.ID, err)
		}
		if job, err = s.findJob(ctx, job.ID); err != nil {
			return out, err
		}
		out.Steps = append(out.Steps, InstalledStep{step, job})
	}
	return out, nil
}
