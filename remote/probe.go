// What is there: one script, one round trip.

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Every line is "key value"; what cannot be found out has no line. uptime's first
// number and the clock are read side by side.
const probeScript = `export LC_ALL=C
p() { printf '%s %s\n' "$1" "$2"; }
p rentop-probe 1
p now "$(date +%s)"
p shell "$SHELL"
p user "$(id -un 2>/dev/null)"
p uid "$(id -u)"
p home "$HOME"
p arch "$(uname -m)"
p kernel "$(uname -r)"
for f in /etc/os-release /usr/lib/os-release; do
	[ -r $f ] && { p os "$(. $f 2>/dev/null; printf %s "$PRETTY_NAME" | tr '\n' ' ')"; break; }
done
l=$(getconf GNU_LIBC_VERSION 2>/dev/null) && p libc "$l" || { ls /lib/ld-musl-* >/dev/null 2>&1 && p libc musl; }
c=
[ -f /.dockerenv ] && c=docker
[ -f /run/.containerenv ] && c=podman
[ -n "$c" ] || c=$(tr '\0' '\n' </proc/1/environ 2>/dev/null | sed -n 's/^container=//p' | head -n 1)
[ -n "$c" ] || c=$(sed -n 's/.*\(docker\|kubepods\|lxc\|containerd\).*/\1/p' /proc/1/cgroup 2>/dev/null | head -n 1)
[ -n "$c" ] || { [ -r /proc/self/mountinfo ] && grep -q ' / / [^-]*- overlay ' /proc/self/mountinfo && c=container; }
p container "$c"
s=$(cat /proc/1/stat 2>/dev/null) && { s=${s##*) }; set -- $s; p start "${20}"; }
p boot "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
p btime "$(sed -n 's/^btime //p' /proc/stat 2>/dev/null)"
p hz "$(getconf CLK_TCK 2>/dev/null)"
command -v tmux >/dev/null 2>&1 && p tmux "$(tmux -V 2>/dev/null | head -n 1)"
command -v rsync >/dev/null 2>&1 && p rsync "$(rsync --version 2>/dev/null </dev/null | head -n 1)"
for t in zstd gzip setsid; do command -v $t >/dev/null 2>&1 && p $t 1; done
command -v script >/dev/null 2>&1 && script --help 2>/dev/null </dev/null | grep -q -e '--return' && p script 1
for f in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server /usr/lib/ssh/sftp-server /usr/lib/sftp-server /usr/local/libexec/sftp-server; do
	[ -x $f ] && { p sftp 1; break; }
done
smi=$(command -v nvidia-smi 2>/dev/null) && {
	p smi "$smi"
	if command -v timeout >/dev/null 2>&1; then timeout 15 nvidia-smi -L 2>/dev/null; else nvidia-smi -L 2>/dev/null; fi </dev/null | head -n 64 | sed 's/^/gpu /'
}
for t in rocm-smi amd-smi npu-smi mx-smi mthreads-gmi xpu-smi hl-smi cnmon; do command -v $t >/dev/null 2>&1 && p other $t; done
p rentop-probe-end 1
`

// probeLimit bounds what a probe may answer.
const probeLimit = 256 << 10

// Probe learns what an instance is and has, in one round trip. SFTP says that a
// server program is there; only opening it proves more.
func Probe(ctx context.Context, c *Conn) (*Facts, error) {
	f, err := probe(ctx, c.open)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", c.info.Address, err)
	}
	return f, nil
}

func probe(ctx context.Context, c *channels) (*Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no answer within a minute"))
	defer cancel()
	out := &limitedBuffer{max: probeLimit}
	began := time.Now()
	noise, err := c.run(ctx, Cmd{Script: probeScript, Stdout: out})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	if out.over {
		return nil, ErrTooLong
	}
	at := time.Now()
	f, err := parseProbe(out.kept.Bytes())
	if err != nil {
		return nil, err
	}
	f.At, f.Took, f.BannerNoise = at.UTC(), at.Sub(began), noise
	return f, nil
}

const (
	maxGPUs  = 64
	maxField = 300 // runes of one text
)

// parseProbe reads probeScript's answer. A value that is not as it should be is
// not there.
func parseProbe(out []byte) (*Facts, error) {
	f := &Facts{}
	begun, ended := false, false
	var boot string
	var start, btime, hz, now int64 = -1, 0, 0, 0
	for line := range bytes.Lines(out) {
		key, raw, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		value := strings.TrimSpace(Short(raw, maxField))
		if !begun {
			if key != "rentop-probe" {
				return nil, fmt.Errorf("the instance's answer begins with %q", Short(string(line), 80))
			}
			begun = true
			continue
		}
		switch key {
		case "now":
			now = number(value)
		case "shell":
			f.Shell = value[strings.LastIndexByte(value, '/')+1:]
		case "user":
			f.User = value
		case "uid":
			f.Root = value == "0"
		case "home":
			f.Home = value
		case "arch":
			f.Arch = value
		case "kernel":
			f.Kernel = value
		case "os":
			f.OS = value
		case "libc":
			f.Libc = value
		case "container":
			f.Container = value
		case "start":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
				start = n
			}
		case "boot":
			boot = value
		case "btime":
			btime = number(value)
		case "hz":
			hz = number(value)
		case "tmux":
			f.Tmux = strings.TrimPrefix(value, "tmux ")
		case "rsync":
			f.Rsync = rsyncVersion(value)
		case "zstd":
			f.Zstd = value == "1"
		case "gzip":
			f.Gzip = value == "1"
		case "setsid":
			f.Setsid = value == "1"
		case "script":
			f.Script = value == "1"
		case "sftp":
			f.SFTP = value == "1"
		case "smi":
			f.NvidiaSMI = value
		case "gpu":
			if name, ok := gpuName(value); ok && len(f.GPUs) < maxGPUs {
				f.GPUs = append(f.GPUs, name)
			}
		case "other":
			if len(f.OtherSMI) < maxGPUs {
				f.OtherSMI = append(f.OtherSMI, value)
			}
		case "rentop-probe-end":
			ended = true
		}
	}
	if !ended {
		return nil, errors.New("the instance's answer is cut short")
	}
	if now > 0 {
		f.Clock = time.Unix(now, 0).UTC()
	}
	if boot != "" && start >= 0 {
		f.Box = boot + "/" + strconv.FormatInt(start, 10)
	}
	if hz <= 0 || hz > 100_000 {
		hz = 100 // USER_HZ on every Linux that is rented
	}
	if btime > 0 && start >= 0 {
		if s := btime + start/hz; now == 0 || s <= now+60 { // a start in the future is none
			f.BoxStart = time.Unix(s, 0).UTC()
		}
	}
	return f, nil
}

// number is a time or a count; 0 where it is none.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}

// gpuName reads "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-…)".
func gpuName(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "GPU ")
	if !ok {
		return "", false
	}
	n, name, ok := strings.Cut(rest, ": ")
	if _, err := strconv.ParseUint(n, 10, 16); err != nil || !ok {
		return "", false
	}
	if i := strings.LastIndex(name, " (UUID"); i >= 0 {
		name = name[:i]
	}
	return name, name != ""
}

// rsyncVersion reads "rsync  version 3.2.7  protocol version 31".
func rsyncVersion(line string) string {
	w := strings.Fields(line)
	for i := range w {
		if w[i] == "version" && i+1 < len(w) {
			return w[i+1]
		}
	}
	return ""
}
