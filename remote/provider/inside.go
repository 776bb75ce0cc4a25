package provider

// Stopping an instance from inside, for a guard that no laptop is connected to: the
// provider's own way, with what the provider itself put there. No key of the person's
// is on an instance.

import "fmt"

// Inside is how an instance of a provider stops itself. Scripts are POSIX sh.
type Inside struct {
	Stop  string
	Check string // fails, and prints why, where Stop cannot work on this instance
}

// NotInsideError says why an instance of a kind cannot stop itself.
type NotInsideError struct {
	Kind string
	Why  string
	Cure string
}

func (e *NotInsideError) Error() string { return e.Why + ": " + e.Cure }

// first is the first process's environment, where a container's own variables are: a
// login over SSH often lacks them.
const first = `of() { eval "v=\${$1:-}"; [ -n "$v" ] || v=$(tr '\0' '\n' </proc/1/environ 2>/dev/null | sed -n "s/^$1=//p" | head -n 1); printf %s "$v"; }
`

const ownCommand = "give the command that does: --then 'COMMAND'"

// StopInside gives the way of a kind of provider; "" is plain SSH. The error is a
// *NotInsideError with what can be done instead.
func StopInside(kind string) (Inside, error) {
	no := func(why, cure string) (Inside, error) { return Inside{}, &NotInsideError{kind, why, cure} }
	const release = "let it save with --then 'COMMAND', and give the instance back yourself with rentop release"
	switch kind {
	case "autodl": // https://www.autodl.com/docs/save_money/: shutdown inside ends the billing
		return Inside{
			Check: `[ -x /usr/bin/shutdown ] || command -v shutdown >/dev/null 2>&1 || { echo "the image has no shutdown command"; exit 1; }`,
			Stop:  `if [ -x /usr/bin/shutdown ]; then /usr/bin/shutdown; else shutdown; fi`,
		}, nil
	case "runpod": // a pod has runpodctl and a key for itself alone: https://docs.runpod.io/pods/manage-pods
		const env = first + `RUNPOD_POD_ID=$(of RUNPOD_POD_ID) RUNPOD_API_KEY=$(of RUNPOD_API_KEY); export RUNPOD_POD_ID RUNPOD_API_KEY
`
		return Inside{
			Check: env + `command -v runpodctl >/dev/null 2>&1 || { echo "the image has no runpodctl"; exit 1; }
[ -n "$RUNPOD_POD_ID" ] || { echo "the pod does not tell its id (RUNPOD_POD_ID)"; exit 1; }
[ -n "$RUNPOD_API_KEY" ] || { echo "the pod has no key of its own (RUNPOD_API_KEY)"; exit 1; }`,
			Stop: env + `runpodctl stop pod "$RUNPOD_POD_ID" || runpodctl pod stop "$RUNPOD_POD_ID"`,
		}, nil
	case "vast": // an instance has a key for itself alone: https://docs.vast.ai/instances/docker-environment
		const env = first + `id=$(of CONTAINER_ID) key=$(of CONTAINER_API_KEY)
`
		return Inside{
			Check: env + `command -v curl >/dev/null 2>&1 || { echo "the image has no curl"; exit 1; }
case $id in '' | *[!0-9]*) echo "the instance does not tell its id (CONTAINER_ID)"; exit 1 ;; esac
[ -n "$key" ] || { echo "the instance has no key of its own (CONTAINER_API_KEY)"; exit 1; }`,
			// The key goes in by stdin: arguments can be read by every user there.
			Stop: env + `printf 'header = "Authorization: Bearer %s"\n' "$key" |
	curl -fsS --max-time 60 -K - -X PUT -H 'Content-Type: application/json' -d '{"state": "stopped"}' "https://console.vast.ai/api/v0/instances/$id/"`,
		}, nil
	case "demo": // remote/demo
		return Inside{Check: `command -v demo-poweroff >/dev/null || { echo "this is no instance of the demo"; exit 1; }`, Stop: "demo-poweroff"}, nil
	case "digitalocean":
		return no("a droplet that is off costs as much as one that runs, and only its owner's key can destroy it", release)
	case "hyperstack":
		return no("a machine that is shut off from inside is charged in full, and only its owner's key can hibernate it", release)
	case "alibaba", "tencent":
		return no("a machine that is shut down from inside is charged in full there, and only its owner's key can stop it without", release)
	case "aws":
		return no("whether a shutdown from inside stops it or terminates it was chosen at its launch, and is not told on the machine", ownCommand+", such as --then 'sudo shutdown -h now', where it stops")
	case "lambda":
		return no("Lambda has no stop, and only its owner's key can terminate an instance", release)
	case "command":
		return no("the stop line of this instance runs on this computer, not on the instance", ownCommand)
	case "":
		return no("how this machine is stopped from inside is not known", ownCommand+", such as --then 'sudo shutdown -h now', where that ends what it costs")
	}
	return no(fmt.Sprintf("how an instance of %s is stopped from inside is not known", kind), ownCommand)
}
