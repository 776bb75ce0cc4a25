package sample

// What kind of figure each cell is: how it travels, and what would be garbage.

// kind of a cell.
type kind uint8

const (
	percent kind = iota
	size         // bytes, carried in KiB
	watts
	celsius
	plain // MHz, counts, links
	rate  // bytes a second
	bulk  // bytes a second, carried in KiB: what the driver counts in
	hundredth
	seconds
)

// kinds: steps is how many make one unit; beyond highest or below lowest a figure
// is a failed reading.
var kinds = []struct{ steps, lowest, highest float64 }{
	percent:   {10, 0, 1000},
	size:      {1. / 1024, 0, 1 << 50},
	watts:     {10, 0, 100_000},
	celsius:   {10, -250, 250},
	plain:     {1, 0, 1 << 53},
	rate:      {1, 0, 1 << 50},
	bulk:      {1. / 1024, 0, 1 << 50},
	hundredth: {100, 0, 1e6},
	seconds:   {1, 0, 1 << 33},
}

// gpuKinds are the kinds of GPU.Cells.
var gpuKinds = []kind{percent, percent, size, size, size, watts, watts, celsius, celsius, percent, plain, plain, plain, plain,
	plain, plain, plain, percent, percent, plain, plain, bulk, bulk, plain, plain, bulk, bulk, plain, plain, plain, plain, size}

// cell is one figure of a sample and its kind.
type cell struct {
	*Value
	kind
}

// cells are all figures of s, in an order that follows from how many GPUs,
// instances, processes and disks there are.
func (s *Sample) cells() []cell {
	h := &s.Host
	all := make([]cell, 0, 10+len(gpuKinds)*len(s.GPUs)+len(s.Processes)+3*len(h.Disks))
	all = append(all, cell{&h.CPU, percent}, cell{&h.Load1, hundredth}, cell{&h.MemUsed, size}, cell{&h.MemTotal, size},
		cell{&h.NetRx, rate}, cell{&h.NetTx, rate}, cell{&h.UptimeSec, seconds}, cell{&h.IOWait, percent}, cell{&h.Steal, percent}, cell{&h.GPUOpen, plain})
	for i := range s.GPUs {
		g := &s.GPUs[i]
		for j, v := range g.Cells() {
			all = append(all, cell{v, gpuKinds[j]})
		}
		for j := range g.Instances {
			in := &g.Instances[j]
			all = append(all, cell{&in.MemUsed, size}, cell{&in.MemTotal, size}, cell{&in.Util, percent})
		}
	}
	for i := range s.Processes {
		all = append(all, cell{&s.Processes[i].Mem, size})
	}
	for i := range h.Disks {
		d := &h.Disks[i]
		all = append(all, cell{&d.Used, size}, cell{&d.Total, size}, cell{&d.InodesUsed, percent})
	}
	return all
}
