package plan

import (
	"errors"
	"math"
	"math/big"
	"time"

	"rentop/session/billing"
)

// Spot is work that could run on a machine that may be taken away at any moment.
type Spot struct {
	OnDemand, Price billing.Amount // an hour of either
	Work            time.Duration  // that the work takes when nothing disturbs it
	Every           time.Duration  // mean time between two reclaims; 0: not known
	Save            time.Duration  // between two checkpoints; 0: only the end is kept
	SaveTakes       time.Duration  // a checkpoint
	Restart         time.Duration  // from a reclaim until it works again, billed or not: counted as billed
	Took            time.Duration  // what it took in all the last time; 0: to be estimated
}

// SpotAnswer compares. What depends on an unknown rate of reclaims is nil.
type SpotAnswer struct {
	OnDemand billing.Amount
	Best     billing.Amount // on spot without any reclaim: no less is possible

	Expected *billing.Amount // on spot
	Loss     *billing.Amount // the part of it that reclaims cost
	Took     *time.Duration  // expected
	Reclaims *float64        // expected
	SavedPct *big.Rat        // against on demand; below 0: spot is dearer
	// BreakEven is the mean time between reclaims below which spot is dearer; 0:
	// it never is, nil: spot is dearer without any reclaim.
	BreakEven *time.Duration
	// BestSave is the time between checkpoints that loses least (Young 1974); nil
	// where what it goes by is not known.
	BestSave *time.Duration
	// Hopeless says that the work can hardly end: it is taken away faster than it gets on.
	Hopeless bool
}

// hopeless is how many times its own length work may take before it is called that.
const hopeless = 1000

// Ask compares on demand with spot.
//
// Reclaims are taken to come at random with a constant rate (an exponential time
// between them). Work between two checkpoints is then done over until it succeeds:
// for a stretch C with a checkpoint that takes s, a mean time M between reclaims and
// a restart R, its expected time is (M + R)·(e^((C+s)/M) − 1), and that of n
// stretches n times as long (J. T. Daly, "A higher order estimate of the optimum
// checkpoint interval for restart dumps", 2006, equation 13).
func (s Spot) Ask() (SpotAnswer, error) {
	if s.Work <= 0 || s.Every < 0 || s.Save < 0 || s.SaveTakes < 0 || s.Restart < 0 || s.Took < 0 {
		return SpotAnswer{}, errors.New("the work must take more than no time, and no time may be below 0")
	}
	if s.OnDemand.Sign() < 0 || s.Price.Sign() < 0 {
		return SpotAnswer{}, errors.New("a price is 0 or more")
	}
	a := SpotAnswer{OnDemand: times(s.OnDemand, hours(s.Work))}
	undisturbed := s.Work + time.Duration(float64(s.SaveTakes)*s.stretches())
	a.Best = times(s.Price, hours(undisturbed))
	cheaper, err := a.Best.Cmp(a.OnDemand)
	if err != nil {
		return SpotAnswer{}, err
	}
	if cheaper < 0 {
		even := s.breakEven()
		a.BreakEven = &even
	}
	switch {
	case s.Took > 0:
		return a, a.took(s, s.Took)
	case s.Every == 0:
		return a, nil
	}
	total, reclaims := s.expected(s.Every)
	if total > hopeless*s.Work.Hours() {
		a.Hopeless = true
		return a, nil
	}
	a.Reclaims = &reclaims
	if s.SaveTakes > 0 {
		best := time.Duration(math.Sqrt(2 * float64(s.SaveTakes) * float64(s.Every)))
		a.BestSave = &best
	}
	return a, a.took(s, time.Duration(total*float64(time.Hour)).Round(time.Second))
}

func (a *SpotAnswer) took(s Spot, d time.Duration) error {
	cost := times(s.Price, hours(d))
	loss, err := cost.Sub(a.Best)
	if err != nil {
		return err
	}
	a.Took, a.Expected, a.Loss = &d, &cost, &loss
	a.SavedPct, err = Saved(a.OnDemand, cost)
	return err
}

// stretches is how many checkpoints the work has, the end not counted as one.
func (s Spot) stretches() float64 {
	if s.Save == 0 || s.Save >= s.Work {
		return 0
	}
	return math.Ceil(float64(s.Work)/float64(s.Save)) - 1
}

// expected is the time in hours, and how many reclaims, at a mean time between them.
func (s Spot) expected(every time.Duration) (total, reclaims float64) {
	m, r := every.Hours(), s.Restart.Hours()
	redo := func(stretch float64, n float64) {
		failures := n * math.Expm1(stretch/m)
		reclaims += failures
		total += (m + r) * failures
	}
	n := s.stretches()
	redo((s.Save + s.SaveTakes).Hours(), n)
	redo((s.Work - time.Duration(n)*s.Save).Hours(), 1)
	return total, reclaims
}

// breakEven finds the mean time between reclaims at which spot costs as much as on
// demand; 0 where a reclaim a minute is not enough.
func (s Spot) breakEven() time.Duration {
	if s.Price.Sign() == 0 {
		return 0
	}
	ratio, _ := new(big.Rat).Quo(value(s.OnDemand), value(s.Price)).Float64()
	may := s.Work.Hours() * ratio
	dearer := func(every time.Duration) bool { total, _ := s.expected(every); return total > may }
	low, high := time.Minute, 10*365*24*time.Hour
	if !dearer(low) {
		return 0
	}
	for high-low > time.Second {
		if mid := low + (high-low)/2; dearer(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high.Round(time.Minute)
}
