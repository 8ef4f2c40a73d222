package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"krig/internal/result"
)

const (
	textWidth   = 96 // where sentences are wrapped
	claimsShown = 24 // the most comparisons that a terminal gets
)

// text writes the answer, the cells, the comparisons, and the footnotes.
func (a *analysis) text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n\n", a.result.Name, a.scope())
	for _, s := range a.answer() {
		out.WriteString(wrap(s, textWidth, "") + "\n")
	}
	notes := &footnotes{}
	out.WriteString("\n" + a.cellTable(notes).text())
	if len(a.claims) > 0 {
		claims := a.claimTable(notes)
		more := len(claims.rows) - claimsShown
		claims.rows = claims.rows[:min(len(claims.rows), claimsShown)]
		out.WriteString("\n" + claims.text())
		if more > 0 {
			fmt.Fprintf(&out, "and %s in report.html\n", count(more, "more comparison"))
		}
	}
	out.WriteString(notes.text())
	_, err := io.WriteString(w, out.String())
	return err
}

// scope is how much was measured.
func (a *analysis) scope() string {
	asked := 0
	counted := 0
	for _, c := range a.cells {
		asked += len(c.result.Repeats) + len(c.result.Missing)
		counted += len(valid(c.result))
	}
	return fmt.Sprintf("%s, %d of %s valid, run %s", count(len(a.cells), "cell"), counted, count(asked, "repeat"), a.result.Run)
}

// A table is rows of text under headings.
type table struct {
	head  []string
	right []bool // columns of figures, aligned right
	rows  [][]string
}

func (t *table) column(head string, right bool) {
	t.head = append(t.head, head)
	t.right = append(t.right, right)
}

