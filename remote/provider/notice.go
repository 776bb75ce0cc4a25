package provider

// What a machine itself is told before its provider takes it back: the metadata service
// on a link-local address, which needs no key of the person's.

import (
	"fmt"
	"net/netip"
	"net/url"

	"rentop/remote"
)

// noticeScript asks $u, with the token $t where there is one. It prints the answer, or
// nothing where there is no such page: then no notice was given. It fails where nobody
// answers. Each way waits a second, and none goes through a proxy.
const noticeScript = `if command -v curl >/dev/null 2>&1; then
  o=$(curl -s -m 1 --noproxy '*' ${t:+-H} ${t:+"X-aws-ec2-metadata-token: $t"} -w '\n%{http_code}' "$u") || { echo "nobody answers at $u"; exit 1; }
  c=$(printf '%s\n' "$o" | tail -n 1); o=$(printf '%s\n' "$o" | sed '$d')
elif command -v python3 >/dev/null 2>&1; then
  o=$(python3 -c '
import sys, urllib.request as r, urllib.error as e
q = r.Request(sys.argv[1], headers={"X-aws-ec2-metadata-token": sys.argv[2]} if sys.argv[2] else {})
try: print(r.build_opener(r.ProxyHandler({})).open(q, timeout=1).read(4096).decode("utf-8", "replace"))
except e.HTTPError as x: sys.exit(8 if x.code == 404 else 1)
' "$u" "$t" 2>/dev/null); x=$?
  case $x in 0) c=200 ;; 8) c=404 ;; *) echo "nobody answers at $u"; exit 1 ;; esac
elif command -v wget >/dev/null 2>&1 && [ -z "$t" ]; then
  unset http_proxy HTTP_PROXY; o=$(wget -q -T 1 -O - "$u" 2>&1); x=$?
  case "$x $o" in "0 "*) c=200 ;; 8*|*404*) c=404 ;; *) echo "nobody answers at $u"; exit 1 ;; esac
else echo "there is neither curl nor python3 to ask $u with"; exit 1; fi
case $c in 200) printf '%s\n' "$o" | head -c 1000 ;; 404) ;; *) echo "the answer at $u is $c"; exit 1 ;; esac
`

// Addresses of metadata services, and what they tell: AWS gives two minutes, the others
// about five.
//
//	https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
//	https://www.alibabacloud.com/help/en/ecs/user-guide/query-the-interruption-events-of-preemptible-instances
//	https://www.tencentcloud.com/document/product/213/37970
const (
	awsNotice     = "http://169.254.169.254/latest/meta-data/spot/instance-action"
	awsToken      = "http://169.254.169.254/latest/api/token"
	alibabaNotice = "http://100.100.100.200/latest/meta-data/instance/spot/termination-time"
	tencentNotice = "http://169.254.0.23/latest/meta-data/spot/termination-time"
)

// NoticeInside is a script for sh that an instance asks itself with whether it will be
// taken back: it prints what is announced, nothing where nothing is, and fails where it
// cannot be asked. The error is a *NotInsideError where the provider announces nothing
// on the machine.
func NoticeInside(kind string) (string, error) {
	no := func(why string) (string, error) {
		return "", &NotInsideError{kind, why, "save often instead: rentop save NAME --watch"}
	}
	switch kind {
	case "aws":
		return "u=" + awsNotice + "\nt=$(curl -s -m 1 --noproxy '*' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' " + awsToken + " 2>/dev/null)\n" + noticeScript, nil
	case "alibaba":
		return "t=; u=" + alibabaNotice + "\n" + noticeScript, nil
	case "tencent":
		return "t=; u=" + tencentNotice + "\n" + noticeScript, nil
	case "vast", "runpod":
		return no("an interruptible instance there ends without a notice on the machine")
	case "lambda", "digitalocean", "hyperstack", "autodl":
		return no("its machines are not taken back while they are paid for")
	case "", "command", "demo":
		return no("whether this machine is told before it is taken back is not known; --reclaim=http://ADDRESS names where to ask on it")
	}
	return no(fmt.Sprintf("whether %s tells a machine before it takes it back is not known", kind))
}

// NoticeAt is NoticeInside for an address of the person's. It must be the machine's own,
// or one that only the machine can reach: loopback or link-local.
func NoticeAt(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("%q is no http address", remote.Short(address, 120))
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
		return "", fmt.Errorf("%q: a metadata service is asked at a loopback or link-local address only, such as http://169.254.169.254/…", remote.Short(address, 120))
	}
	return "t=; u=" + remote.Quote(u.String()) + "\n" + noticeScript, nil
}
