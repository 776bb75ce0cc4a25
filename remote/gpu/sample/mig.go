package sample

// What can be known of the use of a card that is split by MIG.

// emptyPart is the most that an empty MIG instance holds: 26 MiB of 40 GB were
// recorded, and every CUDA context takes some 250 MiB.
func emptyPart(total float64) float64 { return max(64<<20, total/1000) }

// PartsHold is what the most used MIG instance of a split card holds, and whether
// that is nothing. The driver does not tell what an instance does; but where none
// holds memory no program has a context, and without one nothing computes. known is
// false where the card is not split or an instance's memory is not told.
func (g *GPU) PartsHold() (bytes float64, empty, known bool) {
	if g.MIG != "Enabled" || len(g.Instances) == 0 {
		return 0, false, false
	}
	empty = g.HiddenProcs == 0
	for _, in := range g.Instances {
		used, ok := in.MemUsed.Get()
		total, sized := in.MemTotal.Get()
		if !ok || !sized {
			return 0, false, false
		}
		bytes = max(bytes, used)
		empty = empty && used <= emptyPart(total)
	}
	return bytes, empty, true
}

// Rests says whether the GPU is used less than below, in percent; known is false
// where that cannot be told.
func (g *GPU) Rests(below float64) (rests, known bool) {
	if u, ok := g.Util.Get(); ok {
		return u < below, true
	}
	_, empty, known := g.PartsHold()
	return empty, known && g.Problem == ""
}
