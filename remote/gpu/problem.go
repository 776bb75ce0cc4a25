package gpu

import (
	"fmt"
	"regexp"
	"strings"

	"rentop/remote"
)

// complaints are what nvidia-smi prints (on stdout) in place of an answer, most
// telling first.
var complaints = []struct{ has, what, cure string }{
	{"couldn't communicate with the NVIDIA driver", "the NVIDIA driver is not loaded on the instance",
		"restart the instance; if that does not help, ask the provider for another machine or install the driver"},
	{"couldn't find libnvidia-ml", "the driver's library libnvidia-ml.so is not on the instance",
		"start the container with its GPUs (--gpus all, NVIDIA_DRIVER_CAPABILITIES=all), or use an image of the provider"},
	{"Driver/library version mismatch", "the driver in the kernel and its library have different versions",
		"restart the instance: the driver was updated while it ran"},
	{"Mismatch in versions between nvidia-smi and NVML", "nvidia-smi and the driver's library come from different versions",
		"remove the other nvidia-smi or libnvidia-ml from PATH and LD_LIBRARY_PATH"},
	{"Failed to initialize NVML: Unknown Error", "the container has lost its access to the GPUs",
		"save your work, then restart the container (a daemon-reload on its host does this)"},
	{"Insufficient Permissions", "this login may not open the GPU's device files",
		"log in as root, or add the login to the group that owns /dev/nvidia*"},
	{"No devices were found", "no GPU is attached to the instance",
		"look at the provider's console: it may have been started without a card; stop and start it"},
	{"GPU is lost", "a GPU has fallen off the bus", "save your work, then restart the instance or ask the provider for another"},
	{"GPU requires reset", "a GPU requires a reset", "save your work, then stop and start the instance"},
	{"Unable to determine the device handle", "a GPU does not answer",
		"save your work, then restart the instance or ask the provider for another"},
	{"is not a valid field to query", "this nvidia-smi is too old or too new for what rentop asks",
		"update the driver, or tell us the version that nvidia-smi prints"},
	{"is not recognized", "this nvidia-smi is too old for what rentop asks", "update the driver"},
	{"Not supported on the device", "this GPU or driver does not answer queries", "run nvidia-smi on the instance to see what it can tell"},
	{"Driver Not Loaded", "the NVIDIA driver is not loaded on the instance", "restart the instance, or ask the provider"},
	{"Failed to initialize NVML", "the NVIDIA driver cannot be reached", "restart the instance, or ask the provider"},
}

var busID = regexp.MustCompile(`(?i)\bgpu ?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])`)

// problem makes a sentence of what nvidia-smi said when it ended with code.
func problem(code int, text string) *Problem {
	for _, c := range complaints {
		if strings.Contains(text, c.has) {
			p := &Problem{What: c.what, Cure: c.cure}
			if m := busID.FindStringSubmatch(text); m != nil {
				p.What += " (GPU " + m[1] + ")"
			}
			return p
		}
	}
	switch code {
	case 127:
		return &Problem{What: "nvidia-smi is not on the instance", Cure: "use an image with the NVIDIA driver, or expect host figures only"}
	case 124, 137, 143:
		return hung("25 s")
	case 139:
		return &Problem{What: "nvidia-smi crashes", Cure: "restart the instance; under WSL update the Windows driver"}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		first = "it said nothing"
	}
	return &Problem{What: fmt.Sprintf("nvidia-smi failed (exit %d): %s", code, remote.Short(first, 120)),
		Cure: "run nvidia-smi on the instance; restart it or ask the provider"}
}

func hung(since string) *Problem {
	return &Problem{What: "nvidia-smi has not answered for " + since + ": the driver may hang",
		Cure: "save your work, then restart the instance; look in dmesg for Xid"}
}

// noTool says why there is only the host.
func noTool(others []string) *Problem {
	if len(others) > 0 {
		return &Problem{What: "accelerators of another make: " + strings.Join(others, ", ") + " is there, nvidia-smi is not",
			Cure: "rentop reads NVIDIA, AMD and Ascend cards; run " + others[0] + " in a terminal"}
	}
	return problem(127, "")
}
