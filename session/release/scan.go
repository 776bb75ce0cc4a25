// The one look at the instance's file systems: files that changed since it was
// first seen, git trees, and the places that packages and caches own.
//
// What counts as a person's work: every regular file on a writable local file
// system whose content or inode changed (mtime or ctime) since Deps.Since. Left
// out are what the system, package managers, environments and caches write
// (the tables below), credentials under .ssh, and temporary folders. rentop's own
// ~/.rentop is left out but for job logs: a log that was not pulled is worth
// saving. Network file systems are named, not searched: they outlive the
// instance. Symlinks are not followed and do not count.

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
)

// Places that are never searched, as find's -path patterns.
var systemPaths = []string{
	"/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/usr", "/snap", "/lost+found", "/opt/nvidia", "/opt/intel", "/opt/rocm*", "/opt/amdgpu",
	"/var/log", "/var/cache", "/var/spool", "/var/run", "/var/lock", "/var/backups", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd",
	"/var/lib/docker", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/snapd", "/var/lib/dbus", "/var/lib/ucf", "/var/lib/pam", "/var/lib/private",
	"/etc/alternatives", "/etc/ssl/certs", "/etc/rc?.d", "/etc/ssh/ssh_host_*", "/etc/ld.so.cache", "/etc/hosts", "/etc/hostname",
	"/etc/resolv.conf", "/etc/mtab", "/etc/machine-id", "/etc/passwd*", "/etc/shadow*", "/etc/group*", "/etc/gshadow*", "/etc/subuid*",
	"/etc/subgid*", "/etc/.pwd.lock", "/etc/localtime", "/etc/timezone", "/etc/adjtime", "/etc/environment", "/etc/apt",
	"/.dockerenv", "/.rentop-*",
}

// Names that package managers and tools own wherever they stand.
var toolNames = []string{
	"node_modules", "site-packages", "dist-packages", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache",
	".npm", ".conda", ".mamba", ".nv", ".triton", ".keras", ".vscode-server", ".cursor-server", ".rustup", ".ssh", ".gnupg",
	".bash_history", ".zsh_history", ".python_history", ".lesshst", ".viminfo", ".wget-hsts", ".sudo_as_admin_successful", ".Trash-*", ".rentop-trash",
}

// Deeper places, as -path patterns. Their content comes back by itself.
var toolPaths = []string{
	"*/.cargo/registry", "*/go/pkg/mod", "*/.local/share/jupyter/runtime", "*/.local/share/Trash", "*/.config/pip",
	"*/.jupyter/lab/workspaces", "*/.cache/huggingface/token", "*/.cache/huggingface/stored_tokens",
}

// Caches of downloads that are listed with their size, because a person may
// think of them as theirs.
var downloadPaths = []string{
	"*/huggingface/hub", "*/huggingface/datasets", "*/huggingface/xet", "*/huggingface/modules", "*/hub/models--*", "*/hub/datasets--*",
	"*/.cache/modelscope", "*/.cache/torch", "*/.cache/pip",
}

// What an instance can make us hold: changed files one by one, and the bytes of
// all names. A scan that says more than maxScan ends as an error: it has no end.
const (
	maxFiles = 200_000
	maxNames = 64 << 20
	maxScan  = 1 << 30
	maxSize  = 1 << 43 // of one file: maxFiles of them can be added up
)

type scan struct {
	home      string
	files     []fileStat
	more      int // files beyond maxFiles
	moreSize  int64
	gits      []string        // folders that hold a .git
	packaged  map[string]bool // configuration files as a package brought them
	prefixes  []string        // conda environments and virtualenvs
	venvs     map[string]bool // of these, the virtualenvs
	downloads []string
	network   []string // "mount point (type)"
	unread    int      // folders that this login may not read
	names     int      // bytes of names held
}

