package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"krig/internal/result"
)

// A claim is one comparison of two cells that differ in one axis.
type claim struct {
	axis     *axis
	context  string // the other axes' values, in words; "" when there are none
	where    string // the same for a sentence: "on ssd", "with 2 brokers"
	from, to *cellView
	diff     difference
	adjusted float64 // p corrected for the number of comparisons in the report; NaN where nothing was tested
	scaling  bool    // a step along a scaling axis, with a proportional gain to be held against
	withheld string  // why nothing is said: what was the limit; "" when something is
	at       string  // with which of the axis's values it was: "3 brokers"
	leftOut  int     // valid repeats that make no statement about scaling
}

// A line is the cells of one family that differ in one axis only, along it.
type line struct {
	context string
	where   string
	cells   []*cellView
}

// lines cuts a family along an axis.
func (f *family) lines(x *axis) []line {
	var out []line
	at := map[string]int{}
	for _, c := range f.cells {
		context := f.contextOf(c, x)
		i, ok := at[context]
		if !ok {
			i = len(out)
			at[context] = i
			out = append(out, line{context: context, where: f.phrase(c, x)})
		}
		out[i].cells = append(out[i].cells, c)
	}
	for _, l := range out {
		slices.SortStableFunc(l.cells, func(p, q *cellView) int {
			return slices.Index(x.values, x.of(p.plan)) - slices.Index(x.values, x.of(q.plan))
		})
	}
	return out
}

// contextOf is the values of the axes other than x.
func (f *family) contextOf(c *cellView, x *axis) string {
	var words []string
	for _, other := range f.axes {
		if other != x {
			words = append(words, other.words(other.of(c.plan)))
		}
	}
	return strings.Join(words, ", ")
}

// phrase is the cell's values on all axes but x, as a sentence has them: "with
// 3 brokers on ssd".
func (f *family) phrase(c *cellView, x *axis) string {
	var parts []string
	for _, other := range f.axes {
		if other != x {
			parts = append(parts, other.preposition()+" "+other.words(other.of(c.plan)))
		}
	}
	return strings.Join(parts, " ")
}

// claimsOf compares along every axis of a family.
func (a *analysis) claimsOf(f *family) []*claim {
	var out []*claim
	for _, x := range f.axes {
		lines := f.lines(x)
		for _, l := range lines {
			if x.kind == scaling && !a.measure.lesser {
				out = append(out, a.steps(x, l)...)
			} else {
				out = append(out, a.againstBest(x, l, lines)...)
			}
		}
	}
	return out
}

// steps compares each cell with the next along a scaling axis. Cells without
// a valid repeat are stepped over.
func (a *analysis) steps(x *axis, l line) []*claim {
	var out []*claim
	var from *cellView
	for _, to := range l.cells {
		if to.summary.N == 0 {
			continue
		}
		if from != nil {
			out = append(out, a.step(x, l, from, to))
		}
		from = to
	}
	return out
}

// step compares two cells for scaling, by the repeats that say something of it.
func (a *analysis) step(x *axis, l line, from, to *cellView) *claim {
	c := &claim{axis: x, context: l.context, where: l.where, from: from, to: to, scaling: true}
	var left []*cellView
	side := func(v *cellView) []float64 {
		all := samples(v.result, a.measure.name)
		some := samplesWithout(v.result, a.measure.name, result.LimitedByLabMachine)
		c.leftOut += len(all) - len(some)
		if len(some) == 0 {
			left = append(left, v)
		}
		return some
	}
	c.diff = ratioOf(side(from), side(to))
	switch {
	case len(left) > 0:
		c.withheld, c.at = "the lab machine itself was the limit", left[len(left)-1].axisWords(x)
	case slices.Contains(to.diag.marks, result.LimitedByGenerator):
		c.withheld, c.at = "the load generator itself was the limit", to.axisWords(x)
	}
	return c
}

func (v *cellView) axisWords(x *axis) string { return x.words(x.of(v.plan)) }

// againstBest compares the best of a line with each of the others. Of words
// (disk profiles, rigs) the best is the same on all lines, so that its ratios can be
// read beside each other; of numbers it is each line's own.
func (a *analysis) againstBest(x *axis, l line, all []line) []*claim {
	best := a.best(x, []line{l})
	if x.kind == categorical {
		best = a.best(x, all)
	}
	at := slices.IndexFunc(l.cells, func(c *cellView) bool { return x.of(c.plan) == best })
	if at < 0 || l.cells[at].summary.N == 0 {
		return nil
	}
	var out []*claim
	for _, other := range l.cells {
		if other == l.cells[at] || other.summary.N == 0 {
			continue
		}
		c := &claim{axis: x, context: l.context, where: l.where, from: other, to: l.cells[at]}
		c.diff = ratioOf(samples(other.result, a.measure.name), samples(c.to.result, a.measure.name))
		out = append(out, c)
	}
	return out
}

