package reports

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// An ink is a colour by its purpose. The page's style sheet says what it is, in
// light and in dark.
type ink uint8

const (
	inkText ink = iota
	inkMuted
	inkGrid
	inkAxis
	inkBand
	inkLimit
	inkBad
	inkPaper
	inkSeries0 // the first of seriesInks; the others follow
)

const (
	seriesInks = 6                       // one for each value of an axis; then they begin again, dashed
	inkBroker0 = inkSeries0 + seriesInks // shades of one hue for hosts of one role
	roleShades = 3
	inkWorker0 = inkBroker0 + roleShades
	inkOther0  = inkWorker0 + roleShades
	inkMachine = inkOther0 + roleShades
)

// name is the style sheet's variable.
func (i ink) name() string {
	shade := func(name string, first ink) string { return fmt.Sprintf("--%s-%d", name, i-first) }
	switch {
	case i >= inkMachine:
		return "--machine"
	case i >= inkOther0:
		return shade("other", inkOther0)
	case i >= inkWorker0:
		return shade("worker", inkWorker0)
	case i >= inkBroker0:
		return shade("broker", inkBroker0)
	case i >= inkSeries0:
		return shade("series", inkSeries0)
	}
	return [...]string{"--text", "--muted", "--grid", "--axis", "--band", "--limit", "--bad", "--paper"}[i]
}

// RGBA stands for the ink until the picture is finished: vgsvg writes it as
// #0100NN, which no real colour of ours is.
func (i ink) RGBA() (r, g, b, a uint32) { return anchored{i, rightOf}.RGBA() }

// An anchor is where a text lies relative to its point. It is left to the
// browser, which knows its own font's widths.
type anchor uint8

const (
	rightOf anchor = iota // the text begins at the point
	centred
	leftOf // the text ends at the point
)

func (a anchor) svg() string { return [...]string{"start", "middle", "end"}[a] }

// anchored carries the anchor of a text through vgsvg, as #01AANN.
type anchored struct {
	ink    ink
	anchor anchor
}

// RGBA is [ink.RGBA] with the anchor in its green.
func (a anchored) RGBA() (r, g, b, alpha uint32) {
	return color.NRGBA{R: 1, G: uint8(a.anchor), B: uint8(a.ink), A: 255}.RGBA()
}

// css is the ink for the page around a picture.
func (i ink) css() template.CSS { return template.CSS("var(" + i.name() + ")") }

// seriesInk is the ink and the dash of the n-th of several lines.
func seriesInk(n int) (ink, []vg.Length) {
	return inkSeries0 + ink(n%seriesInks), dash(n / seriesInks)
}

// dash tells lines of one ink apart.
func dash(n int) []vg.Length {
	switch n % 3 {
	case 1:
		return []vg.Length{5, 2.5}
	case 2:
		return []vg.Length{1.5, 2}
	}
	return nil
}

// fontSize is of all labels, in the picture's own units.
const fontSize vg.Length = 11

// A chart is one picture being drawn: a plotting area inside margins, with a
// linear or logarithmic scale on each side.
type chart struct {
	svg  *vgsvg.Canvas
	c    draw.Canvas
	w, h vg.Length

	left, right, top, bottom vg.Length // margins
	x, y                     span
}

// A span is the range of one scale.
type span struct {
	low, high float64
	log       bool
}

// at is where a value lies, from 0 to 1.
func (s span) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(math.Max(v, s.low/10))
	}
	if high == low {
		return 0.5
	}
	return (v - low) / (high - low)
}

func newChart(w, h vg.Length) *chart {
	svg := vgsvg.New(w, h)
	return &chart{svg: svg, c: draw.New(svg), w: w, h: h}
}

func (c *chart) margins(left, right, top, bottom vg.Length) {
	c.left, c.right, c.top, c.bottom = left, right, top, bottom
}

// px and py are where a value of the scales lies on the canvas.
func (c *chart) px(v float64) vg.Length {
	return c.left + vg.Length(c.x.at(v))*(c.w-c.left-c.right)
}

func (c *chart) py(v float64) vg.Length {
	return c.bottom + vg.Length(c.y.at(v))*(c.h-c.bottom-c.top)
}

