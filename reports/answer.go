package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"krig/internal/result"
)

const (
	// inSentence is the number of comparisons up to which a sentence carries
	// their intervals itself; more stand in the table below it.
	inSentence = 3

	// manyContexts is where a sentence gives the range over contexts instead of each.
	manyContexts = 4
)

// answer is the plain sentences that the report begins with.
func (a *analysis) answer() []string {
	if !a.measured() {
		return []string{"There is no answer: no cell has a valid repeat.", a.leftOut()}
	}
	var out []string
	for _, f := range a.families {
		for _, x := range f.axes {
			out = append(out, a.axisSentence(x))
		}
	}
	out = append(out, a.heldBack(), a.single(), a.top(), a.limits(), a.leftOut())
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

func (a *analysis) measured() bool {
	return slices.ContainsFunc(a.cells, func(c *cellView) bool { return c.summary.N > 0 })
}

// axisSentence says what an axis did.
func (a *analysis) axisSentence(x *axis) string {
	var claims []*claim
	for _, c := range a.claims {
		if c.axis == x {
			claims = append(claims, c)
		}
	}
	switch {
	case len(claims) == 0:
		return ""
	case claims[0].scaling:
		return a.scalingSentence(claims)
	}
	return a.ratioSentence(claims)
}

// byContext groups claims by the other axes' values, in order.
func byContext(claims []*claim) [][]*claim {
	var out [][]*claim
	for _, c := range claims {
		if n := len(out); n > 0 && out[n-1][0].context == c.context {
			out[n-1] = append(out[n-1], c)
		} else {
			out = append(out, []*claim{c})
		}
	}
	return out
}

// scalingSentence says by how much each added host helped.
func (a *analysis) scalingSentence(claims []*claim) string {
	groups := byContext(claims)
	if !slices.ContainsFunc(claims, func(c *claim) bool { return c.withheld == "" }) {
		return a.withheldSentence(claims)
	}
	if len(groups) > manyContexts {
		return a.scalingRanges(claims, len(groups))
	}
	parts := make([]string, len(groups))
	for i, g := range groups {
		subject := a.measure.noun
		if i > 0 {
			subject = "it"
		}
		parts[i] = strings.TrimLeft(g[0].where+" "+a.stepsOf(g, subject, i == 0), " ")
	}
	return sentence(strings.Join(parts, "; "))
}

// withheldSentence is for an axis of which nothing can be said.
func (a *analysis) withheldSentence(claims []*claim) string {
	var causes []string
	at := map[string][]string{}
	for _, c := range claims {
		if at[c.withheld] == nil {
			causes = append(causes, c.withheld)
		}
		if !slices.Contains(at[c.withheld], c.at) {
			at[c.withheld] = append(at[c.withheld], c.at)
		}
	}
	for i, cause := range causes {
		causes[i] = cause + " with " + and(at[cause])
	}
	return fmt.Sprintf("No statement is made about scaling with %s: %s.", claims[0].axis.label, and(causes))
}

// stepsOf tells the steps of one line: "throughput rose by 96 % from 1 to 2
// brokers, then by 41 % from 2 to 3 brokers".
func (a *analysis) stepsOf(steps []*claim, subject string, first bool) string {
	text, before := "", ""
	for i, c := range steps {
		clause, verb := a.stepClause(c, first && i == 0), c.direction()
		switch {
		case verb == "" && i > 0:
			text += ", and "
		case verb == "":
		case i == 0 || before == "":
			clause = subject + " " + verb + " " + clause
		case verb != before:
			clause = verb + " " + clause
		}
		if i > 0 && verb != "" {
			text += ", then "
		}
		text, before = text+clause, verb
	}
	return text
}

// direction is the verb of a step; "" when none can be said.
func (c *claim) direction() string {
	switch {
	case c.withheld != "", c.tested() && !c.detected():
		return ""
	case c.diff.ratio < 1:
		return "fell"
	}
	return "rose"
}

// stepClause is one step without its verb; the first explains what its
// parenthesis is.
func (a *analysis) stepClause(c *claim, first bool) string {
	from, to := show(c.axis.of(c.from.plan)), c.axis.words(c.axis.of(c.to.plan))
	if len(c.axis.paths) > 1 {
		from = c.axis.words(c.axis.of(c.from.plan))
	}
	span := fmt.Sprintf("from %s to %s", from, to)
	switch {
	case c.withheld != "":
		return fmt.Sprintf("no statement is made %s (%s with %s)", span, c.withheld, c.at)
	case c.tested() && !c.detected():
		return fmt.Sprintf("no difference detected %s", span)
	}
	text := fmt.Sprintf("by %s %s", percent(math.Abs(c.diff.ratio-1)), span)
	if a.inline() && c.diff.hasInterval() {
		text += fmt.Sprintf(" [%s]", c.interval())
	}
	if c.efficiency() >= 0 {
		text += fmt.Sprintf(" (%s", percent(c.efficiency()))
		if first {
			text += " of proportional"
		}
		text += ")"
	}
	return text
}

// inline tells whether intervals stand in the sentence itself.
func (a *analysis) inline() bool { return len(a.claims) <= inSentence }

// scalingRanges gives the range of each step over many contexts.
func (a *analysis) scalingRanges(claims []*claim, contexts int) string {
	var order []string
	ratios := map[string][]float64{}
	for _, c := range claims {
		if c.withheld != "" || !finite(c.diff.ratio) {
			continue
		}
		key := c.what()
		if ratios[key] == nil {
			order = append(order, key)
		}
		ratios[key] = append(ratios[key], c.diff.ratio-1)
	}
	parts := make([]string, len(order))
	for i, key := range order {
		parts[i] = fmt.Sprintf("%s to %s (%s)", signedPercent(slices.Min(ratios[key])), signedPercent(slices.Max(ratios[key])), key)
	}
	return sentence(fmt.Sprintf("over %d settings of the other axes, %s changed by %s", contexts, a.measure.noun, strings.Join(parts, ", ")))
}

// ratioSentence says which value was better and by how much.
func (a *analysis) ratioSentence(claims []*claim) string {
	groups := byContext(claims)
	if len(groups) > manyContexts && claims[0].axis.kind == categorical {
		return a.ratioRanges(claims, len(groups))
	}
	if claims[0].axis.kind == categorical && len(claims[0].axis.values) == 2 {
		return a.pairSentence(claims)
	}
	parts := make([]string, len(groups))
	for i, g := range groups {
		parts[i] = a.bestClause(g)
	}
	return sentence(strings.Join(parts, "; "))
}

// pairSentence is for an axis of two words: "ssd gave 2.41 × the throughput of
// hdd with 1 broker, 2.38 × with 2 brokers".
func (a *analysis) pairSentence(claims []*claim) string {
	x := claims[0].axis
	better, worse := x.words(x.of(claims[0].to.plan)), x.words(x.of(claims[0].from.plan))
	parts := make([]string, len(claims))
	for i, c := range claims {
		figure := multiple(c.diff.ratio)
		if i == 0 {
			figure += " the " + a.measure.noun + " of " + worse
		}
		if a.inline() && c.diff.hasInterval() {
			figure += " [" + c.interval() + "]"
		}
		if c.tested() && !c.detected() {
			figure = "no difference detected to " + worse
		}
		parts[i] = strings.TrimSpace(figure + " " + c.where)
	}
	verb := " gave "
	if a.measure.lesser {
		verb = " had "
	}
	return sentence(better + verb + and(parts))
}

func (a *analysis) ratioRanges(claims []*claim, contexts int) string {
	x := claims[0].axis
	byWorse := map[string][]float64{}
	var order []string
	for _, c := range claims {
		worse := x.words(x.of(c.from.plan))
		if byWorse[worse] == nil {
			order = append(order, worse)
		}
		byWorse[worse] = append(byWorse[worse], c.diff.ratio)
	}
	parts := make([]string, len(order))
	for i, worse := range order {
		r := byWorse[worse]
		parts[i] = fmt.Sprintf("%s to %s that of %s", figures(slices.Min(r)), multiple(slices.Max(r)), worse)
	}
	better := x.words(x.of(claims[0].to.plan))
	return sentence(fmt.Sprintf("over %d settings of the other axes, the %s of %s was %s", contexts, a.measure.noun, better, and(parts)))
}

// bestClause names the best of several values, the least, and those that the
// test cannot tell from the best.
func (a *analysis) bestClause(g []*claim) string {
	x := g[0].axis
	worst := slices.MaxFunc(g, func(p, q *claim) int {
		if (p.diff.ratio > q.diff.ratio) != a.measure.lesser {
			return 1
		}
		return -1
	})
	if !slices.ContainsFunc(g, func(c *claim) bool { return !c.tested() || c.detected() }) {
		return strings.TrimLeft(fmt.Sprintf("%s no difference detected between %s of %s", g[0].where, count(len(g)+1, "value"), x.label), " ")
	}
	text := fmt.Sprintf("%s %s gave the best %s, %s", g[0].where, x.words(x.of(g[0].to.plan)), a.measure.noun, a.units.show(*g[0].to.summary.Median, a.measure.unit))
	text = strings.TrimLeft(text, " ")
	text += fmt.Sprintf(": %s that of %s", multiple(worst.diff.ratio), x.words(x.of(worst.from.plan)))
	if a.inline() && worst.diff.hasInterval() {
		text += " [" + worst.interval() + "]"
	}
	var same []string
	for _, c := range g {
		if c.tested() && !c.detected() {
			same = append(same, x.words(x.of(c.from.plan)))
		}
	}
	if len(same) > 0 {
		text += ", no difference detected to " + and(same)
	}
	return text
}

// heldBack warns of ratios that are the lab machine's own.
func (a *analysis) heldBack() string {
	ratios, held := 0, 0
	for _, c := range a.claims {
		if c.scaling {
			continue
		}
		ratios++
		if c.heldBack() {
			held++
		}
	}
	if held == 0 {
		return ""
	}
	return fmt.Sprintf("In %d of %s the lab machine itself held a side back: such a ratio says little of what was varied.", held, count(ratios, "ratio"))
}

// single says that figures without an interval are observations.
func (a *analysis) single() string {
	if len(a.claims) == 0 || !slices.ContainsFunc(a.claims, func(c *claim) bool { return c.diff.method == methodNotPair }) {
		return ""
	}
	for _, c := range a.claims {
		if c.tested() {
			return "Where a cell has a single valid repeat its differences are observed, not tested."
		}
	}
	return "Each cell has a single run, so these differences are observed, not tested."
}

// top names the best cell with its interval.
func (a *analysis) top() string {
	best := a.bestCell()
	text := fmt.Sprintf("%s was %s", a.measure.noun, a.withInterval(best.summary))
	if len(a.cells) > 1 {
		text = fmt.Sprintf("the highest %s was %s, %s", a.measure.noun, a.withInterval(best.summary), best.phrase)
		if a.measure.lesser {
			text = strings.Replace(text, "highest", "lowest", 1)
		}
	}
	return sentence(text)
}

func (a *analysis) bestCell() *cellView {
	var best *cellView
	for _, c := range a.cells {
		if c.summary.Median == nil {
			continue
		}
		if best == nil || (*c.summary.Median > *best.summary.Median) != a.measure.lesser {
			best = c
		}
	}
	return best
}

// withInterval is "88.2 MB/s [87.1 … 89.3, n = 3]".
func (a *analysis) withInterval(s result.Summary) string {
	sc := a.units.scaleFor(s.Unit, *s.Median)
	text := join(sc.number(*s.Median), sc.unit)
	if s.Low != nil && s.High != nil {
		return fmt.Sprintf("%s [%s … %s, n = %d]", text, sc.number(*s.Low), sc.number(*s.High), s.N)
	}
	return text + " [single run]"
}
