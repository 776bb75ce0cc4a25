// The line of the environment: what would be needed to build the same one again,
// captured into a folder here. Names of environment variables, never values.

package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/phrase"
)

// envScript prints "NAME\0CONTENT\0" pairs and ends with "end\0\0". A tool that
// is there but fails makes a pair named "failed". Tools get a minute each.
const envScript = `LC_ALL=C.UTF-8; export LC_ALL
PATH=$PATH:/opt/conda/bin:$HOME/miniconda3/bin:$HOME/anaconda3/bin:$HOME/miniforge3/bin:$HOME/.local/bin:/usr/local/cuda/bin
PYTHONDONTWRITEBYTECODE=1; PIP_DISABLE_PIP_VERSION_CHECK=1
export PATH PYTHONDONTWRITEBYTECODE PIP_DISABLE_PIP_VERSION_CHECK
have() { command -v "$1" >/dev/null 2>&1; }
if have timeout; then lim() { timeout 60 "$@"; }; else lim() { "$@"; }; fi
tool() { n=$1; shift; if o=$(lim "$@" 2>/dev/null </dev/null); then printf '%s\0%s\n\0' "$n" "$o"; else printf 'failed\0%s\0' "$n"; fi; }
sys() {
  echo "kernel: $(uname -srm)"
  [ -r /etc/os-release ] && sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/os: \1/p' /etc/os-release
  echo "cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
  have python3 && echo "python: $(python3 -V 2>&1)"
  have nvcc && echo "cuda toolkit: $(nvcc --version 2>/dev/null | sed -n 's/.*release \([^,]*\),.*/\1/p')"
  [ -r /usr/local/cuda/version.json ] && echo "cuda: $(tr -d '\n ' </usr/local/cuda/version.json | sed -n 's/.*"cuda":{[^}]*"version":"\([^"]*\)".*/\1/p')"
  have gcc && echo "gcc: $(gcc -dumpfullversion 2>/dev/null)"
  if have nvidia-smi; then
    lim nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv,noheader 2>/dev/null </dev/null | sed 's/^/gpu: /'
    lim nvidia-smi 2>/dev/null </dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/driver supports cuda: \1/p'
  fi
  return 0
}
printf 'system.txt\0%s\n\0' "$(sys)"
printf 'env-names.txt\0%s\n\0' "$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u)"
if have python3; then
  if python3 -m pip --version >/dev/null 2>&1; then tool pip-freeze.txt python3 -m pip freeze --all; fi
fi
if have conda; then
  tool conda-envs.txt conda env list
  conda env list 2>/dev/null </dev/null | sed -n 's/^[^#].*[[:space:]]\(\/.*\)$/\1/p;s/^\(\/.*\)$/\1/p' | sort -u | head -n 20 | while IFS= read -r p; do
    b=$(printf %s "$p" | tr -c 'A-Za-z0-9._\n-' _)
    tool "conda-list-$b.txt" conda list -p "$p" --explicit --md5
    tool "conda-env-$b.yml" conda env export -p "$p"
  done
fi
find "$HOME" -xdev -maxdepth 4 -name pyvenv.cfg 2>/dev/null | head -n 20 | while IFS= read -r c; do
  p=${c%/pyvenv.cfg}; b=$(printf %s "$p" | tr -c 'A-Za-z0-9._\n-' _)
  [ -x "$p/bin/python" ] && "$p/bin/python" -m pip --version >/dev/null 2>&1 && tool "pip-freeze-$b.txt" "$p/bin/python" -m pip freeze --all
done
v=$(find "$HOME" -xdev -maxdepth 4 -name pyvenv.cfg 2>/dev/null | sed 's:/pyvenv.cfg$::' | head -n 20)
[ -n "$v" ] && printf 'venvs.txt\0%s\n\0' "$v"
have apt-mark && tool apt-manual.txt apt-mark showmanual
have dpkg-query && tool dpkg.txt dpkg-query -W -f '${Package} ${Version}\n'
have apk && tool apk.txt apk info -v
[ -d /var/lib/rpm ] && have rpm && ! have dpkg-query && tool rpm.txt rpm -qa
printf 'end\0\0'
`

