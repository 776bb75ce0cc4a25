package tui

import (
	"rentop/remote/gpu"
	"rentop/session"
)

// told is a fleet whose first instance has the helper: all that it tells of a card
// that is well, of one that is not, and of one that MIG split.
func told() *session.FleetView {
	v := sample()
	s := *v.Sessions[0].Sample
	s.Source, s.Driver = "nvml", "590.48.01"
	well := a100()
	well.MemReserved, well.TempMargin, well.Encoder, well.Decoder = gpu.Of(612<<20), gpu.Of(23), gpu.Of(0), gpu.Of(8)
	well.PCIeGen, well.PCIeWidth, well.PCIeGenMax, well.PCIeWidthMax, well.PCIeRx, well.PCIeTx = gpu.Of(4), gpu.Of(16), gpu.Of(4), gpu.Of(16), gpu.Of(8.1e9), gpu.Of(2.2e6)
	well.NVLinks, well.NVLinksDown, well.NVLinkRx, well.NVLinkTx = gpu.Of(12), gpu.Of(0), gpu.Of(41e9), gpu.Of(40e9)
	well.ECCErrors, well.ECCCorrected, well.RemappedRows, well.RemapPending, well.RemapFailed = gpu.Of(0), gpu.Of(3), gpu.Of(0), gpu.Of(0), gpu.Of(0)
	ill := well
	ill.Index, ill.PCIeWidth, ill.NVLinks, ill.NVLinksDown, ill.ECCErrors, ill.RemappedRows, ill.RemapPending = 1, gpu.Of(8), gpu.Of(11), gpu.Of(1), gpu.Of(2), gpu.Of(2), gpu.Of(1)
	ill.PCIeRx = gpu.Value{State: gpu.Failed, Why: "Unknown Error"}
	split := well
	split.Index, split.MIG, split.Util, split.RemapFailed = 2, "Enabled", gpu.Value{Why: "not supported"}, gpu.Of(1)
	split.Instances = []gpu.Instance{{GI: 7, CI: 0, Profile: "3g.40gb", MemUsed: gpu.Of(11091 << 20), MemTotal: gpu.Of(40448 << 20)},
		{GI: -1, CI: -1, Profile: "hostile \u202e \x1b[2J", MemUsed: gpu.Value{Why: "not told"}, MemTotal: gpu.Of(9984 << 20), Util: gpu.Of(40)}}
	s.GPUs = []gpu.GPU{well, ill, split}
	v.Sessions[0].Sample = &s
	return v
}
