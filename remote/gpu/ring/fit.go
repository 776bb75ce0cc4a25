package ring

import "rentop/remote/gpu/sample"

// fit encodes a sample into at most n bytes: whole, or without what is least
// missed in a history.
func fit(s sample.Sample, n int) []byte {
	for level := 0; ; level++ {
		s = slimmer(s, level)
		b := new(sample.Encoder).Append(nil, s)
		if len(b) <= n {
			return b
		}
		if level > 4 {
			s.GPUs = s.GPUs[:len(s.GPUs)*3/4]
		}
	}
}

// slimmer leaves out a little more at each level: reasons and long command lines,
// then identities and what is not watched over time, then processes and names.
func slimmer(s sample.Sample, level int) sample.Sample {
	s.GPUs = append([]sample.GPU(nil), s.GPUs...)
	s.Processes = append([]sample.Process(nil), s.Processes...)
	switch level {
	case 0:
	case 1:
		for i := range s.GPUs {
			s.GPUs[i].PCIBus = ""
			for _, v := range s.GPUs[i].Cells() {
				if v.State == sample.NA {
					v.Why = ""
				}
			}
		}
		for i := range s.Processes {
			s.Processes[i].Command = short(s.Processes[i].Command)
		}
	case 2:
		for i := range s.GPUs {
			g := &s.GPUs[i]
			g.UUID, g.Instances = "", nil
			for _, v := range []*sample.Value{&g.ClockSMMax, &g.ClockMemMax, &g.ClockMem, &g.PCIeGenMax, &g.PCIeWidthMax, &g.PCIeGen, &g.PCIeWidth,
				&g.Encoder, &g.Decoder, &g.MemReserved, &g.ECCCorrected, &g.NVLinks, &g.RemappedRows} {
				*v = sample.Value{}
			}
		}
	case 3:
		s.Processes, s.Host.Disks = nil, nil
		s.Source, s.Driver = short(s.Source), short(s.Driver)
		if s.Problem != nil {
			s.Problem = &sample.Problem{What: short(s.Problem.What), Cure: short(s.Problem.Cure)}
		}
		for i := range s.GPUs {
			g := &s.GPUs[i]
			g.Name, g.MIG, g.PState = "", "", ""
			g.PCIeRx, g.PCIeTx, g.NVLinkRx, g.NVLinkTx, g.NVLinksDown, g.TempMargin, g.MemUtil, g.Fan = sample.Value{}, sample.Value{}, sample.Value{}, sample.Value{}, sample.Value{}, sample.Value{}, sample.Value{}, sample.Value{}
			if n := len(g.XIDs); n > 2 {
				g.XIDs = g.XIDs[n-2:]
			}
			g.Problem = short(g.Problem)
		}
	case 4:
		for i := range s.GPUs {
			old := s.GPUs[i]
			g := sample.NewGPU("")
			g.Index, g.ThrottleKnown, g.ThrottleHot, g.HiddenProcs = old.Index, old.ThrottleKnown, old.ThrottleHot, old.HiddenProcs
			g.Util, g.MemUsed, g.MemTotal, g.Power, g.Temp, g.ECCErrors = old.Util, old.MemUsed, old.MemTotal, old.Power, old.Temp, old.ECCErrors
			if g.XIDs = old.XIDs; len(g.XIDs) > 1 {
				g.XIDs = g.XIDs[len(g.XIDs)-1:]
			}
			if r := []rune(old.Problem); len(r) > 8 {
				old.Problem = string(r[:8]) + "…"
			}
			g.Problem = old.Problem
			s.GPUs[i] = g
		}
	}
	return s
}

func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40])
	}
	return s
}

// means gathers what a coarse record is the mean of.
type means struct {
	util, power []mean
	cpu         mean
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v sample.Value) {
	if x, ok := v.Get(); ok {
		m.sum, m.n = m.sum+x, m.n+1
	}
}

func (m mean) over(v sample.Value) sample.Value {
	if m.n == 0 {
		return v
	}
	return sample.Of(m.sum / float64(m.n))
}

func (m *means) add(s *sample.Sample) {
	for len(m.util) < len(s.GPUs) {
		m.util, m.power = append(m.util, mean{}), append(m.power, mean{})
	}
	for i := range s.GPUs {
		m.util[i].add(s.GPUs[i].Util)
		m.power[i].add(s.GPUs[i].Power)
	}
	m.cpu.add(s.Host.CPU)
}

// take gives the last sample with the means since the one before, and begins anew.
func (m *means) take(last sample.Sample) sample.Sample {
	last.GPUs = append([]sample.GPU(nil), last.GPUs...)
	for i := range last.GPUs {
		g := &last.GPUs[i]
		g.Util, g.Power = m.util[i].over(g.Util), m.power[i].over(g.Power)
	}
	last.Host.CPU = m.cpu.over(last.Host.CPU)
	*m = means{}
	return last
}
