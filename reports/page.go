package reports

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// pageData is what the page's templates show.
type pageData struct {
	Style  template.CSS
	Script template.JS

	Title, Scope, Begun, Lasted, Versions string

	Lead     string   // the first sentence of the answer
	Rest     []string // the others
	Cells    []pageRow
	Heads    []pageHead
	Claims   []pageClaim
	Steps    bool // some comparison has a proportional gain
	Notes    []string
	Pictures []picture
	Each     []pageCell
	Env      pageEnvironment
	Wrong    pageWrong
}

// A picture stands with a heading and a line on how to read it.
type picture struct {
	Title, Reading string
	Legend         []legendEntry
	SVG            template.HTML
}

type legendEntry struct {
	Name string
	Ink  template.CSS
}

// html writes the page.
func (a *analysis) html(w io.Writer) error {
	data, err := a.page()
	if err != nil {
		return err
	}
	t, err := template.New("page.tmpl").Funcs(template.FuncMap{"glue": glue, "inc": func(n int) int { return n + 1 }}).ParseFS(pageFiles, "page/*.tmpl")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "page.tmpl", data)
}

func (a *analysis) page() (*pageData, error) {
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return nil, err
	}
	script, err := pageFiles.ReadFile("page/crosshair.js")
	if err != nil {
		return nil, err
	}
	d := &pageData{Style: template.CSS(style), Script: template.JS(script), Title: a.result.Name, Scope: a.scope()}
	d.Begun = a.result.Started.UTC().Format("2 January 2006, 15:04 UTC")
	d.Lasted = lasting(a.result.Ended.Sub(a.result.Started).Seconds())
	d.Versions = a.versionsLine()
	sentences := a.answer()
	d.Lead, d.Rest = sentences[0], sentences[1:]
	notes := &footnotes{}
	d.Heads, d.Cells = a.pageCellTable(notes)
	d.Claims, d.Steps = a.pageClaims(notes)
	d.Notes = notes.texts
	d.Pictures = a.pictures()
	if d.Each, err = a.pageCells(); err != nil {
		return nil, err
	}
	d.Env = a.pageEnvironment()
	d.Wrong = a.pageWrong()
	return d, nil
}

// lasting is a length of time for people: "12 min 5 s".
func lasting(seconds float64) string {
	s := int(seconds + 0.5)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

func (a *analysis) versionsLine() string {
	env := a.environment()
	var parts []string
	if len(env.Kafka) > 0 {
		parts = append(parts, "Kafka "+strings.Join(env.Kafka, ", "))
	}
	if len(env.Java) > 0 {
		parts = append(parts, "Java "+strings.Join(env.Java, ", "))
	}
	return strings.Join(parts, " · ")
}

// unitPattern finds a space between a figure and what must not be parted from it.
var unitPattern = regexp.MustCompile(`([0-9]) (%|×|B/s|[kMGKT]i?B/s|s\b|ms\b|µs\b|records|brokers?\b|workers?\b)|(n) (=) `)

// glue keeps figures and their units on one line.
func glue(text string) string {
	return unitPattern.ReplaceAllStringFunc(text, func(s string) string {
		return strings.ReplaceAll(s, " ", "\u00a0")
	})
}

// pictures are the ones over the matrix: along each axis, all cells beside each
// other, and how much the repeats differ.
func (a *analysis) pictures() []picture {
	if !a.measured() {
		return nil
	}
	var out []picture
	for i, f := range a.families {
		for j, x := range f.axes {
			if x.kind != categorical {
				out = append(out, a.scalingPicture(fmt.Sprintf("scaling-%d-%d", i, j), f, x))
			}
		}
	}
	out = append(out, a.comparePictures()...)
	return out
}

func (a *analysis) scalingPicture(id string, f *family, x *axis) picture {
	p := picture{Title: capital(a.measure.noun) + " by " + x.label, SVG: a.scalingChart(id, f, x)}
	p.Reading = "Median of the valid repeats with its 95 % interval; small dots are single repeats."
	if x.kind == scaling && !a.measure.lesser {
		p.Reading += " Dotted: in proportion to the first point."
	}
	if slices.ContainsFunc(f.cells, (*cellView).limitedByLab) {
		p.Reading += " Hollow: limited by the lab machine."
	}
	return p
}

// comparePictures have one row a cell.
func (a *analysis) comparePictures() []picture {
	var out []picture
	if len(a.cells) > 1 {
		reading := "Median of each cell with its 95 % interval"
		out = append(out, picture{Title: capital(a.measure.noun) + " of each cell", Reading: reading + better(a.measure.lesser),
			SVG: a.compareChart("compare", a.measure.name, a.measure.noun, a.measure.unit)})
		const latency = "produce.latency.p99"
		if a.measure.name != latency && a.has(latency) {
			out = append(out, picture{Title: "p99 latency of each cell", Reading: reading + better(true),
				SVG: a.compareChart("compare-latency", latency, "p99 latency", "s")})
		}
	}
	if a.repeated() {
		out = append(out, picture{Title: "How much the repeats differ", Reading: "Each valid repeat against its cell's median; the band is the 95 % interval" + a.crossReading(),
			SVG: a.distributionChart("distribution", a.measure.name, a.measure.noun, a.measure.unit)})
	}
	return out
}

func better(lesser bool) string {
	if lesser {
		return "; shorter is better."
	}
	return "; longer is better."
}

func (a *analysis) crossReading() string {
	for _, p := range a.problems() {
		if p.what == "invalid" {
			return ". A cross is an invalid repeat: shown, never averaged in."
		}
	}
	return "."
}

// repeated tells whether any cell has several valid repeats.
func (a *analysis) repeated() bool {
	for _, c := range a.cells {
		if c.summary.N > 1 {
			return true
		}
	}
	return false
}

func capital(s string) string {
	if strings.HasPrefix(s, "p99") || s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
