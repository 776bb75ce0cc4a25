// Workers on the instance: scripts that carry out one signed request after another.
// URLs come on their stdin and go to curl on its own, never into a list of processes.

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"rentop/remote"
	"rentop/remote/agent/link"
)

// job is one request: to put n bytes of a file from at on, to take an object into a
// file, or, without a file, to get it and hash it.
type job struct {
	to   signed
	file *File
	take bool
	at   int64
	n    int64
}

// answer is what came of a job.
type answer struct {
	status  int    // of HTTP; 0 where there was none
	broke   string // why there was none
	curl    int    // curl's exit code
	body    []byte
	sum     []byte // of a get
	changed bool   // the file is not as it was listed
}

// curlScript: what goes out is read by dd in whole mebibytes and cut by head, since
// tail -c reads all that comes before on some systems. An empty Transfer-Encoding with
// a Content-Length keeps curl from chunks, which storage refuses.
const curlScript = decode + `command -v curl >/dev/null 2>&1 && [ -e /dev/fd/0 ] || { echo none; exit 0; }
echo ready
exec 3>&1
while read -r verb n size skip count len heads enc; do
  IFS= read -r url || exit 0
  conf="url = \"$url\""
  while [ "$heads" -gt 0 ]; do
    IFS= read -r h || exit 0
    conf="$conf
header = \"$h\""
    heads=$((heads-1))
  done
  if [ "$verb" = get ]; then
    rc=$( { { printf '%s\n' "$conf" | curl -q -g -sS -f --connect-timeout 20 --speed-limit 1 --speed-time 60 -K - 2>/dev/null; printf '%s' $? >&4; } | $S | { read -r h rest; printf '%s got %s ' "$n" "$h" >&3; } } 4>&1 )
    printf '%s\n' "$rc"
    continue
  fi
  name "$enc"
  if [ "$verb" = take ]; then
    have=$(stat -L -c %s -- "$f" 2>/dev/null) || have=0
    if [ "$have" -gt "$size" ]; then rm -f -- "$f"; have=0; fi
    rc=0
    if [ "$size" = 0 ]; then : >"$f" || rc=23
    elif [ "$have" -lt "$size" ]; then
      printf '%s\n' "$conf" | curl -q -g -sS -f --connect-timeout 20 --speed-limit 1 --speed-time 60 --max-filesize "$size" -C - -o "$f" -K - 2>/dev/null
      rc=$?
    fi
    printf '%s took %s\n' "$n" "$rc"
    continue
  fi
  if [ "$(stat -L -c %s -- "$f" 2>/dev/null)" != "$size" ]; then printf '%s changed\n' "$n"; continue; fi
  out=$(dd if="$f" bs=1048576 skip="$skip" count="$count" 2>/dev/null | head -c "$len" | {
    printf '%s\nheader = "Transfer-Encoding:"\nheader = "Content-Length: %s"\nheader = "Expect:"\n' "$conf" "$len" |
      curl -q -g -sS --connect-timeout 20 --speed-limit 1 --speed-time 60 -K - -T /dev/fd/5 -w ' %{http_code}' 5<&4 2>&1
    printf ' %s' $?
  } 4<&0 | tail -c 3000 | tr '\n\r' '  ')
  printf '%s put %s\n' "$n" "$out"
done
`

