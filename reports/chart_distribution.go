package reports

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// distributionChart draws every repeat of each cell as its distance from the
// cell's median, so that cells of any size can be read beside each other: a dot for
// a valid repeat, a cross for an invalid one, the interval as a line.
func (a *analysis) distributionChart(id, measure, noun, unit string) template.HTML {
	bars := a.bars(measure, unit)
	reach := widest(bars)
	c := a.rowsAround(bars, reach)
	var words []string
	for i, b := range bars {
		if b.summary.Median == nil {
			continue
		}
		y, m := c.row(i), *b.summary.Median
		if b.summary.Low != nil {
			low, high := max(c.px(*b.summary.Low/m-1), c.left), min(c.px(*b.summary.High/m-1), c.w-c.right)
			c.fill(inkBand, low, y-7, high, y+7)
		}
		for _, v := range b.invalid {
			if at := v/m - 1; math.Abs(at) <= reach {
				c.cross(inkBad, vg.Point{X: c.px(at), Y: y}, 3.5)
			}
		}
		for _, v := range b.values {
			c.dot(b.ink, vg.Point{X: c.px(v/m - 1), Y: y}, 3.2)
		}
		c.label(inkMuted, vg.Point{X: c.w - 4, Y: y}, leftOf, fmt.Sprintf("n = %d", b.summary.N))
		words = append(words, fmt.Sprintf("%s: %s to %s of its median over %d repeats", b.name, signed(slices.Min(b.values)/m-1), signed(slices.Max(b.values)/m-1), b.summary.N))
	}
	return c.finish(id, "How much the repeats of each cell differ in "+noun, strings.Join(words, "; ")+".")
}

// widest is how far any valid repeat, and any interval that is not absurdly
// wide, lies from its cell's median.
func widest(bars []bar) float64 {
	reach := 0.01
	for _, b := range bars {
		if b.summary.Median == nil {
			continue
		}
		for _, v := range b.values {
			reach = max(reach, math.Abs(v / *b.summary.Median - 1))
		}
		if b.summary.Low != nil {
			reach = max(reach, min(0.5, math.Abs(*b.summary.High / *b.summary.Median - 1)), min(0.5, 1 - *b.summary.Low / *b.summary.Median))
		}
	}
	return reach
}

// rowsAround is a chart with rows whose scale has 0 in its middle.
func (a *analysis) rowsAround(bars []bar, reach float64) *chart {
	c := newChart(smallWidth, 34+rowHeight*vg.Length(len(bars)))
	longest := vg.Length(30)
	for _, b := range bars {
		longest = max(longest, textWidthOf(b.name)+12)
	}
	c.margins(min(longest, nameWidth), 56, 6, 28)
	step := roundStep(reach / 2)
	edge := step * math.Ceil(reach/step*0.9999)
	c.x = span{low: -edge * 1.04, high: edge * 1.04}
	for n := -int(math.Round(edge / step)); n <= int(math.Round(edge/step)); n++ {
		v, line := float64(n)*step, inkGrid
		if n == 0 {
			line = inkAxis
		}
		c.stroke(line, 0.8, nil, vg.Point{X: c.px(v), Y: c.bottom}, vg.Point{X: c.px(v), Y: c.h - c.top})
		name := signed(roundTo(v*100, step*100) / 100)
		if n == 0 {
			name = "median"
		}
		c.label(inkMuted, vg.Point{X: c.px(v), Y: c.bottom - 11}, centred, name)
	}
	for i, b := range bars {
		c.label(inkText, vg.Point{X: c.left - 8, Y: c.row(i)}, leftOf, shorten(b.name, nameWidth-12))
	}
	return c
}

// signed is a small change with one digit where it needs one.
func signed(change float64) string {
	p := math.Round(change*1000) / 10
	if p == math.Trunc(p) {
		return fmt.Sprintf("%+.0f %%", p)
	}
	return fmt.Sprintf("%+.1f %%", p)
}
