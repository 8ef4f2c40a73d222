package reports

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"os"
	"strings"

	"krig/internal/result"
	"krig/internal/rundir"
)

const (
	// pageBytes is about what all series of a page may take. Where they would
	// take more they are drawn with fewer points.
	pageBytes = 2 << 20

	// sampleBytes is about what one sample takes: in the wide picture, in the
	// narrow one, and for the cross-hair.
	sampleBytes = 27

	// fewestPoints is what every line keeps.
	fewestPoints = 60
)

// unfolded is the number of cells up to which each is shown at once; of more,
// all but the best begin folded.
const unfolded = 8

// A pageCell is one cell with its repeats.
type pageCell struct {
	Anchor, Name, Figure, Limit string
	Marks                       []string
	Open                        bool
	Repeats                     []pageRepeat // the most typical first
}

// A pageRepeat is one repeat with its stack of pictures.
type pageRepeat struct {
	Title  string
	Status string
	Reason string
	Open   bool // the most typical is
	Tracks []pageTrack
	Data   template.JS // JSON for the cross-hair
	Files  string      // where the raw files are, below the run directory
}

// A pageTrack is one picture of a stack in two sizes.
type pageTrack struct {
	Title, Note  string
	Wide, Narrow template.HTML
	Legend       []trackEntry
}

// A trackEntry is a line's name and its value in the steady phase.
type trackEntry struct {
	Name, Value string
	Ink         template.CSS
	Dashed      bool
}

// pageCells draws every cell.
func (a *analysis) pageCells() ([]pageCell, error) {
	var best *cellView
	if a.measured() {
		best = a.bestCell()
	}
	d := a.detail()
	var out []pageCell
	for _, c := range a.cells {
		p := pageCell{Anchor: c.anchor, Name: c.name, Marks: c.diag.marks, Open: len(a.cells) <= unfolded || c == best}
		p.Figure, p.Limit = "no valid repeat", "not determined"
		if c.summary.N > 0 {
			p.Figure = glue(a.measure.noun + " " + a.withInterval(c.summary))
			p.Limit = glue(c.diag.sentence(a.units))
		}
		for i, try := range typicalFirst(c, a.measure.name) {
			r, err := a.pageRepeat(c, try, i == 0, d)
			if err != nil {
				return nil, err
			}
			p.Repeats = append(p.Repeats, r)
		}
		out = append(out, p)
	}
	return out, nil
}

// detail is the part of its samples that each line may be drawn with, at most 1.
type detail float64

// detail reads how many samples there are in all.
func (a *analysis) detail() detail {
	n := 0
	for _, c := range a.cells {
		for _, try := range attempts(c.result) {
			file, err := readSeries(a.run, try)
			if err != nil { // pageRepeat says so
				continue
			}
			for _, t := range a.tracks(try.Repeat, file) {
				for _, l := range t.lines {
					n += len(l.series.Times)
				}
			}
		}
	}
	return detail(min(1, float64(pageBytes)/float64(max(1, n*sampleBytes))))
}

// points is how many points a line of n samples may have.
func (d detail) points(n int) int { return max(fewestPoints, int(float64(n)*float64(d))) }

// typicalFirst puts the valid repeat nearest to the cell's median first, and
// leaves the others in order.
func typicalFirst(c *cellView, measure string) []attempt {
	out := attempts(c.result)
	best, distance := -1, math.Inf(1)
	for i, try := range out {
		v, ok := try.Measures.Get(measure)
		if ok && try.Status == result.Valid && c.summary.Median != nil && math.Abs(v-*c.summary.Median) < distance {
			best, distance = i, math.Abs(v-*c.summary.Median)
		}
	}
	if best > 0 {
		first := out[best]
		copy(out[1:best+1], out[:best])
		out[0] = first
	}
	return out
}

// pageRepeat draws one repeat's stack.
func (a *analysis) pageRepeat(c *cellView, try attempt, open bool, d detail) (pageRepeat, error) {
	p := pageRepeat{Status: string(try.Status), Reason: plain(try.Reason), Open: open, Files: fmt.Sprintf("cells/%s/%s/", try.Cell, try.dir)}
	p.Title = capital(strings.TrimSuffix(try.name(), ","))
	if v, ok := try.Measures.Get(a.measure.name); ok {
		p.Title += ": " + glue(a.units.show(v, a.measure.unit))
	}
	file, err := readSeries(a.run, try)
	if err != nil {
		p.Reason = strings.TrimPrefix(p.Reason+"; there are no pictures: "+plain(err.Error()), "; ")
		return p, nil
	}
	tracks := a.tracks(try.Repeat, file)
	if len(tracks) == 0 {
		return p, nil
	}
	x := axisOfTime(file, tracks)
	x.detail = d
	id := fmt.Sprintf("%s-%s", c.anchor, strings.ReplaceAll(try.dir, ".", "-"))
	for i, t := range tracks {
		p.Tracks = append(p.Tracks, a.pageTrack(fmt.Sprintf("%s-%d", id, i), t, x, i == 0, i == len(tracks)-1))
	}
	p.Data, err = a.crosshairData(tracks, x)
	return p, err
}

