package reports

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"krig/internal/result"
)

// near tells whether two figures agree to five digits.
func near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return math.Abs(a-b) <= 1e-5*math.Max(1, math.Abs(b))
}

func value(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

func TestSummarise(t *testing.T) {
	none := math.NaN()
	// t(0.975) is 12.7062 with 1 degree of freedom, 4.302653 with 2.
	tests := []struct {
		name                    string
		values                  []float64
		median, mean, low, high float64
		method                  string
	}{
		{"nothing", nil, none, none, none, none, methodNone},
		{"one", []float64{7}, 7, 7, none, none, methodSingle},
		// logs 0 and 2: mean 1, standard error 1, so exp(1 ± 12.7062)
		{"two", []float64{1, math.Exp(2)}, (1 + math.Exp(2)) / 2, (1 + math.Exp(2)) / 2, math.Exp(1 - 12.70620474), math.Exp(1 + 12.70620474), methodLogT},
		// logs 0, ln 2, 2 ln 2: mean ln 2, standard error ln 2 / √3
		{"three", []float64{4, 1, 2}, 2, 7.0 / 3, 2 * math.Exp(-4.30265273*math.Ln2/math.Sqrt(3)), 2 * math.Exp(4.30265273*math.Ln2/math.Sqrt(3)), methodLogT},
		{"zeros", []float64{0, 0, 0}, 0, 0, 0, 0, methodPlainT},
		// 0 and 2: mean 1, standard error 1
		{"a zero", []float64{0, 2}, 1, 1, 1 - 12.70620474, 1 + 12.70620474, methodPlainT},
		// the interval of a median of six is from the first to the last
		{"six", []float64{6, 1, 5, 2, 4, 3}, 3.5, 3.5, 1, 6, methodOrder},
		// of nine from the second to the eighth
		{"nine", []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, 5, 5, 2, 8, methodOrder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			given := slices.Clone(tt.values)
			s := summarise(tt.values, result.Seconds)
			if !near(value(s.Median), tt.median) || !near(value(s.Mean), tt.mean) || !near(value(s.Low), tt.low) || !near(value(s.High), tt.high) {
				t.Errorf("median %v mean %v [%v, %v], want %v %v [%v, %v]", value(s.Median), value(s.Mean), value(s.Low), value(s.High), tt.median, tt.mean, tt.low, tt.high)
			}
			if s.N != len(tt.values) || s.Method != tt.method || s.Unit != result.Seconds {
				t.Errorf("n %d, method %q, unit %q", s.N, s.Method, s.Unit)
			}
			if !slices.Equal(tt.values, given) {
				t.Errorf("the values were changed: %v", tt.values)
			}
			if _, err := json.Marshal(s); err != nil {
				t.Errorf("not fit for JSON: %v", err)
			}
		})
	}
}

// exps are e to the powers, so that logarithms can be done by hand.
func exps(powers ...float64) []float64 {
	out := make([]float64, len(powers))
	for i, p := range powers {
		out[i] = math.Exp(p)
	}
	return out
}

func TestRatioOf(t *testing.T) {
	none := math.NaN()
	tests := []struct {
		name         string
		from, to     []float64
		log          float64 // of the ratio
		low, high, p float64
		method       string
	}{
		{"single runs", exps(1), exps(3), 2, none, none, none, methodNotPair},
		{"one side single", exps(1, 1.1), exps(3), 1.95, none, none, none, methodNotPair},
		{"no values", nil, exps(3), none, none, none, none, methodNone},
		{"not above zero", []float64{0, 1}, exps(3, 4), none, none, none, none, methodNone},
		{"all alike", exps(1, 1), exps(2, 2), 1, none, none, none, methodNotTested},
		// variances 2 and 2, standard error √2, 2 degrees of freedom, t = 10/√2;
		// p = 1 - t/√(t²+2) and the margin is 4.302653 √2
		{"welch", exps(0, 2), exps(10, 12), 10, 10 - 4.30265273*math.Sqrt2, 10 + 4.30265273*math.Sqrt2, 1 - math.Sqrt(50.0/52), methodWelch},
		// 6 against 6 without overlap: p = 2 of 924; the sixth difference from each end
		{"ranks", exps(0, 1, 2, 3, 4, 5), exps(10, 11, 12, 13, 14, 15), 10, 7, 13, 2.0 / 924, methodRank},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := ratioOf(tt.from, tt.to)
			if !near(math.Log(d.ratio), tt.log) || !near(math.Log(d.low), tt.low) || !near(math.Log(d.high), tt.high) || !near(d.p, tt.p) || d.method != tt.method {
				t.Errorf("log ratio %v [%v, %v], p %v, %q; want %v [%v, %v], p %v, %q",
					math.Log(d.ratio), math.Log(d.low), math.Log(d.high), d.p, d.method, tt.log, tt.low, tt.high, tt.p, tt.method)
			}
		})
	}
}

func TestHolm(t *testing.T) {
	none := math.NaN()
	tests := []struct{ ps, want []float64 }{
		{nil, nil},
		{[]float64{0.04}, []float64{0.04}},
		{[]float64{0.01, 0.04, 0.03}, []float64{0.03, 0.06, 0.06}},
		{[]float64{0.03, none, 0.01}, []float64{0.03, none, 0.02}},
		{[]float64{0.9, 0.8}, []float64{1, 1}},
	}
	for _, tt := range tests {
		if got := holm(tt.ps); !slices.EqualFunc(got, tt.want, near) {
			t.Errorf("holm(%v) = %v, want %v", tt.ps, got, tt.want)
		}
	}
}
