package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"krig/internal/kafka"
	"krig/internal/result"
)

// manyValues is the number of values of one setting up to which each is shown.
const manyValues = 3

// A pageHead is the head of one column of the table of cells.
type pageHead struct {
	Text   string
	Figure bool // aligned right
}

// A pageRow is one cell in the table.
type pageRow struct {
	Anchor string
	Names  []pageText // one for each axis, or the cell's name
	Values []pageValue
	Meters []meter
}

// A pageValue is a figure with its footnotes, from 1.
type pageValue struct {
	Text  string
	Marks []int
}

type pageText struct {
	Text   string
	Figure bool
}

// A meter is one share of a limit, drawn small in the table.
type meter struct {
	Known bool
	Width int // percent of the box, at most 100
	Text  string
	Who   string // host
	Full  bool   // at its limit
	Title string
}

// meterKinds are the limits that the table has a column for.
func meterKinds() []struct {
	head  string
	kinds []resource
} {
	return []struct {
		head  string
		kinds []resource
	}{
		{"disk", []resource{diskWrite, diskRead}},
		{"network", []resource{netIn, netOut}},
		{"processors", []resource{processors}},
		{"lab machine", []resource{labMachine}},
	}
}

// pageCellTable is the table of cells: figures as on the terminal, and how
// near each limit was.
func (a *analysis) pageCellTable(notes *footnotes) ([]pageHead, []pageRow) {
	var heads []pageHead
	single := len(a.families) == 1 && len(a.families[0].axes) > 0
	if single {
		for _, x := range a.families[0].axes {
			heads = append(heads, pageHead{x.label, x.kind != categorical})
		}
	} else {
		heads = append(heads, pageHead{"cell", false})
	}
	columns := a.figureColumns()
	for _, c := range columns {
		heads = append(heads, pageHead{c.head, true})
	}
	var shownMeters []int
	for i, m := range meterKinds() {
		if a.anyShare(m.kinds) {
			heads = append(heads, pageHead{m.head, false})
			shownMeters = append(shownMeters, i)
		}
	}
	var rows []pageRow
	for _, c := range a.cells {
		row := pageRow{Anchor: c.anchor}
		row.Names = []pageText{{c.name, false}}
		if single {
			row.Names = nil
			for i, v := range c.values {
				row.Names = append(row.Names, pageText{show(v), a.families[0].axes[i].kind != categorical})
			}
		}
		for i, col := range columns {
			marks := a.latencyMarks(c, columns, i, notes)
			if i == 0 {
				marks += " " + a.cellMarks(c, notes)
			}
			row.Values = append(row.Values, pageValue{glue(col.cell(c)), noteNumbers(marks)})
		}
		for _, i := range shownMeters {
			row.Meters = append(row.Meters, a.meter(c, meterKinds()[i].kinds))
		}
		rows = append(rows, row)
	}
	return heads, rows
}

func (a *analysis) anyShare(kinds []resource) bool {
	return slices.ContainsFunc(a.cells, func(c *cellView) bool {
		_, ok := c.diag.largest(kinds...)
		return ok
	})
}

func (a *analysis) meter(c *cellView, kinds []resource) meter {
	s, ok := c.diag.largest(kinds...)
	if !ok {
		return meter{}
	}
	m := meter{Known: true, Width: min(100, int(s.part()*100+0.5)), Text: glue(percent(s.part())), Who: s.host, Full: s.part() >= atLimit, Title: s.text(a.units)}
	if s.host == machine {
		m.Who = ""
	}
	return m
}

