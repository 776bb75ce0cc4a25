// Portable snapshots as files of this computer: the archive, FILE.sha256 (its
// manifest, for sha256sum -c), FILE.json (what was kept, of whom and when) and a
// folder with the environment. A snapshot is believed only after it was read again.

package release

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/tmux"
)

// Portable is one portable snapshot, as FILE.json has it.
type Portable struct {
	Version  int       `json:"version"`
	Instance string    `json:"instance"` // its name then
	UID      string    `json:"uid,omitempty"`
	At       time.Time `json:"at"`
	Home     string    `json:"home"`            // of the login there; "" where not known
	Paths    []string  `json:"paths,omitempty"` // that were named; none: all that was unsaved
	SHA256   string    `json:"sha256"`          // of the archive
	Manifest string    `json:"manifest"`        // SHA-256 of FILE.sha256
	Files    int       `json:"files"`
	Size     int64     `json:"size"`  // of the archive, in bytes
	Bytes    int64     `json:"bytes"` // of the files in it
	// NoEnv is why the environment could not be captured; "" where it was.
	NoEnv string `json:"no_env,omitempty"`

	File string `json:"-"` // the archive
}

const portableVersion = 1

// suffixes of archives, by what compressed them.
var suffixes = []string{".tar.zst", ".tar.gz"}

func suffixOf(file string) string {
	for _, s := range suffixes {
		if strings.HasSuffix(file, s) {
			return s
		}
	}
	return ""
}

// Name is what a person calls the snapshot: the archive's name without its suffix.
func (p Portable) Name() string {
	return strings.TrimSuffix(filepath.Base(p.File), suffixOf(p.File))
}

// EnvDir is the folder with the environment as it was captured.
func (p Portable) EnvDir() string { return strings.TrimSuffix(p.File, suffixOf(p.File)) + ".env" }

// writeAbout writes FILE.json, before the archive has its name.
func (m *Machine) writeAbout(s takenSnapshot, bytes int64, asked []string) error {
	b, err := json.MarshalIndent(Portable{
		Version: portableVersion, Instance: m.d.Instance, UID: m.d.UID, At: m.d.Clock.Now().UTC().Truncate(time.Second), Home: m.home, Paths: asked,
		SHA256: s.SHA256, Manifest: s.Manifest, Files: s.Files, Size: s.Size, Bytes: bytes, NoEnv: m.noEnv(),
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeBeside(s.File+".json", append(b, '\n'))
}

func (m *Machine) noEnv() string {
	if e := m.round[CheckEnv]; e.State != Passed {
		return e.Summary.String()
	}
	return ""
}

// TakePortable makes a portable snapshot outside of a release: what is at the paths,
// or all that is unsaved and what is at the paths of beside, where that is there.
// Changed hears of its progress as the line CheckSnapshot.
func TakePortable(ctx context.Context, d Deps, paths, beside []string) (Portable, error) {
	d = d.filled()
	d.Journal = &MemoryJournal{}
	if err := d.check(CheckOnly); err != nil {
		return Portable{}, err
	}
	m := newMachine(d, CheckOnly, newRunID())
	m.connect(ctx)
	if m.runner == nil {
		return Portable{}, fmt.Errorf("take a portable snapshot of %s: %s", d.Instance, m.offline)
	}
	m.set(m.checkEnv(ctx)) // a failure is told, and keeps no file from being kept
	out, err := remote.Output(ctx, m.runner, `printf '%s' "$HOME"`)
	if err != nil {
		return Portable{}, fmt.Errorf("take a portable snapshot of %s: %w", d.Instance, err)
	}
	m.home, m.stages = string(out), true
	list := m.chosen(paths)
	if len(paths) == 0 {
		if list, err = m.all(ctx, beside); err != nil {
			return Portable{}, fmt.Errorf("take a portable snapshot of %s: %w", d.Instance, err)
		}
	}
	s, err := m.archive(ctx, list, paths)
	if err != nil {
		return Portable{}, err
	}
	return readAbout(s.File)
}

// all are the unsaved files and those of beside that are there.
func (m *Machine) all(ctx context.Context, beside []string) ([]string, error) {
	f, _, err := m.checkFiles(ctx)
	if err != nil {
		return nil, err
	}
	m.set(f)
	if m.scanned.more > 0 {
		return nil, fmt.Errorf("more than %d files are unsaved: name the folders to keep with --path", maxFiles)
	}
	list, err := m.settledLogs(ctx, m.unsavedPaths())
	if err != nil {
		return nil, err
	}
	names := m.chosen(beside)
	err = records(ctx, m.runner, `xargs -0 sh -c 'cd / && for f; do [ ! -e "./$f" ] || printf "%s\0" "$f"; done' sh; printf 'end\0'`, stdin(names), func(rec []byte) error {
		if slices.Contains(names, string(rec)) {
			list = append(list, string(rec))
		}
		return nil
	})
	return uncovered(list), err
}

// settledLogs leaves out the logs of jobs that run: they grow while they are read, and
// are the running job's still.
func (m *Machine) settledLogs(ctx context.Context, list []string) ([]string, error) {
	if m.d.Jobs == nil {
		return list, nil
	}
	jobs, err := m.d.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	grows := map[string]bool{}
	for _, j := range jobs {
		if j.State == tmux.Running || j.State == tmux.Starting {
			grows[strings.TrimPrefix(m.home+"/.rentop/jobs/"+j.ID+"/log", "/")] = true
		}
	}
	return slices.DeleteFunc(list, func(p string) bool { return grows[p] }), nil
}

// uncovered leaves out what lies below another path of the list.
func uncovered(list []string) []string {
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(a+"/", b+"/") })
	var out []string
	for _, p := range list {
		if n := len(out); n > 0 && strings.HasPrefix(p+"/", out[n-1]+"/") {
			continue
		}
		out = append(out, p)
	}
	return out
}

