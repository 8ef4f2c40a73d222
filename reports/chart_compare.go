package reports

import (
	"html/template"
	"strings"

	"gonum.org/v1/plot/vg"

	"krig/internal/result"
)

const (
	rowHeight  vg.Length = 24
	nameWidth  vg.Length = 150 // the most that names of cells may take
	valueWidth vg.Length = 74
)

// A bar is one cell in a picture that compares all.
type bar struct {
	name    string
	summary result.Summary
	values  []float64 // of valid repeats
	invalid []float64 // of those that do not count
	ink     ink
}

// bars are all cells for one measure, coloured by their last word axis.
func (a *analysis) bars(measure, unit string) []bar {
	var out []bar
	for _, f := range a.families {
		for _, v := range f.cells {
			b := bar{name: v.name, ink: f.inkOf(v)}
			b.values = samples(v.result, measure)
			b.summary = summarise(b.values, unit)
			for _, try := range attempts(v.result) {
				if x, ok := try.Measures.Get(measure); ok && (try.Status == result.Invalid || try.earlier) {
					b.invalid = append(b.invalid, x)
				}
			}
			out = append(out, b)
		}
	}
	return out
}

// inkOf is the ink of a cell wherever all cells stand together: that of its
// value on the family's last axis of words, as lines along the other axis have it.
func (f *family) inkOf(v *cellView) ink {
	for i := len(f.axes) - 1; i >= 0; i-- {
		if f.axes[i].kind != categorical {
			continue
		}
		for n, value := range f.axes[i].values {
			if value == v.values[i] {
				colour, _ := seriesInk(n)
				return colour
			}
		}
	}
	return inkSeries0
}

// top is the largest value of all bars, and how a scale shows it.
func (a *analysis) topOf(bars []bar, unit string) (float64, scale) {
	top := 0.0
	for _, b := range bars {
		for _, v := range append(append([]float64{}, b.values...), b.invalid...) {
			top = max(top, v)
		}
		if b.summary.High != nil {
			top = max(top, min(*b.summary.High, 1.5**b.summary.Median))
		}
	}
	return top, a.units.scaleFor(unit, top)
}

// rows sets up a chart with one row a bar, and draws names and grid.
func (a *analysis) rows(bars []bar, top float64, sc scale) *chart {
	c := newChart(smallWidth, 34+rowHeight*vg.Length(len(bars)))
	longest := vg.Length(30)
	for _, b := range bars {
		longest = max(longest, textWidthOf(b.name)+12)
	}
	c.margins(min(longest, nameWidth), valueWidth, 6, 28)
	ticks := ticksTo(top, sc, 4)
	c.x = span{low: 0, high: ticks[len(ticks)-1]}
	for i, v := range ticks {
		line := inkGrid
		if i == 0 {
			line = inkAxis
		}
		c.stroke(line, 0.8, nil, vg.Point{X: c.px(v), Y: c.bottom}, vg.Point{X: c.px(v), Y: c.h - c.top})
		name := tickText(v / sc.factor)
		if i == len(ticks)-1 {
			name = join(name, sc.unit)
		}
		c.label(inkMuted, vg.Point{X: c.px(v), Y: c.bottom - 11}, centred, name)
	}
	for i, b := range bars {
		c.label(inkText, vg.Point{X: c.left - 8, Y: c.row(i)}, leftOf, shorten(b.name, nameWidth-12))
	}
	return c
}

// row is the middle of the n-th row.
func (c *chart) row(n int) vg.Length {
	return c.h - c.top - rowHeight*(vg.Length(n)+0.5)
}

// compareChart draws a bar for each cell, with its interval and its value.
func (a *analysis) compareChart(id, measure, noun, unit string) template.HTML {
	bars := a.bars(measure, unit)
	top, sc := a.topOf(bars, unit)
	c := a.rows(bars, top, sc)
	var words []string
	for i, b := range bars {
		y := c.row(i)
		if b.summary.Median == nil {
			c.label(inkBad, vg.Point{X: c.left + 6, Y: y}, rightOf, "no valid repeat")
			continue
		}
		m := *b.summary.Median
		c.fill(b.ink, c.left, y-6.5, c.px(m), y+6.5)
		c.span(inkText, y, b.summary)
		c.label(inkText, vg.Point{X: c.w - 4, Y: y}, leftOf, join(sc.number(m), sc.unit))
		words = append(words, b.name+": "+a.withInterval(b.summary))
	}
	return c.finish(id, noun+" of each cell", strings.Join(words, "; ")+".")
}

// span draws an interval along a row.
func (c *chart) span(i ink, y vg.Length, s result.Summary) {
	if s.Low == nil || s.High == nil {
		return
	}
	low, high := max(c.px(*s.Low), c.left), min(c.px(*s.High), c.w-c.right)
	c.stroke(i, 1.2, nil, vg.Point{X: low, Y: y}, vg.Point{X: high, Y: y})
	for _, x := range []vg.Length{low, high} {
		c.stroke(i, 1.2, nil, vg.Point{X: x, Y: y - 3}, vg.Point{X: x, Y: y + 3})
	}
}