// stroke draws a line through points of the canvas.
func (c *chart) stroke(i ink, width vg.Length, dashes []vg.Length, pts ...vg.Point) {
	c.c.StrokeLines(draw.LineStyle{Color: i, Width: width, Dashes: dashes}, pts)
}

// fill paints a rectangle of the canvas.
func (c *chart) fill(i ink, x0, y0, x1, y1 vg.Length) {
	c.c.FillPolygon(i, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}

// dot paints a disc.
func (c *chart) dot(i ink, at vg.Point, radius vg.Length) {
	c.c.DrawGlyphNoClip(draw.GlyphStyle{Color: i, Radius: radius, Shape: draw.CircleGlyph{}}, at)
}

// ring paints a hollow disc.
func (c *chart) ring(i ink, at vg.Point, radius vg.Length) {
	c.dot(i, at, radius+0.7)
	c.dot(inkPaper, at, radius-0.7)
}

// cross marks what does not count.
func (c *chart) cross(i ink, at vg.Point, radius vg.Length) {
	c.stroke(i, 1.4, nil, vg.Point{X: at.X - radius, Y: at.Y - radius}, vg.Point{X: at.X + radius, Y: at.Y + radius})
	c.stroke(i, 1.4, nil, vg.Point{X: at.X - radius, Y: at.Y + radius}, vg.Point{X: at.X + radius, Y: at.Y - radius})
}

func (c *chart) label(i ink, at vg.Point, where anchor, s string) {
	style := textStyle()
	style.Color, style.YAlign = anchored{i, where}, -0.36 // the middle of a lower-case letter
	c.c.FillText(style, at, s)
}

func textStyle() draw.TextStyle {
	return draw.TextStyle{Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, fontSize), Handler: plot.DefaultTextHandler}
}

// textWidthOf is about as wide as a text will be: fonts of the reader's
// machine may be wider than the one that is measured.
func textWidthOf(s string) vg.Length { return textStyle().Width(s) * 1.12 }

// yAxis draws a grid line and a label at each tick; the unit stands at the topmost.
func (c *chart) yAxis(ticks []float64, sc scale) {
	for i, v := range ticks {
		y := c.py(v)
		line := inkGrid
		if v == 0 {
			line = inkAxis
		}
		c.stroke(line, 0.8, nil, vg.Point{X: c.left, Y: y}, vg.Point{X: c.w - c.right, Y: y})
		s := tickText(v / sc.factor)
		if i == len(ticks)-1 {
			s = join(s, sc.unit)
		}
		c.label(inkMuted, vg.Point{X: c.left - 6, Y: y}, leftOf, s)
	}
}

// xTicks labels the lower side.
func (c *chart) xTicks(ticks []float64, name func(float64) string) {
	for _, v := range ticks {
		x := c.px(v)
		c.stroke(inkAxis, 0.8, nil, vg.Point{X: x, Y: c.bottom}, vg.Point{X: x, Y: c.bottom - 3})
		c.label(inkMuted, vg.Point{X: x, Y: c.bottom - 11}, centred, name(v))
	}
}

// tickText is a round number without needless digits.
func tickText(v float64) string {
	return thousandsOf(strconv.FormatFloat(v, 'f', -1, 64), math.Abs(v) >= 10_000)
}

func thousandsOf(s string, apart bool) string {
	if apart && !strings.Contains(s, ".") {
		return thousands(s)
	}
	return s
}

// ticksTo are round values from 0 to at least top, in the unit's own steps,
// about n of them.
func ticksTo(top float64, sc scale, n int) []float64 {
	if !(top > 0) || math.IsInf(top, 0) {
		top = sc.factor
	}
	step := roundStep(top / sc.factor / float64(n))
	var out []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		out = append(out, roundTo(v, step)*sc.factor)
		if v >= top/sc.factor*0.9999 {
			return out
		}
	}
}

// roundStep is the next of 1, 2, 5 times a power of ten that is not below v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*0.9999 {
			return m * power
		}
	}
	return 10 * power
}

// roundTo removes the noise of binary fractions from a multiple of step.
func roundTo(v, step float64) float64 {
	digits := max(0, -int(math.Floor(math.Log10(step))))
	factor := math.Pow(10, float64(digits))
	return math.Round(v*factor)/factor + 0 // + 0 makes -0 plain
}

