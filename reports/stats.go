package reports

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"

	"krig/internal/result"
)

const (
	confidence = 0.95
	alpha      = 1 - confidence

	// manyRepeats is where order statistics begin to give finite 95 % intervals of a median.
	manyRepeats = 6
)

// How an interval was made. The words stand in result.json and in footnotes.
const (
	methodNone      = "none: no valid repeat"
	methodSingle    = "none: one repeat has no interval"
	methodLogT      = "Student's t on logarithms"
	methodPlainT    = "Student's t (not on logarithms: a value is not above 0)"
	methodOrder     = "order statistics"
	methodWelch     = "Welch's t on logarithms"
	methodRank      = "Mann-Whitney rank test, Hodges-Lehmann estimate"
	methodNotTested = "none: not tested, the repeats do not differ among themselves"
	methodNotPair   = "none: both sides need two repeats or more"
)

// summarise is what the values of valid repeats come to.
func summarise(values []float64, unit string) result.Summary {
	s := result.Summary{N: len(values), Unit: unit, Method: methodNone}
	if len(values) == 0 {
		return s
	}
	s.Median, s.Mean = known(median(values)), known(stats.Mean(values))
	low, high, method := interval(values)
	s.Method = method
	if finite(low) && finite(high) {
		s.Low, s.High = &low, &high
	}
	return s
}

// interval is the 95 % interval of a sample; NaN where it has none.
func interval(values []float64) (low, high float64, method string) {
	switch {
	case len(values) < 2:
		return math.NaN(), math.NaN(), methodSingle
	case len(values) >= manyRepeats:
		sum := benchmath.AssumeNothing.Summary(sample(values), confidence)
		return sum.Lo, sum.Hi, methodOrder
	case slices.Min(values) <= 0:
		sum := benchmath.AssumeNormal.Summary(sample(values), confidence)
		return sum.Lo, sum.Hi, methodPlainT
	}
	sum := benchmath.AssumeNormal.Summary(sample(logs(values)), confidence)
	return math.Exp(sum.Lo), math.Exp(sum.Hi), methodLogT
}

// sample copies the values, since benchmath sorts what it is given.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func known(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// A difference is what one sample is to another, as a ratio.
type difference struct {
	ratio     float64 // of the second to the first
	low, high float64 // its 95 % interval; NaN where it has none
	p         float64 // of no difference at all; NaN where nothing could be tested
	n1, n2    int
	method    string
}

func (d difference) hasInterval() bool { return finite(d.low) && finite(d.high) }

// ratioOf compares two samples of positive values.
func ratioOf(from, to []float64) difference {
	d := difference{n1: len(from), n2: len(to), low: math.NaN(), high: math.NaN(), p: math.NaN(), ratio: math.NaN()}
	if len(from) == 0 || len(to) == 0 || slices.Min(from) <= 0 || slices.Min(to) <= 0 {
		d.method = methodNone
		return d
	}
	a, b := logs(from), logs(to)
	d.ratio = math.Exp(stats.Mean(b) - stats.Mean(a))
	switch {
	case len(a) < 2 || len(b) < 2:
		d.method = methodNotPair
	case len(a) >= manyRepeats && len(b) >= manyRepeats:
		d.rank(a, b)
	default:
		d.welch(a, b)
	}
	return d
}

// welch fills in Welch's test of the difference of two means of logarithms.
func (d *difference) welch(a, b []float64) {
	test, err := stats.TwoSampleWelchTTest(stats.Sample{Xs: b}, stats.Sample{Xs: a}, stats.LocationDiffers)
	if err != nil {
		d.method = methodNotTested
		return
	}
	diff := stats.Mean(b) - stats.Mean(a)
	margin := stats.InvCDF(stats.TDist{V: test.DoF})(1-alpha/2) * standardError(a, b)
	d.low, d.high = math.Exp(diff-margin), math.Exp(diff+margin)
	d.p, d.method = max(0, test.P), methodWelch // the distribution's tail may round below 0
}

func standardError(a, b []float64) float64 {
	return math.Sqrt(stats.Variance(a)/float64(len(a)) + stats.Variance(b)/float64(len(b)))
}

// rank fills in the rank test, with the median of all pairwise differences as
// the estimate and the interval of those differences that the same test gives.
func (d *difference) rank(a, b []float64) {
	pairs := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			pairs = append(pairs, y-x)
		}
	}
	slices.Sort(pairs)
	d.ratio = math.Exp(median(pairs))
	d.p = benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
	d.method = methodRank
	if k := rankMargin(len(a), len(b)); k > 0 {
		d.low, d.high = math.Exp(pairs[k-1]), math.Exp(pairs[len(pairs)-k])
	}
}

// rankMargin is the largest k for which the k-th smallest and k-th largest of
// all pairwise differences enclose the true one with the wanted confidence; 0
// when there is none.
func rankMargin(n1, n2 int) int {
	dist := stats.UDist{N1: n1, N2: n2}
	k := 0
	for k < n1*n2/2 && dist.CDF(float64(k)) <= alpha/2 {
		k++
	}
	return k
}

// holm corrects the p-values of one report's comparisons for their number. A
// NaN is no comparison and stays.
func holm(ps []float64) []float64 {
	order := make([]int, 0, len(ps))
	for i, p := range ps {
		if !math.IsNaN(p) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	out := slices.Clone(ps)
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, ps[i]*float64(len(order)-rank)))
		out[i] = worst
	}
	return out
}
