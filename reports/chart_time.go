package reports

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"krig/internal/result"
)

// A timeSize is one of the two sizes in which each time picture is drawn: for
// a wide window, and for a narrow one. The style sheet shows the one that fits.
type timeSize struct {
	class         string
	width, height vg.Length
	left, right   vg.Length
	buckets       int // most points that a line is drawn with, two for each bucket
	ticks         float64
}

func wideTime() timeSize { return timeSize{"wide", 1080, 104, 62, 98, 420, 12} }

func narrowTime() timeSize { return timeSize{"narrow", 372, 104, 56, 8, 130, 5} }

const (
	timeAxisHeight vg.Length = 30 // below the last picture of a stack
	labelledLines            = 9  // the most lines that are named at their ends
	phaseTop       vg.Length = 14 // above the first picture, for the names of phases
)

// A timeAxis is what all pictures of a stack share.
type timeAxis struct {
	zero   float64 // seconds since the epoch that the axis calls 0: the load's begin
	span   span    // relative to zero
	phases []result.Phase
	detail detail
}

// axisOfTime covers everything that was recorded.
func axisOfTime(file *result.SeriesFile, tracks []track) timeAxis {
	x := timeAxis{phases: file.Phases, span: span{low: math.Inf(1), high: math.Inf(-1)}}
	low, high := math.Inf(1), math.Inf(-1)
	for _, t := range tracks {
		for _, l := range t.lines {
			low = min(low, l.series.Times[0]-usualStep(l.series.Times))
			high = max(high, l.series.Times[len(l.series.Times)-1])
		}
	}
	x.zero = low
	if len(file.Phases) > 0 {
		x.zero = seconds(file.Phases[0])
	}
	x.span = span{low: low - x.zero, high: high - x.zero}
	return x
}

func seconds(p result.Phase) float64 { return float64(p.Start.UnixNano()) / 1e9 }

// timeChart draws one track. The first of a stack names the phases, the last
// has the time axis.
func (a *analysis) timeChart(id string, t track, x timeAxis, size timeSize, first, last bool) template.HTML {
	height, top, bottom := size.height, vg.Length(8), vg.Length(7)
	if first {
		height, top = height+phaseTop, top+phaseTop
	}
	if last {
		height, bottom = height+timeAxisHeight-7, timeAxisHeight
	}
	c := newChart(size.width, height)
	c.margins(size.left, size.right, top, bottom)
	c.x = x.span
	sc := c.timeScale(a, t)
	c.phases(x, first)
	c.yAxis(c.timeTicks(t, sc), sc)
	c.limitLine(t)
	ends := make([]vg.Length, len(t.lines))
	for i, l := range t.lines {
		ends[i] = c.timeLine(l, x, size)
	}
	if size.right > 20 && len(t.lines) <= labelledLines {
		c.timeLabels(t, ends)
	}
	if last {
		c.timeTicksBelow(x, size)
	}
	left, right := float64(size.left/size.width), float64(size.right/size.width)
	return c.finish(id, t.title, a.timeWords(t), fmt.Sprintf(`class="%s" data-left="%.5f" data-right="%.5f"`, size.class, left, right))
}

// timeScale chooses the scale of values: logarithmic for latencies of very
// different size, else from 0.
func (c *chart) timeScale(a *analysis, t track) scale {
	top := highestOf(t)
	if t.full || (t.limit > 0 && t.limit < 2*top) {
		top = max(top, t.limit)
	}
	sc := a.units.scaleFor(t.unit, top)
	if low := lowestOf(t); t.unit == result.Seconds && low > 0 && top/low > 20 {
		c.y.log = true
		ticks := logTicks(low/sc.factor, top/sc.factor)
		c.y.low, c.y.high = ticks[0]*sc.factor, ticks[len(ticks)-1]*sc.factor
		return sc
	}
	ticks := ticksTo(top, sc, 3)
	c.y.high = ticks[len(ticks)-1]
	if t.full {
		c.y.high = top
	}
	return sc
}

func (c *chart) timeTicks(t track, sc scale) []float64 {
	if c.y.log {
		ticks := logTicks(c.y.low/sc.factor, c.y.high/sc.factor)
		for len(ticks) > 4 {
			ticks = everySecond(ticks)
		}
		for i := range ticks {
			ticks[i] *= sc.factor
		}
		return ticks
	}
	if t.full {
		return []float64{0, t.limit / 2, t.limit}
	}
	return ticksTo(c.y.high, sc, 3)
}

// everySecond keeps the last tick, which carries the unit.
func everySecond(ticks []float64) []float64 {
	var out []float64
	for i := len(ticks) - 1; i >= 0; i -= 2 {
		out = append(out, ticks[i])
	}
	slices.Reverse(out)
	return out
}

// phases shades what is not measured: before the load, its warm-up, and after
// it. The first picture of a stack names the phases.
func (c *chart) phases(x timeAxis, named bool) {
	at := x.span.low
	for _, p := range x.phases {
		from := max(seconds(p)-x.zero, x.span.low)
		to := min(float64(p.End.UnixNano())/1e9-x.zero, x.span.high)
		if to <= from {
			continue
		}
		if p.Name != "warmup" {
			c.shade(at, from)
			at = to
		}
		if named {
			c.phaseName(p.Name, c.px(from), c.px(to))
		}
	}
	if len(x.phases) > 0 {
		c.shade(at, x.span.high)
	}
}

func (c *chart) shade(from, to float64) {
	if to > from {
		c.fill(inkBand, c.px(from), c.bottom, c.px(to), c.h-c.top)
	}
}