// Portables lists the snapshots in a folder, the newest first. What cannot be read is
// listed with its file's name, size and time alone.
func Portables(dir string) ([]Portable, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the snapshots in %s: %w", dir, err)
	}
	var out []Portable
	for _, n := range names {
		if suffixOf(n.Name()) == "" || strings.HasPrefix(n.Name(), ".") || !n.Type().IsRegular() {
			continue
		}
		p, err := readAbout(filepath.Join(dir, n.Name()))
		if err != nil {
			p = Portable{File: p.File}
			if st, err := n.Info(); err == nil {
				p.At, p.Size = st.ModTime().UTC(), st.Size()
			}
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Portable) int { return b.At.Compare(a.At) })
	return out, nil
}

// readAbout reads FILE.json of an archive.
func readAbout(file string) (Portable, error) {
	p := Portable{File: file}
	b, err := os.ReadFile(file + ".json")
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return Portable{File: file}, fmt.Errorf("read %s.json: %w", file, err)
	}
	if p.Version != portableVersion {
		return Portable{File: file}, fmt.Errorf("read %s.json: it is of version %d, rentop knows %d", file, p.Version, portableVersion)
	}
	return p, nil
}

// OpenPortable reads an archive and its manifest from disk; both are as they were
// made, or there is an error. One without FILE.json, which an older rentop took, is
// held against its manifest alone. It returns the manifest by absolute path.
func OpenPortable(ctx context.Context, file string) (Portable, map[string]string, error) {
	p, err := readAbout(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(file); err != nil {
			return p, nil, fmt.Errorf("open the snapshot: %w", err)
		}
		p, err = p.guessed(ctx)
	}
	if err != nil {
		return p, nil, err
	}
	mf, err := provenArchive(ctx, takenSnapshot{File: file, SHA256: p.SHA256, Manifest: p.Manifest})
	return p, mf, err
}

// guessed fills in what can be known without FILE.json.
func (p Portable) guessed(ctx context.Context) (Portable, error) {
	text, err := os.ReadFile(p.File + ".sha256")
	if err != nil {
		return p, fmt.Errorf("open the snapshot: its manifest: %w", err)
	}
	ms := sha256.Sum256(text)
	p.Manifest = hex.EncodeToString(ms[:])
	p.SHA256, err = localHash(ctx, p.File)
	return p, err
}

// Read goes through the archive in its order. each may read a file's content; what it
// holds is compared with the manifest after it, and a difference ends the reading.
func (p Portable) Read(ctx context.Context, manifest map[string]string, each func(*tar.Header, io.Reader) error) error {
	f, err := os.Open(p.File)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := unpack(ctx, f, suffixOf(p.File), each)
	if err != nil {
		return fmt.Errorf("read %s: %w", p.File, err)
	}
	for name, sum := range manifest {
		if c.manifest[name] != sum {
			return fmt.Errorf("read %s: %s in it is not what its manifest says", p.File, remote.Short(name, 120))
		}
	}
	for name := range c.manifest {
		if manifest != nil && manifest[name] == "" {
			return fmt.Errorf("read %s: its manifest does not name %s", p.File, remote.Short(name, 120))
		}
	}
	return nil
}

// TakeProvider has the provider make its own snapshot. With wait it returns when the
// provider says that it is whole, else when it was accepted. A snapshot whose id is set
// may exist also where there is an error.
func TakeProvider(ctx context.Context, d Deps, wait bool) (provider.Snapshot, error) {
	d = d.filled()
	if d.Provider == nil || !d.Provider.Can().Snapshot {
		return provider.Snapshot{}, fmt.Errorf("take a snapshot of %s at its provider: %w; --portable keeps files here", d.Instance, provider.ErrUnsupported)
	}
	m := newMachine(d, CheckOnly, newRunID())
	s, err := d.Provider.Snapshot(ctx, d.ProviderID, m.snapName())
	if err == nil && wait {
		err = m.awaitSnapshot(ctx, s.ID)
	}
	if err != nil {
		err = fmt.Errorf("take a snapshot of %s at its provider: %w", d.Instance, err)
	}
	return s, err
}

// CaptureEnv reads the environment of an instance, by the names of the files that a
// snapshot keeps it in, and which tools there failed.
func CaptureEnv(ctx context.Context, r remote.Runner) (files map[string][]byte, failed []string, err error) {
	return readEnv(ctx, r)
}