// holds says whether there is room for one more name.
func (s *scan) holds(name string) bool {
	if s.names+len(name) > maxNames {
		return false
	}
	s.names += len(name)
	return true
}

// scan looks once. A scan that did not come whole is an error.
func (m *Machine) scan(ctx context.Context) (*scan, error) {
	if m.runner == nil {
		return nil, errors.New(m.offline.String())
	}
	s := &scan{packaged: map[string]bool{}, venvs: map[string]bool{}}
	whole := false
	seen := map[string]bool{}
	read := int64(0)
	err := records(ctx, m.runner, scanScript(m.d.Since, m.d.Roots), nil, func(rec []byte) error {
		if whole || len(rec) < 2 || rec[1] != ' ' {
			return fmt.Errorf("a record that is not understood: %s", remote.Short(string(rec), 100))
		}
		if read += int64(len(rec)) + 1; read > maxScan {
			return remote.ErrTooLong
		}
		rest := rec[2:]
		switch rec[0] {
		case 'h':
			s.home = string(rest)
		case 'f':
			f, err := parseStat(rest)
			if err != nil {
				return err
			}
			if !path.IsAbs(f.path) || path.Clean(f.path) != f.path {
				return fmt.Errorf("a path that is not absolute: %s", remote.Short(f.path, 100))
			}
			switch {
			case seen[f.path]: // one file system mounted twice
			case len(s.files) >= maxFiles || !s.holds(f.path):
				s.more++
				s.moreSize = min(s.moreSize+f.size, 1<<62)
			default:
				seen[f.path] = true
				s.files = append(s.files, f)
			}
		case 'g':
			s.gits = s.appendNew(s.gits, path.Dir(string(rest)))
		case 'c':
			if dir := path.Dir(string(rest)); path.Base(string(rest)) == "pyvenv.cfg" && len(s.venvs) < 10_000 {
				s.venvs[dir] = true
			}
			s.prefixes = s.appendNew(s.prefixes, path.Dir(string(rest)))
		case 'p':
			if len(s.packaged) < maxFiles && s.holds(string(rest)) {
				s.packaged[string(rest)] = true
			}
		case 'r':
			s.downloads = s.appendNew(s.downloads, string(rest))
		case 'n':
			s.network = s.appendNew(s.network, string(rest))
		case 'e':
			n, err := strconv.Atoi(strings.TrimSpace(string(rest)))
			if err != nil {
				return fmt.Errorf("a count that is not understood: %w", err)
			}
			s.unread, whole = n, true
		default:
			return fmt.Errorf("a record that is not understood: %s", remote.Short(string(rec), 100))
		}
		return nil
	})
	if err == nil && !whole {
		err = errors.New("the list of files ended early")
	}
	if err != nil {
		return nil, fmt.Errorf("look for files on the instance: %w", err)
	}
	return s, nil
}

func (s *scan) appendNew(list []string, name string) []string {
	if len(list) >= 10_000 || len(list) > 0 && list[len(list)-1] == name || !s.holds(name) {
		return list
	}
	return append(list, name)
}

// parseStat reads "SIZE MTIME CTIME PATH".
func parseStat(rec []byte) (fileStat, error) {
	parts := bytes.SplitN(rec, []byte(" "), 4)
	if len(parts) != 4 || len(parts[3]) == 0 {
		return fileStat{}, fmt.Errorf("a file record that is not understood: %s", remote.Short(string(rec), 100))
	}
	size, err := strconv.ParseInt(string(parts[0]), 10, 64)
	if err != nil || size < 0 {
		return fileStat{}, fmt.Errorf("a file size that is not understood: %s", remote.Short(string(rec), 100))
	}
	return fileStat{path: string(parts[3]), size: min(size, maxSize), mtime: string(parts[1]), ctime: string(parts[2])}, nil
}