// pythonScript is the same for an instance without curl.
const pythonScript = `command -v python3 >/dev/null 2>&1 || { echo none; exit 0; }
echo ready
exec python3 -c '
import sys,os,re,hashlib,http.client,urllib.parse
def line():
    l=sys.stdin.buffer.readline()
    if not l.endswith(b"\n"): sys.exit(0)
    return l[:-1].decode("latin-1")
def say(*w):
    sys.stdout.buffer.write((" ".join(w)+"\n").encode("latin-1","replace")); sys.stdout.buffer.flush()
def body(f,at,n):
    with open(f,"rb") as h:
        h.seek(at)
        while n>0:
            b=h.read(min(n,1<<20))
            if not b: raise OSError("the file is shorter now")
            n-=len(b); yield b
while True:
    verb,n,size,skip,count,ln,heads,enc=line().split(" ")
    url=line(); head=dict(line().split(": ",1) for _ in range(int(heads)))
    f=re.sub(rb"\\0([0-7]{3})",lambda m:bytes([int(m.group(1),8)]),enc.encode("latin-1"))
    try:
        if verb=="put" and os.stat(f).st_size!=int(size):
            say(n,"changed"); continue
        u=urllib.parse.urlsplit(url)
        c=(http.client.HTTPSConnection if u.scheme=="https" else http.client.HTTPConnection)(u.netloc,timeout=60)
        if verb=="take":
            have=os.path.getsize(f) if os.path.exists(f) else 0
            if have>int(size): os.remove(f); have=0
            try: h=open(f,"ab")
            except OSError: say(n,"took","23"); continue
            code="0"
            with h:
                if have<int(size):
                    head["Range"]="bytes=%d-"%have
                    c.request("GET",u.path+"?"+u.query,headers=head); r=c.getresponse()
                    if r.status==200: h.truncate(0)
                    elif r.status!=206: code="22"
                    while code=="0":
                        b=r.read(1<<20)
                        if not b: break
                        try: h.write(b)
                        except OSError: code="23"
                        if h.tell()>int(size): code="63"
            say(n,"took",code)
        elif verb=="get":
            c.request("GET",u.path+"?"+u.query,headers=head); r=c.getresponse(); s=hashlib.sha256()
            while True:
                b=r.read(1<<20)
                if not b: break
                s.update(b)
            say(n,"got",s.hexdigest(),"0" if r.status==200 else "22")
        else:
            head["Content-Length"]=ln
            c.request("PUT",u.path+"?"+u.query,body=body(f,int(skip)<<20,int(ln)),headers=head)
            r=c.getresponse(); t=r.read(2500).decode("utf-8","replace")
            say(n,"put",re.sub(r"[\r\n]"," ",t),str(r.status),"0")
        c.close()
    except Exception as e:
        if verb=="get": say(n,"got","0"*64,"56")
        elif verb=="take": say(n,"took","56")
        else: say(n,"put",re.sub(r"[\r\n]"," ",str(e)[:300]),"000","56")
'
`

// ErrNoTool says that nothing on the instance can make an HTTPS request.
var ErrNoTool = errors.New("neither curl nor python3 is on the instance, nor can rentop's helper be had there, and one of them must carry the bytes: apt-get install -y curl")

// pool hands jobs to workers.
type pool struct {
	r      remote.Runner
	ctx    context.Context // ends all workers
	cancel context.CancelFunc
	idle   chan *worker // nil: not started yet
	helper func(context.Context) (link.Link, error)
	wg     sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	tools []tool     // what may work there, the best first
	slots int        // workers that there may be
}

// tool makes workers: by a script, or the helper where that is "".
type tool struct {
	name   string
	script string
}

