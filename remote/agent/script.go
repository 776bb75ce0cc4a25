package agent

// The scripts that start and install the helper. Every word from outside goes
// through remote.Quote. A folder counts only if it is a real one, ours and nobody
// else's: in /tmp anybody may have made it before us.

import (
	"fmt"
	"strings"

	"rentop/remote"
	"rentop/remote/agent/hello"
	"rentop/remote/agent/serve"
)

// candidates sets $1… to where the helper may live, best first.
const candidates = `u=$(id -u)
set -- "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/rentop}" "${HOME:+$HOME/.cache/rentop}" "/var/tmp/rentop-$u" "/tmp/rentop-$u" "/dev/shm/rentop-$u" "${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/rentop}"
ours() { # DIR: a real folder, of this user and closed to others
	[ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
	case $(ls -ldn "$1" 2>/dev/null) in drwx--[-S]---*) ;; *) return 1 ;; esac
}
`

// startScript runs the helper where it is installed, and otherwise says that it is
// absent and what the instance has to install it with. afresh removes one that is
// there, because it does not work.
func startScript(known map[string]*Binary, service string, afresh bool) string {
	var b strings.Builder
	b.WriteString(candidates + "h=; m=$(uname -m)\ncase $(uname -s):$m in\n")
	for _, a := range arches {
		if bin := known[a.goarch]; bin != nil {
			var patterns []string
			for _, m := range a.machines {
				patterns = append(patterns, "Linux:"+m)
			}
			fmt.Fprintf(&b, "%s) h=%s; a=%s ;;\n", strings.Join(patterns, "|"), remote.Quote(fileName(bin)), remote.Quote(strings.Join(bin.Args, " ")))
		}
	}
	b.WriteString(`esac
run() { exec "$1" $a serve ` + remote.Quote(service) + `; }
`)
	if afresh {
		b.WriteString("run() { rm -f \"$1\"; }\n")
	}
	b.WriteString(`[ -z "$h" ] || for d; do
	[ -x "$d/$h" ] && [ ! -L "$d/$h" ] && [ -O "$d/$h" ] && ours "$d" && run "$d/$h"
done
printf '` + strings.TrimSuffix(hello.Absent, "\n") + `\nsystem %s\nmachine %s\n' "$(uname -s)" "$m"
for t in zstd gzip cat; do command -v $t >/dev/null 2>&1 && echo "tool $t"; done
echo end
`)
	return b.String()
}

func fileName(b *Binary) string { return serve.Prefix + b.SHA256[:16] }

// halfName is the file's name while it is not whole.
func halfName(b *Binary, token string) string { return serve.Half + b.SHA256[:16] + "." + token }

// arches are what `uname -m` says of what Go calls an architecture.
var arches = []struct {
	goarch   string
	machines []string
}{
	{"amd64", []string{"x86_64", "amd64"}},
	{"arm64", []string{"aarch64", "arm64"}},
}

// goarch translates `uname -m`; "" where there is no helper for it.
func goarch(machine string) string {
	for _, a := range arches {
		for _, m := range a.machines {
			if m == machine {
				return a.goarch
			}
		}
	}
	return ""
}

// placeScript finds the first folder from the skip-th on that will hold and run the
// helper, and sets $d to it and $t to a new file's name in it. It reports each
// folder that will not. A small program is tried first, since a mount may forbid to
// run any.
func placeScript(b *Binary, skip int, token string) string {
	return candidates + fmt.Sprintf(`umask 077
h=%s
shift %d
t=
bad() { rm -f "$t"; t=; rmdir "$d" 2>/dev/null; printf 'no %%s\t%%s\n' "$d" "$1"; }
for d; do
	[ -n "$d" ] || { echo skip; continue; }
	e=$(mkdir -p "$d" 2>&1) || { printf 'no %%s\t%%s\n' "$d" "cannot be made: $e"; continue; }
	[ -O "$d" ] && [ ! -L "$d" ] && chmod 700 "$d" 2>/dev/null
	ours "$d" || { printf 'no %%s\t%%s\n' "$d" "belongs to someone else"; continue; }
	t=$d/%s
	e=$( { printf '#!/bin/sh\nexit 0\n' >"$t" && chmod 700 "$t"; } 2>&1) || { bad "cannot be written: $e"; continue; }
	e=$("$t" 2>&1 </dev/null) || { bad "does not let programs run (mounted noexec?): $e"; continue; }
	printf 'at %%s\n' "$d"
	break
done
[ -n "$t" ] || { echo nowhere; exit 0; }
`, remote.Quote(fileName(b)), skip, remote.Quote(halfName(b, token)))
}

// finishScript checks what is in $t and gives it its name, in $d. The helper checks
// itself where the instance has nothing else for it.
func finishScript(b *Binary) string {
	args := ""
	for _, a := range b.Args {
		args += remote.Quote(a) + " "
	}
	return fmt.Sprintf(`fail() { rm -f "$t"; rmdir "$d" 2>/dev/null; printf 'no %%s\t%%s\n' "$d" "$1"; exit 0; }
w=%s
s=$( (sha256sum <"$t" || busybox sha256sum <"$t" || openssl dgst -sha256 -r <"$t" || shasum -a 256 <"$t") 2>/dev/null)
chmod 700 "$t" || fail "cannot be made to run"
case $s in
"$w"*) ;;
'') e=$("$t" %scheck "$w" 2>&1 </dev/null) || fail "did not receive it whole, or cannot run it: $e" ;;
*) fail "did not receive it whole: its SHA-256 is another" ;;
esac
e=$("$t" %sversion 2>&1 </dev/null) || fail "cannot run it: $e"
case $e in rentop-agent*) ;; *) fail "cannot run it: $e" ;; esac
e=$(mv -f "$t" "$d/$h" 2>&1) || fail "cannot be written: $e"
echo done
`, b.SHA256, args, args)
}

// receiveScript puts stdin into $t.
func receiveScript(p packing) string {
	program := map[packing]string{packZstd: "zstd -dcq", packGzip: "gzip -dc", packNone: "cat"}[p]
	return fmt.Sprintf(`e=$( { %s >"$t"; } 2>&1) || { rm -f "$t"; rmdir "$d" 2>/dev/null; printf 'no %%s\t%%s\n' "$d" "could not take it: $e"; exit 0; }
`, program)
}