func (a *analysis) pageTrack(id string, t track, x timeAxis, first, last bool) pageTrack {
	p := pageTrack{Title: t.title, Note: a.trackNote(t)}
	p.Wide = a.timeChart(id+"-w", t, x, wideTime(), first, last)
	p.Narrow = a.timeChart(id+"-n", t, x, narrowTime(), first, last)
	for _, l := range t.lines {
		e := trackEntry{Name: l.name, Ink: l.ink.css(), Dashed: l.dashes != nil, Value: "—"}
		if l.steady != nil {
			e.Value = glue(a.units.show(*l.steady, t.unit))
		}
		p.Legend = append(p.Legend, e)
	}
	return p
}

// trackNote says what the limit is, drawn or not.
func (a *analysis) trackNote(t track) string {
	switch {
	case t.full:
		return t.note
	case t.limit > 0:
		return glue(fmt.Sprintf("limit %s each (%s)", a.units.show(t.limit, t.unit), t.note))
	}
	return ""
}

// crosshairFile is what the script reads: the samples as the legend shows them.
type crosshairFile struct {
	From  float64          `json:"from"` // seconds, of the axis
	To    float64          `json:"to"`
	Times [][]float64      `json:"times"` // ends of intervals
	Steps []float64        `json:"steps"` // usual interval of each of them
	Lines [][]crosshairRow `json:"lines"` // one list a track
	Units []string         `json:"units"` // one a track
}

// crosshairRow is one line: which times, and a value for each; null is a hole.
type crosshairRow struct {
	Times  int        `json:"t"`
	Values []*float64 `json:"v"`
}

// crosshairData packs the samples, equal times only once.
func (a *analysis) crosshairData(tracks []track, x timeAxis) (template.JS, error) {
	f := crosshairFile{From: rounded(x.span.low, 3), To: rounded(x.span.high, 3)}
	index := map[string]int{}
	for _, t := range tracks {
		sc := a.units.scaleFor(t.unit, highestOf(t))
		var rows []crosshairRow
		for _, l := range t.lines {
			s := coarser(l.series, x.detail.points(len(l.series.Times)))
			rows = append(rows, crosshairRow{f.timesOf(s.Times, x.zero, index), numbersOf(s.Values, sc)})
		}
		f.Lines, f.Units = append(f.Lines, rows), append(f.Units, sc.unit)
	}
	data, err := json.Marshal(f)
	return template.JS(data), err
}

// coarser is a series with at most n samples, each the mean of the same number
// of them; a hole counts for nothing in a mean, and is one where all are.
func coarser(s *result.Series, n int) *result.Series {
	group := (len(s.Times) + n - 1) / n
	if group < 2 {
		return s
	}
	out := &result.Series{}
	for i := 0; i < len(s.Times); i += group {
		end := min(i+group, len(s.Times))
		out.Times = append(out.Times, s.Times[end-1])
		out.Values = append(out.Values, meanOf(s.Values[i:end]))
	}
	return out
}

func meanOf(values []*float64) *float64 {
	sum, n := 0.0, 0.0
	for _, v := range values {
		if v != nil && finite(*v) {
			sum, n = sum+*v, n+1
		}
	}
	return known(sum / n)
}

func (f *crosshairFile) timesOf(times []float64, zero float64, index map[string]int) int {
	relative := make([]float64, len(times))
	for i, t := range times {
		relative[i] = rounded(t-zero, 2)
	}
	key := fmt.Sprint(relative)
	at, ok := index[key]
	if !ok {
		at = len(f.Times)
		index[key] = at
		f.Times = append(f.Times, relative)
		f.Steps = append(f.Steps, rounded(usualStep(times), 3))
	}
	return at
}

func numbersOf(values []*float64, sc scale) []*float64 {
	out := make([]*float64, len(values))
	for i, v := range values {
		if v != nil && finite(*v) {
			out[i] = known(rounded(*v/sc.factor, 2))
		}
	}
	return out
}

func rounded(v float64, digits int) float64 {
	f := math.Pow(10, float64(digits))
	return math.Round(v*f) / f
}

func readEffective(run *rundir.Run) (string, error) {
	data, err := os.ReadFile(run.Path("effective.yaml"))
	return strings.TrimRight(string(data), "\n"), err
}