// logTicks are 1, 2 and 5 times powers of ten around what lies between; only
// the powers when the range is wide.
func logTicks(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	if high/low > 200 {
		steps = steps[:1]
	}
	var out []float64
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high*10; power *= 10 {
		for _, m := range steps {
			v := m * power
			out = append(out, v)
			if v >= high {
				return trimBelow(out, low)
			}
		}
	}
	return out
}

// trimBelow keeps one tick at or below low.
func trimBelow(ticks []float64, low float64) []float64 {
	for len(ticks) > 1 && ticks[1] <= low {
		ticks = ticks[1:]
	}
	return ticks
}

// spread moves labels apart so that they are at least gap from each other,
// each as little from its place as can be, inside low and high. It returns the
// new places in the order given.
func spread(at []vg.Length, gap, low, high vg.Length) []vg.Length {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	sortBy(order, func(i int) float64 { return float64(at[i]) })
	var blocks []labelBlock
	for k, i := range order {
		blocks = append(blocks, labelBlock{sum: at[i] - vg.Length(k)*gap, n: 1})
		for n := len(blocks); n > 1 && blocks[n-2].place() > blocks[n-1].place(); n = len(blocks) {
			blocks[n-2] = labelBlock{blocks[n-2].sum + blocks[n-1].sum, blocks[n-2].n + blocks[n-1].n}
			blocks = blocks[:n-1]
		}
	}
	out := make([]vg.Length, len(at))
	k := 0
	for _, b := range blocks {
		for range int(b.n) {
			floor, ceiling := low+vg.Length(k)*gap, high-vg.Length(len(at)-1-k)*gap
			out[order[k]] = max(min(b.place()+vg.Length(k)*gap, ceiling), floor)
			k++
		}
	}
	return out
}

// A labelBlock is labels that touch; they share one offset, the mean of what
// each would like.
type labelBlock struct{ sum, n vg.Length }

func (b labelBlock) place() vg.Length { return b.sum / b.n }

var (
	inkPattern  = regexp.MustCompile(`#0100[0-9A-F]{2}`)
	textPattern = regexp.MustCompile(`\s*style="font-family:[^"]*?fill:#01([0-9A-F]{2})([0-9A-F]{2})"`)
	pathPattern = regexp.MustCompile(` d="[^"]*"`)
	numPattern  = regexp.MustCompile(`-?[0-9]*\.[0-9]+(?:e-?[0-9]+)?`)
)

// finish turns what was drawn into an inline picture: as wide as its box, in
// the style sheet's inks and the page's own font, with a title and a
// description for those who cannot see it.
func (c *chart) finish(id, title, description string, attributes ...string) template.HTML {
	var raw bytes.Buffer
	if _, err := c.svg.WriteTo(&raw); err != nil {
		panic(err) // a buffer takes everything
	}
	body := raw.String()
	body = body[strings.Index(body, "<svg"):]
	body = body[strings.Index(body, ">")+1:]
	body = textPattern.ReplaceAllStringFunc(body, func(s string) string {
		m := textPattern.FindStringSubmatch(s)
		return fmt.Sprintf(` style="fill:%s" text-anchor="%s"`, inkOf(m[2]), anchor(hexByte(m[1])).svg())
	})
	body = inkPattern.ReplaceAllStringFunc(body, func(s string) string { return inkOf(s[5:]) })
	body = pathPattern.ReplaceAllStringFunc(body, shortNumbers)
	head := fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d" xmlns="http://www.w3.org/2000/svg" %s><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		c.w.Points(), c.h.Points(), id, id, strings.Join(attributes, " "), id, html.EscapeString(title), id, html.EscapeString(description))
	return template.HTML(head + body)
}

func inkOf(hex string) string { return "var(" + ink(hexByte(hex)).name() + ")" }

// hexByte reads what [anchored.RGBA] wrote.
func hexByte(hex string) uint8 {
	n, err := strconv.ParseUint(hex, 16, 8)
	if err != nil {
		panic(err) // the pattern lets nothing else through
	}
	return uint8(n)
}

// shortNumbers keeps one digit after the point: a tenth of a unit is below what can be seen.
func shortNumbers(path string) string {
	return numPattern.ReplaceAllStringFunc(path, func(s string) string {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return s
		}
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	})
}