// text aligns the columns by spaces.
func (t *table) text() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range append([][]string{t.head}, t.rows...) {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// footnotes gives each remark one number, however often it is made.
type footnotes struct{ texts []string }

// mark is the reference to a remark, such as "[2]".
func (f *footnotes) mark(text string) string {
	at := slices.Index(f.texts, text)
	if at < 0 {
		at = len(f.texts)
		f.texts = append(f.texts, text)
	}
	return fmt.Sprintf("[%d]", at+1)
}

func (f *footnotes) text() string {
	if len(f.texts) == 0 {
		return ""
	}
	out := "\n"
	for i, t := range f.texts {
		number := fmt.Sprintf("[%d] ", i+1)
		out += number + wrap(t, textWidth, strings.Repeat(" ", len(number))) + "\n"
	}
	return out
}

// cellTable is one row a cell. A column with one set of axes stands for each
// axis; where the matrix has several blocks the cell's name does.
func (a *analysis) cellTable(notes *footnotes) *table {
	t := &table{}
	single := len(a.families) == 1 && len(a.families[0].axes) > 0
	if single {
		for _, x := range a.families[0].axes {
			t.column(x.label, x.kind != categorical)
		}
	} else {
		t.column("cell", false)
	}
	columns := a.figureColumns()
	for _, c := range columns {
		t.column(c.head, true)
	}
	t.column("limit reached", false)
	for _, c := range a.cells {
		var row []string
		if single {
			for _, v := range c.values {
				row = append(row, show(v))
			}
		} else {
			row = append(row, c.name)
		}
		for i, col := range columns {
			row = append(row, strings.TrimSpace(col.cell(c)+" "+a.latencyMarks(c, columns, i, notes)))
		}
		t.rows = append(t.rows, append(row, strings.TrimSpace(c.limitWords()+" "+a.cellMarks(c, notes))))
	}
	return t
}

// limitWords is what was at its limit, in a table.
func (v *cellView) limitWords() string {
	if v.summary.N == 0 {
		return "—"
	}
	var parts []string
	for _, s := range v.diag.first() {
		text := s.short()
		if n := v.diag.others(s); n > 0 {
			text += fmt.Sprintf(" (+%d)", n)
		}
		parts = append(parts, text)
	}
	if slices.Contains(v.diag.marks, result.LimitedByGenerator) {
		parts = append(parts, "load generator")
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	if s, ok := v.diag.largest(); ok {
		return "not determined (nearest: " + s.short() + ")"
	}
	return "not determined"
}

// figureColumn is one measure over all cells, in one unit.
type figureColumn struct {
	head    string
	latency bool // marks about latency belong to it
	cell    func(*cellView) string
}

// figureColumns are the headline with its interval and n, then the other
// measures that any cell has.
func (a *analysis) figureColumns() []figureColumn {
	sc := a.scaleOf(a.measure.name, a.measure.unit)
	columns := []figureColumn{
		{a.measure.noun, a.measure.unit == result.Seconds, func(v *cellView) string { return shown(sc, v.summary.Median) }},
		{"95 % interval", false, func(v *cellView) string {
			if v.summary.Low == nil || v.summary.High == nil {
				return "—"
			}
			return fmt.Sprintf("%s … %s", sc.number(*v.summary.Low), join(sc.number(*v.summary.High), sc.unit))
		}},
		{"n", false, func(v *cellView) string { return fmt.Sprint(v.summary.N) }},
	}
	for _, extra := range []headline{
		{name: "produce.throughput", noun: "throughput", unit: result.BytesPerSecond},
		{name: "consume.throughput", noun: "consumed", unit: result.BytesPerSecond},
		{name: "produce.latency.p99", noun: "p99 latency", unit: result.Seconds},
		{name: "end_to_end.latency.p99", noun: "p99 end to end", unit: result.Seconds},
		{name: "produce.latency.mean", noun: "mean latency", unit: result.Seconds},
	} {
		spare := extra.name == "produce.latency.mean" && a.has("produce.latency.p99")
		if extra.name == a.measure.name || !a.has(extra.name) || spare {
			continue
		}
		s := a.scaleOf(extra.name, extra.unit)
		columns = append(columns, figureColumn{extra.noun, extra.unit == result.Seconds, func(v *cellView) string { return shown(s, medianOf(v.result, extra.name)) }})
	}
	return columns
}

func shown(s scale, v *float64) string {
	if v == nil {
		return "—"
	}
	return join(s.number(*v), s.unit)
}

func medianOf(c *result.Cell, name string) *float64 {
	values := samples(c, name)
	if len(values) == 0 {
		return nil
	}
	return known(median(values))
}

func (a *analysis) has(name string) bool {
	return slices.ContainsFunc(a.cells, func(v *cellView) bool { return len(samples(v.result, name)) > 0 })
}

// scaleOf is the unit for a measure over all cells.
func (a *analysis) scaleOf(name, unit string) scale {
	top := 0.0
	for _, v := range a.cells {
		if m := medianOf(v.result, name); m != nil {
			top = max(top, *m)
		}
	}
	return a.units.scaleFor(unit, top)
}

// latencyMarks are the footnotes of a cell's first column of latency.
func (a *analysis) latencyMarks(c *cellView, columns []figureColumn, i int, notes *footnotes) string {
	first := slices.IndexFunc(columns, func(col figureColumn) bool { return col.latency })
	if i != first || !slices.Contains(c.diag.marks, result.AtSaturation) {
		return ""
	}
	return notes.mark(result.AtSaturation + markNote(result.AtSaturation))
}

// cellMarks are the footnotes of a cell: its marks, and its repeats that do not count.
func (a *analysis) cellMarks(c *cellView, notes *footnotes) string {
	var out []string
	for _, m := range c.diag.marks {
		if m != result.AtSaturation {
			out = append(out, notes.mark(m+markNote(m)))
		}
	}
	for _, p := range a.problems() {
		if p.cell == c {
			out = append(out, notes.mark(p.note()))
		}
	}
	return strings.Join(out, " ")
}

// note is the problem as a footnote.
func (p problem) note() string {
	text := p.where + " is not counted: " + p.what
	if p.reason != "" {
		text += ": " + p.reason
	}
	if p.figure != "" {
		text += "; it showed " + p.figure
	}
	if p.earlier {
		text += "; it was tried again"
	}
	return text
}

// markNote explains what a mark does to the figures.
func markNote(mark string) string {
	switch mark {
	case result.LimitedByLabMachine:
		return ": all hosts share it, so no statement is made about scaling"
	case result.LimitedByGenerator:
		return ": the cluster could have taken more"
	case result.NotSustained:
		return ": the cluster did not keep up with the rate asked"
	case result.AtSaturation:
		return ": at rate max it is measured from the call"
	}
	return ""
}

// claimTable is one row a comparison.
func (a *analysis) claimTable(notes *footnotes) *table {
	t := &table{}
	t.column("comparison", false)
	where := slices.ContainsFunc(a.claims, func(c *claim) bool { return c.context != "" })
	if where {
		t.column("where", false)
	}
	t.column("change", true)
	t.column("95 % interval", true)
	proportional := slices.ContainsFunc(a.claims, func(c *claim) bool { return c.scaling })
	if proportional {
		t.column("of proportional", true)
	}
	t.column("verdict", false)
	for _, c := range a.claims {
		row := []string{c.what()}
		if where {
			row = append(row, c.context)
		}
		row = append(row, c.change(), c.interval())
		if proportional {
			row = append(row, c.proportional())
		}
		t.rows = append(t.rows, append(row, strings.TrimSpace(c.verdict()+" "+a.claimMarks(c, notes))))
	}
	return t
}

// claimMarks are the footnotes of a comparison: its method, and what weakens it.
func (a *analysis) claimMarks(c *claim, notes *footnotes) string {
	var out []string
	for _, text := range a.claimNotes(c) {
		out = append(out, notes.mark(text))
	}
	return strings.Join(out, " ")
}

func (a *analysis) claimNotes(c *claim) []string {
	var out []string
	if c.tested() {
		out = append(out, a.methodNote(c.diff.method))
	}
	if c.leftOut > 0 && c.withheld == "" {
		out = append(out, fmt.Sprintf("%s limited by the lab machine left out of this comparison", count(c.leftOut, "repeat")))
	}
	if !c.scaling {
		for _, v := range []*cellView{c.from, c.to} {
			if v.limitedByLab() {
				out = append(out, fmt.Sprintf("%s: %s, which holds this ratio down or up", v.name, result.LimitedByLabMachine))
			}
		}
	}
	return out
}

// methodNote says how a difference was tested and corrected.
func (a *analysis) methodNote(method string) string {
	n := 0
	for _, c := range a.claims {
		if c.tested() {
			n++
		}
	}
	if n == 1 {
		return method + "; detected below p = 0.05"
	}
	return fmt.Sprintf("%s; each interval stands for itself, verdicts are corrected for %d comparisons (Holm, p < 0.05)", method, n)
}

// wrap breaks text into lines of at most width characters, those after the
// first indented.
func wrap(text string, width int, indent string) string {
	var out strings.Builder
	length := utf8.RuneCountInString(indent)
	for i, word := range strings.Split(glue(text), " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case length+1+n > width:
			out.WriteString("\n" + indent)
			length = utf8.RuneCountInString(indent)
		default:
			out.WriteString(" ")
			length++
		}
		out.WriteString(word)
		length += n
	}
	return strings.ReplaceAll(out.String(), "\u00a0", " ")
}
