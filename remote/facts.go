package remote

import "time"

// Facts is what a probe learned about an instance. Texts are cleaned.
type Facts struct {
	At          time.Time // rentop's clock
	Clock       time.Time // the instance's clock at that moment
	Shell       string    // the login shell: "bash", "fish", "tcsh", …
	User        string
	Home        string
	Root        bool
	OS          string // "Ubuntu 22.04.3 LTS"
	Arch        string // "x86_64"
	Kernel      string
	Libc        string    // "glibc 2.35", "musl"
	Container   string    // "docker", "lxc", …; "" on a VM or bare metal
	Box         string    // boot id + PID 1's start: changes at each restart
	BoxStart    time.Time // when PID 1 started, by the instance's clock; zero where unreadable
	Tmux        string    // version, "" where missing
	Zstd        bool
	Gzip        bool
	Rsync       string
	Script      bool // util-linux script(1)
	Setsid      bool
	SFTP        bool
	NvidiaSMI   string   // path, "" where missing
	GPUs        []string // names, from nvidia-smi -L
	OtherSMI    []string // rocm-smi, npu-smi, …
	BannerNoise int      // bytes that the login printed before the marker
	Took        time.Duration
}

// Size of a terminal in cells.
type Size struct{ Cols, Rows int }
