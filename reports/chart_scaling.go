package reports

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"krig/internal/result"
)

// Size of the pictures that stand side by side, in their own units.
const (
	smallWidth  vg.Length = 460
	smallHeight vg.Length = 290
)

// sortBy sorts indices by a key, stably.
func sortBy(order []int, key func(int) float64) {
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case key(i) < key(j):
			return -1
		case key(i) > key(j):
			return 1
		}
		return 0
	})
}

// scalingChart draws the headline along a numeric axis, one line for each
// setting of the other axes: every valid repeat as a faint dot, the median as a full
// one, its interval as a whisker. Along a scaling axis a dotted line shows what
// would be in proportion to the first point.
func (a *analysis) scalingChart(id string, f *family, x *axis) template.HTML {
	c := newChart(smallWidth, smallHeight)
	lines := f.lines(x)
	sc := a.scaleOf(a.measure.name, a.measure.unit)
	c.scalingScales(a, x, lines, sc)
	var ends []vg.Length
	for i, l := range lines {
		ends = append(ends, c.scalingLine(a, x, l, i))
	}
	c.endLabels(lines, ends)
	title := fmt.Sprintf("%s by %s", a.measure.noun, x.label)
	return c.finish(id, title, a.scalingWords(x, lines))
}

// scalingScales sets both scales and draws the axes.
func (c *chart) scalingScales(a *analysis, x *axis, lines []line, sc scale) {
	longest := vg.Length(0)
	for _, l := range lines {
		longest = max(longest, textWidthOf(l.context))
	}
	c.margins(58, 14+min(longest, 130), 14, 36)
	c.x = span{low: x.place(x.values[0]), high: x.place(x.values[len(x.values)-1])}
	pad := (c.x.high - c.x.low) * 0.06
	c.x.low, c.x.high = c.x.low-pad, c.x.high+pad
	ticks := ticksTo(a.highest(lines), sc, 5)
	c.y = span{low: 0, high: ticks[len(ticks)-1]}
	c.yAxis(ticks, sc)
	var at []float64
	names := map[float64]string{}
	for _, v := range x.values {
		at = append(at, x.place(v))
		names[x.place(v)] = show(v)
	}
	c.xTicks(at, func(v float64) string { return names[v] })
	c.label(inkMuted, vg.Point{X: (c.left + c.w - c.right) / 2, Y: 7}, centred, x.label)
}

// place is where a value stands along the axis: a count by its size, so that
// what is in proportion is a straight line; anything else by its rank.
func (x *axis) place(value string) float64 {
	if x.kind == scaling && len(x.paths) == 1 {
		return x.amount(value)
	}
	return float64(slices.Index(x.values, value))
}

// highest is the largest value that the picture must hold.
func (a *analysis) highest(lines []line) float64 {
	top := 0.0
	for _, l := range lines {
		for _, v := range l.cells {
			for _, s := range samples(v.result, a.measure.name) {
				top = max(top, s)
			}
			if v.summary.High != nil && v.summary.Median != nil {
				top = max(top, min(*v.summary.High, 1.5**v.summary.Median))
			}
		}
	}
	return top
}

// scalingLine draws one line, and returns where it ends.
func (c *chart) scalingLine(a *analysis, x *axis, l line, n int) vg.Length {
	i, dashes := seriesInk(n)
	var pts []vg.Point
	var hollow []bool
	for _, v := range l.cells {
		if v.summary.Median == nil {
			continue
		}
		px := c.px(x.place(x.of(v.plan)))
		pts = append(pts, vg.Point{X: px, Y: c.py(*v.summary.Median)})
		hollow = append(hollow, v.limitedByLab())
		for _, s := range samples(v.result, a.measure.name) {
			c.dot(i, vg.Point{X: px + 6, Y: c.py(s)}, 1.3)
		}
		c.whisker(i, px, v.summary)
	}
	if len(pts) == 0 {
		return c.bottom
	}
	c.proportional(a, x, l, i)
	c.stroke(i, 2, dashes, pts...)
	for k, p := range pts {
		if hollow[k] {
			c.ring(i, p, 3.4)
		} else {
			c.dot(i, p, 3.4)
		}
	}
	return pts[len(pts)-1].Y
}

// limitedByLab tells whether the lab machine held any of the valid repeats back.
func (v *cellView) limitedByLab() bool {
	return slices.Contains(v.diag.marks, result.LimitedByLabMachine)
}

// whisker draws an interval upright, cut at the picture's edge.
func (c *chart) whisker(i ink, x vg.Length, s result.Summary) {
	if s.Low == nil || s.High == nil {
		return
	}
	low, high := max(c.py(*s.Low), c.bottom), min(c.py(*s.High), c.h-c.top)
	c.stroke(i, 1.2, nil, vg.Point{X: x, Y: low}, vg.Point{X: x, Y: high})
	for _, y := range []vg.Length{low, high} {
		c.stroke(i, 1.2, nil, vg.Point{X: x - 3, Y: y}, vg.Point{X: x + 3, Y: y})
	}
}

// proportional draws what the first cell promises, until it leaves the picture.
func (c *chart) proportional(a *analysis, x *axis, l line, i ink) {
	if x.kind != scaling || len(x.paths) > 1 || a.measure.lesser {
		return
	}
	first := slices.IndexFunc(l.cells, func(v *cellView) bool { return v.summary.Median != nil })
	from := l.cells[first]
	n := x.amount(x.of(from.plan))
	slope := *from.summary.Median / n
	end := min(x.amount(x.values[len(x.values)-1]), c.y.high/slope)
	c.stroke(i, 1, []vg.Length{1.5, 3}, vg.Point{X: c.px(n), Y: c.py(*from.summary.Median)}, vg.Point{X: c.px(end), Y: c.py(slope * end)})
}

// endLabels names each line at its end.
func (c *chart) endLabels(lines []line, ends []vg.Length) {
	for i, y := range spread(ends, 13, c.bottom, c.h-c.top) {
		colour, _ := seriesInk(i)
		c.label(colour, vg.Point{X: c.w - c.right + 6, Y: y}, rightOf, shorten(lines[i].context, 130))
	}
}

// shorten cuts text to a width.
func shorten(s string, width vg.Length) string {
	runes := []rune(s)
	for n := len(runes); n > 0; n-- {
		cut := string(runes[:n])
		if n < len(runes) {
			cut = strings.TrimRight(cut, " ,") + "…"
		}
		if textWidthOf(cut) <= width {
			return cut
		}
	}
	return ""
}

// scalingWords says the picture's figures.
func (a *analysis) scalingWords(x *axis, lines []line) string {
	var parts []string
	for _, l := range lines {
		for _, v := range l.cells {
			if v.summary.Median != nil {
				parts = append(parts, v.name+": "+a.withInterval(v.summary))
			}
		}
	}
	return strconv.Itoa(len(x.values)) + " settings of " + x.label + ". " + strings.Join(parts, "; ") + "."
}
