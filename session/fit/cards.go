package fit

import "math"

// Card is a kind of GPU with the memory that its driver reports.
type Card struct {
	Name  string
	Bytes float64
}

// mib is nvidia-smi's memory.total.
func mib(n float64) float64 { return n * (1 << 20) }

// Cards are those that are rented most, by memory.
var Cards = []Card{
	{"T4", mib(15360)}, {"A10", mib(23028)}, {"L4", mib(23034)}, {"RTX 4090", mib(24564)}, {"RTX 3090", mib(24576)}, {"RTX 5090", mib(32607)}, {"V100 32G", mib(32768)},
	{"A100 40G", mib(40960)}, {"L40S", mib(46068)}, {"RTX A6000", mib(49140)}, {"H100 80G", mib(81559)}, {"A100 80G", mib(81920)},
	{"H20", mib(97871)}, {"H200", mib(143771)}, {"B200", mib(183359)},
}

// Verdict of a number of cards.
type Verdict string

const (
	Enough Verdict = "enough"
	Tight  Verdict = "tight" // enough for the low end of the range
	Short  Verdict = "not enough"
	Open   Verdict = "?" // what is known fits, but a part is not known
)

// Choice is the fewest cards of a kind that are enough, or are tight where none is.
type Choice struct {
	Card
	Count   int
	Verdict Verdict
}

// Counts are how many cards one machine has.
var Counts = []int{1, 2, 4, 8}

// On judges so many cards: what is shared is divided, the rest is held by each. What
// cards hold to talk to each other is not counted.
func (n Need) On(c Card, count int) Verdict {
	low, high, margin := 0.0, 0.0, false
	for _, p := range n.Parts {
		by := 1.0
		if p.Shared {
			by = float64(count)
		}
		if p.Name == marginName {
			margin = true
			continue
		}
		low, high = low+p.Low/by, high+p.High/by
	}
	if margin {
		low, high = low*(1+marginLow), high*(1+marginHigh)
	}
	switch {
	case low > c.Bytes:
		return Short
	case n.AtLeast:
		return Open
	case high <= c.Bytes:
		return Enough
	}
	return Tight
}

// Choose gives for each kind of card the fewest that do, cheapest first in memory.
func (n Need) Choose(cards []Card) []Choice {
	var out []Choice
	for _, c := range cards {
		best := Choice{Card: c, Count: Counts[len(Counts)-1], Verdict: Short}
		rank := map[Verdict]int{Short: 0, Open: 1, Tight: 1, Enough: 2}
		for _, k := range Counts {
			if v := n.On(c, k); rank[v] > rank[best.Verdict] {
				best.Count, best.Verdict = k, v
			}
		}
		out = append(out, best)
	}
	return out
}

// GB is bytes as cards are sold: of 10⁹.
func GB(bytes float64) float64 { return math.Round(bytes/1e8) / 10 }
