package record

// What a machine tells of itself, in a redacted recording: cards, drivers and
// systems are known by name, word for word. An instance may put anything there, so
// a word that is not known is hidden.

import (
	"regexp"
	"slices"
	"strings"

	"rentop/remote/gpu"
)

// modelWord is a word of a card's, driver's or system's name: a model ("A100-SXM4-80GB",
// "MI300X"), a version of at most three numbers, a MIG profile, a state.
var modelWord = regexp.MustCompile(`^(?:[A-Z]{0,4}\d{1,4}[A-Z]{0,2}\d?(?:-[A-Z]{2,4}\d?)?(?:-\d{1,3}[A-Z]{1,2})?|Ascend\d{3}[A-Z]?\d?|` +
	`\d{1,4}(?:\.\d{1,4}){1,2}[a-z]?\d?|\d(?:c\.\d)?g\.\d{1,3}gb(?:\+(?:me|gfx)(?:\.all)?)?|P\d{1,2}|` +
	`[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])$`)

var machineWords = words(`NVIDIA AMD Intel Huawei Ascend GeForce RTX GTX GT Tesla Quadro GRID TITAN Titan Instinct Radeon Pro PRO Vega OAM PCIe PCIE NVL
	SXM SXM2 SXM3 SXM4 SXM5 HBM2 HBM2e HBM3 HBM3e Ti SUPER Super Max-Q Laptop Mobile GPU Graphics Device Ada Blackwell Generation Server Workstation Edition
	Embedded Orin Thor Xavier Nano AGX NX Jetson DGX Spark MIG Stand-in Card Enabled Disabled N/A [N/A]
	Linux GNU/Linux Debian Ubuntu CentOS Rocky AlmaLinux Fedora Red Hat Enterprise openSUSE SUSE Leap Alpine Amazon Oracle Anolis openEuler EulerOS Kylin macOS Darwin LTS Stream
	(trixie) (bookworm) (bullseye) (buster) x86_64 amd64 aarch64 arm64 tmux docker podman lxc containerd kubernetes wsl`)

// sources are what a sample may come from.
var sources = words("nvml nvidia-smi amd-smi rocm-smi npu-smi")

// guardWords are a guard's phases and the kinds of its rules.
var guardWords = words("arming refused watching saving acting waiting stopping done unsure off idle after at lease budget reclaim")

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// machine keeps the words that are known.
func (h *stands) machine(s string) string {
	if h == nil {
		return s
	}
	f := strings.Fields(s)
	for i, w := range f {
		if !machineWords[w] && !modelWord.MatchString(w) {
			f[i] = "…"
		}
	}
	return strings.Join(slices.Compact(f), " ")
}

// source is where a sample comes from.
func (h *stands) source(s string) string {
	if h == nil || sources[s] || s == "host only" {
		return s
	}
	return h.text(s)
}

func (h *stands) guardWord(s string) string {
	if h == nil || guardWords[s] {
		return s
	}
	return h.text(s)
}

// throttled are rentop's own words for why a card is slowed down.
var throttled = regexp.MustCompile(`^(?:power cap|hardware slowdown|sync boost|too hot \((?:driver|hardware)\)|power brake|display clocks|reason 0x[0-9a-f]{1,16})$`)

// card hides what is not known of a card that is our own copy.
func (h *stands) card(g *gpu.GPU) {
	g.UUID = h.of("GPU", g.UUID)
	for _, s := range []*string{&g.Name, &g.PCIBus, &g.PState, &g.MIG} {
		*s = h.machine(*s)
	}
	g.Throttle = slices.Clone(g.Throttle)
	for i, why := range g.Throttle {
		if !throttled.MatchString(why) {
			g.Throttle[i] = h.text(why)
		}
	}
	g.Instances = slices.Clone(g.Instances)
	for i := range g.Instances {
		in := &g.Instances[i]
		in.UUID, in.Profile = h.of("MIG", in.UUID), h.machine(in.Profile)
	}
}
