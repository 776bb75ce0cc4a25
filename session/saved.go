package session

import (
	"context"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/release"
)

// refreshSaved looks for files that exist nowhere else, in the background: the
// release checklist looks again, and harder.
func (s *Session) refreshSaved(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	files, bytes, err := release.CountUnsaved(ctx, s.releaseDeps(ctx))
	if ctx.Err() != nil {
		return
	}
	s.send(func(st *state) {
		if err != nil {
			st.saved = Saved{}
			return
		}
		st.saved = Saved{Known: true, Files: files, Bytes: bytes, At: s.f.opt.Now()}
	})
}

// refreshWatched finds the newest file under each watched path. Ages are taken
// by the instance's clock, so that its being wrong does no harm.
func (s *Session) refreshWatched(ctx context.Context, r remote.Runner) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	found := map[string]time.Time{}
	for _, w := range s.cfg().Watch {
		path := w.Path
		prefix := ""
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path, prefix = rest, `"$HOME"/`
		}
		out, err := remote.Output(ctx, r, `d=`+prefix+remote.Quote(path)+`
[ -e "$d" ] || exit 0
if [ -n "$(find "$d" -type f -mmin -1 2>/dev/null | head -n 1)" ]; then echo 0; exit; fi
lo=1; hi=2
while [ $hi -lt 100000 ] && [ -z "$(find "$d" -type f -mmin -$hi 2>/dev/null | head -n 1)" ]; do lo=$hi; hi=$((hi*2)); done
while [ $((hi-lo)) -gt 1 ]; do
  mid=$(((lo+hi)/2))
  if [ -n "$(find "$d" -type f -mmin -$mid 2>/dev/null | head -n 1)" ]; then hi=$mid; else lo=$mid; fi
done
echo $lo`)
		if err != nil {
			return
		}
		age, err := time.ParseDuration(strings.TrimSpace(string(out)) + "m")
		if err == nil && age >= 0 {
			found[w.Path] = s.f.opt.Now().Add(-age)
		}
	}
	s.send(func(st *state) { st.watched = found })
}