// ownedByPackages says whether a file is a package's configuration as it came,
// or lies where a conda environment or a virtualenv keeps what it installed.
// Other folders inside a prefix are a person's.
func (s *scan) ownedByPackages(p string) bool {
	if s.packaged[p] {
		return true
	}
	for _, prefix := range s.prefixes {
		rest, ok := strings.CutPrefix(p, strings.TrimSuffix(prefix, "/")+"/")
		if !ok {
			continue
		}
		if s.venvs[prefix] {
			if ownedByVenv(rest) {
				return true
			}
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		switch first {
		case "bin", "lib", "lib64", "include", "share", "etc", "ssl", "pkgs", "conda-meta", "man", "sbin", "libexec", "condabin", "shell",
			"compiler_compat", "var", "x86_64-conda-linux-gnu", "aarch64-conda-linux-gnu", "fonts", "qml", "plugins", "nvvm", "targets":
			return true
		case "pyvenv.cfg", ".gitignore", ".condarc", "LICENSE.txt":
			if !deeper {
				return true
			}
		}
	}
	return false
}

// ownedByVenv says whether a path below a virtualenv is one that venv and pip make.
// `python -m venv .` puts one around a person's project, whose lib, share or etc are
// no package's.
func ownedByVenv(p string) bool {
	first, rest, deeper := strings.Cut(p, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch first {
	case "bin":
		return true
	case "lib", "lib64", "include":
		return strings.HasPrefix(second, "python") || first == "include" && second == "site"
	case "share", "etc":
		return slices.Contains([]string{"jupyter", "man", "doc", "applications", "icons", "ipython"}, second)
	case "pyvenv.cfg", ".gitignore", ".lock":
		return !deeper
	}
	return false
}

// statTools decides once how to list: GNU find prints what is wanted; elsewhere
// (busybox) stat is run for each file.
const statTools = `LC_ALL=C; export LC_ALL
if find / -maxdepth 0 -printf '' 2>/dev/null; then gnu=1; else gnu=; fi
`

func scanScript(since time.Time, roots []string) string {
	var b strings.Builder
	b.WriteString(statTools)
	b.WriteString(`d=$(mktemp -d "${TMPDIR:-/tmp}/rentop-scan.XXXXXX" 2>/dev/null || mktemp -d /dev/shm/rentop-scan.XXXXXX) || exit 3
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
printf 'h %s\0' "$HOME"
`)
	if len(roots) > 0 {
		b.WriteString("set --")
		for _, r := range roots {
			b.WriteString(" " + homeWord(r))
		}
		b.WriteString("\n")
	} else {
		b.WriteString(mountScript)
		b.WriteString(packagedScript)
	}
	// mtime and ctime: cp -p, tar and rsync set back the first, never the second.
	newerGNU, newerOther := "", ""
	if !since.IsZero() {
		at := strconv.FormatInt(since.Unix()-1, 10)
		newerGNU = ` \( -newermt @` + at + ` -o -newerct @` + at + ` \)`
		// Without GNU find everything is listed and compared in the loop.
		newerOther = at
	}
	prune := `\(`
	sep := " "
	for _, p := range systemPaths {
		prune += sep + "-path " + remote.Quote(p)
		sep = " -o "
	}
	for _, n := range toolNames {
		prune += sep + "-name " + remote.Quote(n)
	}
	for _, p := range toolPaths {
		prune += sep + "-path " + remote.Quote(p)
	}
	downloads := `\(`
	sep = " "
	for _, p := range downloadPaths {
		downloads += sep + "-path " + remote.Quote(p)
		sep = " -o "
	}
	downloads += ` \) -type d`
	// .rentop keeps jobs/ID/log; .cache keeps huggingface, whose other folders
	// may hold recordings that were made here.
	prune += ` -o -path '*/.rentop/*' -type f ! -name log -o -path '*/.cache/*' ! -path '*/.cache/huggingface' ! -path '*/.cache/huggingface/*' \)`
	expr := func(git, conda, download, file string) string {
		return downloads + " " + download + " -prune -o " + prune + " -prune" +
			" -o -name .git " + git + " -prune -o -type d -name conda-meta " + conda + " -prune -o -type f -name pyvenv.cfg " + conda +
			" -o -type f " + file
	}
	fmt.Fprintf(&b, "if [ -n \"$gnu\" ]; then find \"$@\" -xdev %s 2>\"$d/err\"\n",
		expr(`-printf 'g %p\0'`, `-printf 'c %p\0'`, `-printf 'r %p\0'`, newerGNU+` -printf 'f %s %T@ %C@ %p\0'`))
	fmt.Fprintf(&b, "else since=%s; export since; find \"$@\" -xdev %s 2>\"$d/err\" | xargs -0 sh -c '%s' sh; fi\n",
		remote.Quote(newerOther), expr("-print0", "-print0", "-print0", "-print0"), classifyScript)
	b.WriteString(`if grep -v -e 'ermission denied' -e 'o such file' "$d/err" >"$d/bad"; then head -n 3 "$d/bad" >&2; exit 4; fi
printf 'e %s\0' "$(grep -c 'ermission denied' "$d/err")"
`)
	return b.String()
}

// classifyScript stands inside single quotes.
const classifyScript = `
for f; do
  case $f in
  */.git) printf "g %s\0" "$f"; continue;;
  */conda-meta|*/pyvenv.cfg) printf "c %s\0" "$f"; continue;;
  esac
  if [ -d "$f" ]; then printf "r %s\0" "$f"; continue; fi
  s=$(stat -c "%s %Y %Z" -- "$f" 2>/dev/null) || continue
  if [ -n "$since" ]; then
    t=${s#* }
    [ "${t% *}" -lt "$since" ] && [ "${t#* }" -lt "$since" ] && continue
  fi
  printf "f %s %s\0" "$s" "$f"
done
exit 0`

// packagedScript names the files of /etc that equal what dpkg brought: an
// apt-get install is no work of a person's, an edited sshd_config is.
const packagedScript = `if command -v dpkg-query >/dev/null 2>&1 && command -v md5sum >/dev/null 2>&1; then
dpkg-query -W -f '${Conffiles}\n' 2>/dev/null | sed -n 's/^ \(\/etc\/[^ ]*\) \([0-9a-f]\{32\}\)$/\2  \1/p' |
md5sum -c 2>/dev/null | sed -n 's/: OK$//p' | while IFS= read -r f; do printf 'p %s\0' "$f"; done
fi
`

// mountScript makes "$@" the writable local file systems: the root and every
// other mount that is not the system's own.
const mountScript = `set -- /
while read -r dev mp type opts more; do
  mp=$(printf '%b' "$mp")
  case $mp in /|/proc|/proc/*|/sys|/sys/*|/dev|/dev/*|/run|/run/*|/tmp|/boot|/boot/*|/snap/*|/etc/*|/usr/*|/var/lib/docker/*|/var/lib/kubelet/*) continue;; esac
  case ,$opts, in *,ro,*) continue;; esac
  case $type in
  nfs|nfs4|cifs|smb3|ceph|lustre|glusterfs|beegfs|fuse.*|fuse|9p|virtiofs) printf 'n %s (%s)\0' "$mp" "$type"; continue;;
  proc|sysfs|devpts|devtmpfs|cgroup*|mqueue|securityfs|debugfs|tracefs|pstore|bpf|autofs|hugetlbfs|fusectl|configfs|nsfs|rpc_pipefs|binfmt_misc|efivarfs|squashfs|iso9660) continue;;
  esac
  [ -d "$mp" ] && set -- "$@" "$mp"
done </proc/mounts
`

// homeWord is a quoted path with a leading ~ of the login.
func homeWord(p string) string {
	if p == "~" {
		return `"$HOME"`
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return `"$HOME"/` + remote.Quote(rest)
	}
	return remote.Quote(p)
}