// phaseName stands above the plotting area where there is room for it.
func (c *chart) phaseName(name string, from, to vg.Length) {
	c.stroke(inkAxis, 0.8, nil, vg.Point{X: from, Y: c.h - c.top}, vg.Point{X: from, Y: c.h - 2})
	if name == "warmup" {
		name = "warm-up"
	}
	if to-from > textWidthOf(name)+4 {
		c.label(inkMuted, vg.Point{X: from + 4, Y: c.h - 8}, rightOf, name)
	}
}

// limitLine draws what the lines cannot exceed, where the scale holds it.
func (c *chart) limitLine(t track) {
	if t.limit <= 0 || t.full || t.limit > c.y.high {
		return
	}
	y := c.py(t.limit)
	c.stroke(inkLimit, 1.2, []vg.Length{6, 3}, vg.Point{X: c.left, Y: y}, vg.Point{X: c.w - c.right, Y: y})
}

// timeLine draws one series with its holes, and returns where it ends.
func (c *chart) timeLine(l trackLine, x timeAxis, size timeSize) vg.Length {
	end := c.bottom
	for _, stretch := range stretches(l.series, x.zero) {
		pts := thin(stretch, x.span, min(size.buckets, x.detail.points(len(l.series.Times))/2))
		line := make([]vg.Point, len(pts))
		for i, p := range pts {
			line[i] = vg.Point{X: c.px(p.t), Y: min(max(c.py(p.v), c.bottom), c.h-c.top)}
		}
		if len(line) == 1 {
			c.dot(l.ink, line[0], 1.6)
		} else {
			c.stroke(l.ink, 1.5, l.dashes, line...)
		}
		end = line[len(line)-1].Y
	}
	return end
}

// A sampled value at a time, both as drawn.
type sampled struct{ t, v float64 }

// stretches are the parts of a series without holes. A sample is drawn in the
// middle of the interval that it covers; an interval that nothing covers is a hole.
func stretches(s *result.Series, zero float64) [][]sampled {
	step := usualStep(s.Times)
	var out [][]sampled
	open := false
	for i, v := range s.Values {
		if v == nil || !finite(*v) {
			open = false
			continue
		}
		if i > 0 && s.Times[i]-s.Times[i-1] > 2.5*step {
			open = false
		}
		p := sampled{s.Times[i] - step/2 - zero, *v}
		if open {
			out[len(out)-1] = append(out[len(out)-1], p)
		} else {
			out = append(out, []sampled{p})
		}
		open = true
	}
	return out
}

// usualStep is the usual time between two samples, in seconds.
func usualStep(times []float64) float64 {
	if len(times) < 2 {
		return 1
	}
	steps := make([]float64, len(times)-1)
	for i := range steps {
		steps[i] = times[i+1] - times[i]
	}
	return median(steps)
}

// thin keeps the lowest and the highest of each bucket where there are more
// samples than can be seen, so that no peak and no dip is lost.
func thin(pts []sampled, x span, buckets int) []sampled {
	if len(pts) <= 2*buckets {
		return pts
	}
	width := (x.high - x.low) / float64(buckets)
	var out []sampled
	for i := 0; i < len(pts); {
		end := x.low + width*(math.Floor((pts[i].t-x.low)/width)+1)
		low, high, j := i, i, i
		for ; j < len(pts) && (pts[j].t < end || j == i); j++ {
			if pts[j].v < pts[low].v {
				low = j
			}
			if pts[j].v > pts[high].v {
				high = j
			}
		}
		out = append(out, pts[min(low, high)])
		if low != high {
			out = append(out, pts[max(low, high)])
		}
		i = j
	}
	return out
}

// timeLabels names the lines at the height that they had in the steady phase.
func (c *chart) timeLabels(t track, ends []vg.Length) {
	for i, l := range t.lines {
		if l.steady != nil {
			ends[i] = min(max(c.py(*l.steady), c.bottom), c.h-c.top)
		}
	}
	gap := min(12, (c.h-c.bottom)/vg.Length(len(ends)))
	for i, y := range spread(ends, gap, c.bottom, c.h-4) {
		edge := c.w - c.right
		c.stroke(t.lines[i].ink, 1.5, nil, vg.Point{X: edge + 1, Y: ends[i]}, vg.Point{X: edge + 4, Y: ends[i]}, vg.Point{X: edge + 9, Y: y})
		c.label(inkText, vg.Point{X: edge + 12, Y: y}, rightOf, shorten(t.lines[i].name, c.right-12))
	}
}

// timeTicksBelow labels the seconds.
func (c *chart) timeTicksBelow(x timeAxis, size timeSize) {
	step := roundStep((x.span.high - x.span.low) / size.ticks)
	var at []float64
	for v := math.Ceil(x.span.low/step) * step; v <= x.span.high; v += step {
		at = append(at, roundTo(v, step))
	}
	c.xTicks(at, func(v float64) string {
		if v == at[len(at)-1] {
			return tickText(v) + " s"
		}
		return tickText(v)
	})
}

// timeWords says the figures of the steady phase.
func (a *analysis) timeWords(t track) string {
	var parts []string
	for _, l := range t.lines {
		if l.steady != nil {
			parts = append(parts, l.name+" "+a.units.show(*l.steady, t.unit))
		}
	}
	if len(parts) == 0 {
		return t.title + " over time."
	}
	return t.title + " over time; in the steady phase " + strings.Join(parts, ", ") + "."
}