// best is the value with the best geometric mean over the lines that have it.
func (a *analysis) best(x *axis, lines []line) string {
	best, top := "", math.Inf(-1)
	for _, value := range x.values {
		sum, n := 0.0, 0.0
		for _, l := range lines {
			for _, c := range l.cells {
				if x.of(c.plan) == value && c.summary.Median != nil && *c.summary.Median > 0 {
					sum, n = sum+math.Log(*c.summary.Median), n+1
				}
			}
		}
		mean := sum / n
		if a.measure.lesser {
			mean = -mean
		}
		if n > 0 && mean > top {
			best, top = value, mean
		}
	}
	return best
}

// correct adjusts all claims for their number. What is withheld is none.
func correct(claims []*claim) {
	ps := make([]float64, len(claims))
	for i, c := range claims {
		ps[i] = c.diff.p
		if c.withheld != "" {
			ps[i] = math.NaN()
		}
	}
	for i, p := range holm(ps) {
		claims[i].adjusted = p
	}
}

// tested tells whether there are repeats enough to tell chance from effect.
func (c *claim) tested() bool { return !math.IsNaN(c.adjusted) }

// detected tells whether a difference was shown.
func (c *claim) detected() bool { return c.tested() && c.adjusted < alpha }

// efficiency is the gain over the proportional gain; NaN where there is none.
func (c *claim) efficiency() float64 { return c.ofProportional(c.diff.ratio) }

func (c *claim) ofProportional(ratio float64) float64 {
	proportional := c.axis.amount(c.axis.of(c.to.plan))/c.axis.amount(c.axis.of(c.from.plan)) - 1
	if !c.scaling || !finite(proportional) || proportional <= 0 {
		return math.NaN()
	}
	return (ratio - 1) / proportional
}

// summariseEfficiency puts scaling.efficiency into the summary of the larger cell.
func (c *claim) summariseEfficiency() {
	if _, done := c.to.result.Summary["scaling.efficiency"]; done || c.withheld != "" {
		return
	}
	v := known(c.efficiency())
	if v == nil {
		return
	}
	c.to.result.Summary["scaling.efficiency"] = result.Summary{
		Median: v, Mean: v, Low: known(c.ofProportional(c.diff.low)), High: known(c.ofProportional(c.diff.high)),
		N: min(c.diff.n1, c.diff.n2), Unit: result.Ratio,
		Method: fmt.Sprintf("gain over %s ÷ proportional gain; %s", c.from.result.ID, c.diff.method),
	}
}

// what names the comparison in a table.
func (c *claim) what() string {
	from, to := c.axis.of(c.from.plan), c.axis.of(c.to.plan)
	if c.scaling && len(c.axis.paths) == 1 {
		return fmt.Sprintf("%s → %s", show(from), c.axis.words(to))
	}
	if c.scaling {
		return fmt.Sprintf("%s → %s %s", show(from), show(to), c.axis.label)
	}
	return fmt.Sprintf("%s ÷ %s", c.axis.words(to), show(from))
}

// change is the comparison's figure in a table: a step's gain, else the ratio.
func (c *claim) change() string {
	switch {
	case c.withheld != "" || !finite(c.diff.ratio):
		return "—"
	case c.scaling:
		return signedPercent(c.diff.ratio - 1)
	}
	return multiple(c.diff.ratio)
}

// interval is the change's 95 % interval.
func (c *claim) interval() string {
	switch {
	case c.withheld != "" || !c.diff.hasInterval():
		return "—"
	case c.scaling:
		return fmt.Sprintf("%s … %s", signedPercent(c.diff.low-1), signedPercent(c.diff.high-1))
	}
	return fmt.Sprintf("%s … %s", figures(c.diff.low), multiple(c.diff.high))
}

// heldBack tells whether the lab machine held one side back, or both.
func (c *claim) heldBack() bool { return c.from.limitedByLab() || c.to.limitedByLab() }

// proportional is the efficiency in a table.
func (c *claim) proportional() string {
	if e := c.efficiency(); c.withheld == "" && finite(e) {
		return percent(e)
	}
	return "—"
}

// verdict is what the test says.
func (c *claim) verdict() string {
	switch {
	case c.withheld != "":
		return "no statement: " + c.withheld + " with " + c.at
	case c.diff.method == methodNotPair:
		return "not tested: single run"
	case !c.tested():
		return "not tested"
	case c.detected():
		return "difference detected"
	}
	return "no difference detected"
}