// noteNumbers are the numbers of references such as "[1] [3]".
func noteNumbers(marks string) []int {
	var out []int
	for _, m := range strings.Fields(marks) {
		n := 0
		if _, err := fmt.Sscanf(m, "[%d]", &n); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// A pageClaim is one comparison in its table.
type pageClaim struct {
	What, Where, Change, Interval, Proportional, Verdict string
	Detected                                             bool
	Marks                                                []int
}

// pageClaims is the table of comparisons, and whether any is a step of scaling.
func (a *analysis) pageClaims(notes *footnotes) ([]pageClaim, bool) {
	var out []pageClaim
	steps := false
	for _, c := range a.claims {
		steps = steps || c.scaling
		out = append(out, pageClaim{
			What: glue(c.what()), Where: c.context, Change: glue(c.change()), Interval: glue(c.interval()), Proportional: glue(c.proportional()),
			Verdict: c.verdict(), Detected: c.detected() && c.withheld == "", Marks: noteNumbers(a.claimMarks(c, notes)),
		})
	}
	return out, steps
}

// pageEnvironment is what it was measured on.
type pageEnvironment struct {
	Facts    [][2]string // name and value
	Hosts    []pageHost
	Settings []pageSetting
	Load     []string
	File     string // the effective experiment
}

// A pageHost is hosts that are alike, in all states of their rig.
type pageHost struct {
	Name, Rig, Roles, Processors, Memory, Disk, Link, System string
}

// A pageSetting is one broker setting.
type pageSetting struct {
	Key, Asked, Effective, Brokers string
	Differs                        bool
}

func (a *analysis) pageEnvironment() pageEnvironment {
	env := a.environment()
	e := pageEnvironment{Settings: a.pageSettings(), Load: a.loads()}
	e.Facts = [][2]string{
		{"Kafka", strings.Join(env.Kafka, ", ")}, {"Java", strings.Join(env.Java, ", ")}, {"Kernel", strings.Join(env.Kernel, ", ")},
		{"krig", env.Krig}, {"Order", a.plan.Order}, {"Seed", fmt.Sprint(a.plan.Seed)}, {"Run", a.result.Run},
	}
	e.Facts = slices.DeleteFunc(e.Facts, func(f [2]string) bool { return f[1] == "" })
	e.Hosts = a.pageHosts(env.Hosts)
	if data, err := readEffective(a.run); err == nil {
		e.File = data
	}
	return e
}

// pageHosts are all hosts, alike ones in one row.
func (a *analysis) pageHosts(hosts []envHost) []pageHost {
	var rows []pageHost
	names := map[pageHost][]string{}
	slices.SortStableFunc(hosts, func(x, y envHost) int { return naturally(x.Host.Name, y.Host.Name) })
	for _, h := range hosts {
		row := a.pageHost(h)
		if names[row] == nil {
			rows = append(rows, row)
		}
		if !slices.Contains(names[row], h.Host.Name) {
			names[row] = append(names[row], h.Host.Name)
		}
	}
	for i := range rows {
		rows[i].Name = strings.Join(names[rows[i]], ", ")
	}
	return rows
}

func (a *analysis) pageHost(h envHost) pageHost {
	roles := make([]string, len(h.Host.Roles))
	for i, r := range h.Host.Roles {
		roles[i] = string(r)
	}
	row := pageHost{Rig: h.Rig, Roles: strings.Join(roles, ", "), Disk: "—", Link: "not shaped", Processors: "not limited"}
	if h.Host.CPUs > 0 {
		row.Processors = tickText(h.Host.CPUs) + " at most"
	}
	row.Memory = glue(a.units.configured(float64(h.Host.Memory), result.Bytes))
	if len(h.Host.Disks) > 0 {
		row.Disk = a.diskWords(h)
	}
	if h.Limits.Network != nil && *h.Limits.Network > 0 {
		row.Link = glue(a.units.configured(*h.Limits.Network, result.BytesPerSecond) + " (" + h.Limits.NetSource + ")")
	} else if h.Host.LinkRate > 0 {
		row.Link = glue(a.units.configured(float64(h.Host.LinkRate)/8, result.BytesPerSecond) + " (shaped)")
	}
	if h.Facts != nil {
		row.System = strings.Join(slices.DeleteFunc([]string{h.Facts.OS, h.Facts.CPUModel, fmt.Sprintf("%d processors", h.Facts.Processors)}, func(s string) bool { return s == "" || s == "0 processors" }), ", ")
	}
	return row
}

// diskWords are a host's data disks: their profiles, their figures together.
func (a *analysis) diskWords(h envHost) string {
	var profiles []string
	for _, d := range h.Host.Disks {
		if !slices.Contains(profiles, d.Profile) {
			profiles = append(profiles, d.Profile)
		}
	}
	text := strings.Join(profiles, " and ")
	if n := len(h.Host.Disks); n > 1 {
		text = fmt.Sprintf("%d disks, %s, together", n, text)
	}
	write, read, size := disksTogether(h.Host.Disks)
	if write > 0 {
		text += ": writes " + a.units.configured(float64(write), result.BytesPerSecond)
	}
	if read > 0 {
		text += ", reads " + a.units.configured(float64(read), result.BytesPerSecond)
	}
	return glue(text + ", " + a.units.configured(float64(size), result.Bytes))
}

// pageSettings are all asked settings with what is in effect, differing ones first.
func (a *analysis) pageSettings() []pageSetting {
	var out []pageSetting
	for _, s := range a.settings() {
		row := pageSetting{Key: s.Key, Asked: s.Asked, Effective: "not told", Brokers: strings.Join(s.Brokers, ", "), Differs: true}
		if s.Effective != nil {
			row.Effective = *s.Effective
		}
		out = append(out, row)
	}
	return append(out, a.sameSettings()...)
}

// sameSettings are the asked settings that are in effect as asked, one row a
// key. What every broker has of its own, such as its listeners, is told so.
func (a *analysis) sameSettings() []pageSetting {
	rows := map[string][]pageSetting{}
	for _, c := range a.clusters() {
		for _, n := range c.Brokers {
			for key, asked := range n.Asked {
				effective, told := n.Effective[key]
				row := pageSetting{Key: key, Asked: asked, Effective: effective}
				if told && kafka.SameMeaning(asked, effective) && !slices.Contains(rows[key], row) {
					rows[key] = append(rows[key], row)
				}
			}
		}
	}
	var out []pageSetting
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if n := len(rows[key]); n > manyValues {
			rows[key] = []pageSetting{{Key: key, Asked: fmt.Sprintf("%d values", n), Effective: "as asked"}}
		}
		slices.SortFunc(rows[key], func(x, y pageSetting) int { return strings.Compare(x.Asked, y.Asked) })
		out = append(out, rows[key]...)
	}
	return out
}

// loads are how the load was produced, each way once.
func (a *analysis) loads() []string {
	var out []string
	for _, c := range a.cells {
		for _, rep := range c.result.Repeats {
			for _, l := range loadLines(rep) {
				if !slices.Contains(out, l) {
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// loadLines are how a repeat's load was produced.
func loadLines(rep result.Repeat) []string {
	out := slices.Clone(rep.Load)
	for _, n := range rep.Client.NotApplied {
		out = append(out, n.String())
	}
	for _, c := range rep.Commands {
		out = append(out, c.String())
	}
	return out
}

// pageWrong is what went wrong.
type pageWrong struct {
	Repeats  []problem
	Losses   []loss
	Remarks  []remark
	Warnings []string
}

// Count is the number of things that went wrong.
func (w pageWrong) Count() int {
	return len(w.Repeats) + len(w.Losses) + len(w.Remarks) + len(w.Warnings)
}

func (a *analysis) pageWrong() pageWrong {
	return pageWrong{Repeats: a.problems(), Losses: a.losses(), Remarks: a.remarks(), Warnings: a.environment().Warnings}
}

// What the templates read of unexported values.

// Where names the repeat.
func (p problem) Where() string { return p.where }

// What is invalid, failed or missing.
func (p problem) What() string { return p.what }

// Reason says why.
func (p problem) Reason() string { return p.reason }

// Figure is what it showed.
func (p problem) Figure() string { return glue(p.figure) }

// Earlier tells whether it was tried again.
func (p problem) Earlier() bool { return p.earlier }

// Where names the host and the repeat.
func (l loss) Where() string { return l.where }

// Reason says why.
func (l loss) Reason() string { return l.reason }

// Text is the warning.
func (r remark) Text() string { return r.text }

// Where names the repeats, or counts them where they are many.
func (r remark) Where() string {
	if len(r.where) > manyRepeatsNamed {
		return fmt.Sprintf("%d repeats, first %s", len(r.where), r.where[0])
	}
	return strings.Join(r.where, "; ")
}