// credentials inside a URL: pip freeze and conda export print index and git URLs.
var urlCredentials = regexp.MustCompile(`(://)[^/\s@]+@`)

var envName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// envFresh is how long a captured environment serves the rounds of one run: it
// takes longer to read than all else, and it is a record, not a proof.
const envFresh = 10 * time.Minute

func (m *Machine) checkEnv(ctx context.Context) finding {
	if age := m.d.Clock.Now().Sub(m.envAt); m.env.State == Passed && age >= 0 && age < envFresh && m.runner != nil {
		return m.env
	}
	m.env, m.envAt = m.captureEnv(ctx), m.d.Clock.Now()
	return m.env
}

func (m *Machine) captureEnv(ctx context.Context) finding {
	cure := phrase.Say("release.cure.or.again")
	if m.runner == nil {
		return unknown(CheckEnv, m.offline, cure)
	}
	if m.d.EnvDir == "" {
		return unknown(CheckEnv, phrase.Say("env.nofolder"), cure)
	}
	m.active(CheckEnv, phrase.Say("env.capturing"))
	files, failed, err := readEnv(ctx, m.runner)
	if err != nil {
		return unknown(CheckEnv, why(err), cure)
	}
	f := finding{Check: Check{ID: CheckEnv, State: Passed}, rests: map[string]string{}}
	for name, content := range files {
		if err := writeBeside(filepath.Join(m.d.EnvDir, name), content); err != nil {
			return unknown(CheckEnv, phrase.Say("env.write", err), phrase.Say("env.cure", m.d.EnvDir))
		}
		sum := sha256.Sum256(content)
		f.rests[name] = hex.EncodeToString(sum[:])
	}
	for _, name := range sortedKeys(files) {
		f.Evidence = append(f.Evidence, Evidence{What: name, Size: int64(len(files[name])), Detail: phrase.Plain(filepath.Join(m.d.EnvDir, name))})
	}
	f.Summary = phrase.Count("env.files", len(files), m.d.EnvDir)
	if len(failed) > 0 {
		f.State = Failed
		for _, n := range failed {
			f.rests["failed "+n] = "failed"
			f.Evidence = append(f.Evidence, Evidence{What: remote.Short(n, 120), Size: -1, Detail: phrase.Say("env.tool"), Lost: true})
		}
		f.Summary = phrase.Count("env.failed", len(failed))
		f.Cure = cure
	}
	return f
}

// readEnv runs the script; names that are not plain are refused.
func readEnv(ctx context.Context, r remote.Runner) (files map[string][]byte, failed []string, err error) {
	out, err := remote.Output(ctx, r, envScript)
	if err != nil {
		return nil, nil, fmt.Errorf("capture the environment: %w", err)
	}
	parts := bytes.Split(out, []byte{0})
	files = map[string][]byte{}
	for i := 0; i+1 < len(parts); i += 2 {
		name, content := string(parts[i]), parts[i+1]
		switch {
		case name == "end":
			return files, failed, nil
		case name == "failed":
			failed = append(failed, string(content))
		case !envName.MatchString(name) || strings.HasPrefix(name, "."):
			return nil, nil, fmt.Errorf("capture the environment: a name that is not plain: %s", remote.Short(name, 60))
		default:
			files[name] = urlCredentials.ReplaceAll(content, []byte("${1}***@"))
		}
	}
	return nil, nil, errors.New("capture the environment: the answer ended early")
}

// writeBeside writes a whole file or none: beside, synced, renamed.
func writeBeside(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rentop-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	return commit(f, path, err)
}

// commit syncs, closes and renames a file that was written beside path.
func commit(f *os.File, path string, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		syncDir(filepath.Dir(path))
	}
	return err
}

// syncDir makes a rename durable where the system can (not on Windows).
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the file itself is synced
		_ = d.Close()
	}
}

// stamp is a time for a file name.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