func newPool(ctx context.Context, r remote.Runner, n int, helper func(context.Context) (link.Link, error)) *pool {
	p := &pool{r: r, idle: make(chan *worker, n), slots: n, helper: helper, tools: []tool{{"curl", curlScript}, {"python3", pythonScript}}}
	if helper != nil {
		p.tools = append(p.tools, tool{name: "helper"})
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	for range n {
		p.idle <- nil
	}
	return p
}

// close ends the workers and waits for them.
func (p *pool) close() {
	for range cap(p.idle) {
		select {
		case w := <-p.idle:
			if w != nil {
				w.close()
			}
		default:
		}
	}
	p.cancel()
	p.wg.Wait()
}

type worker struct {
	far   link.Link // of the helper; nil where a script does the work
	in    *io.PipeWriter
	lines chan string
	ended chan struct{}
	err   error // after ended
	n     int   // jobs
}

func (p *pool) start(script string) *worker {
	pr, pw := io.Pipe()
	w := &worker{in: pw, lines: make(chan string, 4), ended: make(chan struct{})}
	out := &lineWriter{each: func(line string) error {
		select {
		case w.lines <- line:
			return nil
		default:
			return errors.New("it says more than it was asked")
		}
	}}
	p.wg.Go(func() {
		defer close(w.ended)
		w.err = p.r.Run(p.ctx, remote.Cmd{Script: script, Stdin: pr, Stdout: out})
		if w.err == nil {
			w.err = out.err
		}
		if w.err == nil {
			w.err = errors.New("the worker on the instance ended")
		}
		pr.CloseWithError(w.err)
	})
	return w
}

// do has one job done. The error is of the worker, not of the request.
func (p *pool) do(ctx context.Context, j job) (answer, error) {
	for {
		var w *worker
		select {
		case w = <-p.idle:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		with, err := p.tool(), error(nil)
		switch {
		case w != nil:
		case with.script != "":
			w = p.start(with.script)
			err = w.ready(ctx)
		default:
			w = &worker{}
			w.far, err = p.helper(ctx)
		}
		if err == nil {
			var a answer
			if a, err = w.do(ctx, j); err == nil {
				p.idle <- w
				return a, nil
			}
		}
		w.close()
		if p.without(with, err) {
			continue
		}
		p.idle <- nil
		return answer{}, err
	}
}

func (p *pool) tool() tool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tools[0]
}

// without says whether a worker's failure leaves a way to go on: with the next
// program, or with fewer workers where the server allows no more channels.
func (p *pool) without(with tool, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var busy *remote.BusyError
	switch {
	case errors.Is(err, ErrNoTool):
		if p.tools[0] == with && len(p.tools) > 1 {
			p.tools = p.tools[1:]
		}
		if p.tools[0] == with {
			return false
		}
		p.idle <- nil
		return true
	case errors.As(err, &busy) && p.slots > 1:
		p.slots--
		return true
	}
	return false
}

// ready waits for the script to say that its program is there.
func (w *worker) ready(ctx context.Context) error {
	select {
	case line := <-w.lines:
		switch line {
		case "ready":
			return nil
		case "none":
			return ErrNoTool
		}
		return misread(line)
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *worker) close() {
	switch {
	case w.far != nil:
		w.far.Close()
	case w.in != nil:
		w.in.Close()
	}
}

func (w *worker) do(ctx context.Context, j job) (answer, error) {
	if w.far != nil {
		return askHelper(ctx, w.far, j)
	}
	w.n++
	id := strconv.Itoa(w.n)
	if _, err := io.WriteString(w.in, j.record(id)); err != nil {
		select {
		case <-w.ended:
			return answer{}, w.err
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
	select {
	case line := <-w.lines:
		rest, ok := strings.CutPrefix(line, id+" ")
		if !ok {
			return answer{}, misread(line)
		}
		return parseAnswer(rest)
	case <-w.ended:
		return answer{}, w.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// record is a job as the scripts read it.
func (j job) record(id string) string {
	var b strings.Builder
	switch {
	case j.take:
		fmt.Fprintf(&b, "take %s %d 0 0 0 %d %s\n", id, j.file.Size, len(j.to.headers), octal(j.file.Path))
	case j.file == nil:
		fmt.Fprintf(&b, "get %s 0 0 0 0 %d -\n", id, len(j.to.headers))
	default:
		fmt.Fprintf(&b, "put %s %d %d %d %d %d %s\n", id, j.file.Size, j.at/mebibyte, (j.n+mebibyte-1)/mebibyte, j.n, len(j.to.headers), octal(j.file.Path))
	}
	b.WriteString(j.to.url + "\n")
	for _, h := range j.to.headers {
		b.WriteString(h + "\n")
	}
	return b.String()
}

// parseAnswer reads what a worker says of a job.
func parseAnswer(s string) (answer, error) {
	verb, rest, _ := strings.Cut(s, " ")
	switch verb {
	case "changed":
		return answer{changed: true}, nil
	case "took":
		code, err := strconv.Atoi(rest)
		if err != nil || code < 0 {
			return answer{}, misread(s)
		}
		if code != 0 {
			return answer{curl: code, broke: fmt.Sprintf("curl %d", code)}, nil
		}
		return answer{status: 200}, nil
	case "got":
		w := strings.Fields(rest)
		if len(w) != 2 {
			return answer{}, misread(s)
		}
		sum, err := unhex(w[0])
		code, cerr := strconv.Atoi(w[1])
		if err != nil || cerr != nil {
			return answer{}, misread(s)
		}
		if code != 0 {
			return answer{curl: code, broke: fmt.Sprintf("reading it back failed (curl %d)", code)}, nil
		}
		return answer{status: 200, sum: sum}, nil
	case "put":
		w := strings.Fields(rest)
		if len(w) < 2 {
			return answer{}, misread(s)
		}
		code, err := strconv.Atoi(w[len(w)-1])
		status, serr := strconv.Atoi(w[len(w)-2])
		if err != nil || serr != nil || status < 0 || status > 999 {
			return answer{}, misread(s)
		}
		a := answer{status: status, curl: code, body: []byte(strings.Join(w[:len(w)-2], " "))}
		if code != 0 {
			a.broke = remote.Short(string(a.body), 200)
		}
		return a, nil
	}
	return answer{}, misread(s)
}
