package reports

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

// A headline is the measure that answers the experiment's question.
type headline struct {
	name   string
	noun   string // in a sentence: "throughput"
	unit   string
	lesser bool // lower is better
}

// cellView is one cell with what reports compute of it.
type cellView struct {
	plan    *experiment.Cell
	result  *result.Cell
	name    string // for people: "3 brokers, ssd"
	phrase  string // in a sentence: "with 3 brokers on ssd"; "" without axes
	anchor  string // in the page
	values  []string
	diag    diagnosis
	summary result.Summary // of the headline measure
}

// An analysis is everything that text and page say of a run.
type analysis struct {
	run      *rundir.Run
	result   *result.Run
	plan     *experiment.Plan
	rigs     []rigState
	units    units
	measure  headline
	cells    []*cellView // in the plan's order
	families []*family
	claims   []*claim
}

// analyse computes it from the gathered repeats and the other stages' values.
func analyse(run *rundir.Run, r *result.Run) (*analysis, error) {
	plan, err := readPlan(run)
	if err != nil {
		return nil, err
	}
	rigs, err := readRigs(run)
	if err != nil {
		return nil, err
	}
	a := &analysis{run: run, result: r, plan: plan, rigs: rigs}
	a.units.binary = allPerftest(plan)
	a.measure = chooseHeadline(plan, r)
	a.view()
	a.families = families(a.cells)
	a.nameCells()
	for _, f := range a.families {
		a.claims = append(a.claims, a.claimsOf(f)...)
	}
	correct(a.claims)
	return a, nil
}

// allPerftest tells whether all load came from Kafka's own tools, which count
// in MiB; krig then does too.
func allPerftest(plan *experiment.Plan) bool {
	for _, c := range plan.Cells {
		if c.Bench.Driver != "perftest" {
			return false
		}
	}
	return len(plan.Cells) > 0
}

// view pairs the plan's cells with the result's.
func (a *analysis) view() {
	for i := range a.result.Cells {
		c := &a.result.Cells[i]
		at := slices.IndexFunc(a.plan.Cells, func(p *experiment.Cell) bool { return p.ID == c.ID })
		if at < 0 {
			continue // the result of another plan's cell has nothing to stand beside
		}
		v := &cellView{plan: a.plan.Cells[at], result: c, diag: diagnose(c, a.rigs)}
		v.summary = summarise(samples(c, a.measure.name), a.measure.unit)
		v.anchor = "cell-" + strconv.Itoa(i+1)
		a.cells = append(a.cells, v)
	}
}

// nameCells names each cell by what its family varies.
func (a *analysis) nameCells() {
	for _, f := range a.families {
		for _, c := range f.cells {
			var words []string
			for _, x := range f.axes {
				v := x.of(c.plan)
				c.values = append(c.values, v)
				words = append(words, x.words(v))
			}
			if len(a.families) > 1 {
				words = append(words, f.fixed()...)
			}
			c.name, c.phrase = strings.Join(words, ", "), f.phrase(c, nil)
			if c.name == "" {
				c.name = a.plan.Name
			}
		}
	}
}

// chooseHeadline takes the throughput, of what was produced if anything was.
// Where every cell has a fixed rate, throughput was asked and not found out:
// then it is the latency.
func chooseHeadline(plan *experiment.Plan, r *result.Run) headline {
	choices := []headline{
		{"produce.throughput", "throughput", result.BytesPerSecond, false},
		{"consume.throughput", "consume throughput", result.BytesPerSecond, false},
		{"produce.rate", "rate", result.RecordsPerSecond, false},
		{"consume.rate", "consume rate", result.RecordsPerSecond, false},
	}
	if allFixed(plan) {
		latency := headline{"produce.latency.p99", "p99 latency", result.Seconds, true}
		choices = slices.Insert(choices, 0, latency)
	}
	for _, h := range choices {
		for i := range r.Cells {
			if len(samples(&r.Cells[i], h.name)) > 0 {
				return h
			}
		}
	}
	return choices[0]
}

func allFixed(plan *experiment.Plan) bool {
	for _, c := range plan.Cells {
		if c.Bench.Rate.Max || c.Bench.Rate.Value == 0 {
			return false
		}
	}
	return len(plan.Cells) > 0
}

// samples are a measure's values in the valid repeats that know it.
func samples(c *result.Cell, name string) []float64 {
	return samplesWithout(c, name, "")
}

// samplesWithout leaves out the repeats that carry the mark.
func samplesWithout(c *result.Cell, name, mark string) []float64 {
	var out []float64
	for _, rep := range valid(c) {
		if mark != "" && slices.Contains(rep.Marks, mark) {
			continue
		}
		if v, ok := rep.Measures.Get(name); ok && !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// summariseCells fills in the summaries of every measure that a valid repeat
// has, the shares of limits, and what was at its limit.
func (a *analysis) summariseCells() {
	for _, c := range a.cells {
		c.result.Summary = summaries(c.result)
		a.shareSummaries(c)
		c.result.Limit = c.diag.sentence(a.units)
		if len(valid(c.result)) == 0 {
			c.result.Limit = "not determined: no valid repeat"
		}
	}
	for _, cl := range a.claims {
		cl.summariseEfficiency()
	}
}

// summaries are of all measures that any valid repeat knows.
func summaries(c *result.Cell) map[string]result.Summary {
	out := map[string]result.Summary{}
	for _, rep := range valid(c) {
		for name, m := range rep.Measures {
			if _, done := out[name]; !done && m.Value != nil {
				out[name] = summarise(samples(c, name), m.Unit)
			}
		}
	}
	return out
}

// shareSummaries adds share.disk and share.network, the largest of any host,
// where the repeats do not carry them themselves.
func (a *analysis) shareSummaries(c *cellView) {
	for name, kinds := range map[string][]resource{"share.disk": {diskWrite, diskRead}, "share.network": {netIn, netOut}} {
		if _, done := c.result.Summary[name]; done {
			continue
		}
		var values []float64
		for _, rep := range valid(c.result) {
			if part, ok := repeatLargest(rep, findRig(a.rigs, rep.Rig, rep.RigState), kinds); ok {
				values = append(values, part)
			}
		}
		if len(values) > 0 {
			c.result.Summary[name] = summarise(values, result.Ratio)
		}
	}
}

func repeatLargest(rep *result.Repeat, state *rigState, kinds []resource) (float64, bool) {
	top, ok := 0.0, false
	for _, s := range repeatShares(rep, state, map[resource]bool{}) {
		if slices.Contains(kinds, s.what) {
			top, ok = max(top, s.part()), true
		}
	}
	return top, ok
}
