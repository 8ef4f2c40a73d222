package reports

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"krig/internal/experiment"
)

// axisKind says what question an axis asks.
type axisKind int

const (
	categorical axisKind = iota // which one is better: disk profiles, rigs, drivers
	ordered                     // where along it is the best: sizes, rates, thread counts
	scaling                     // how much does each added host help: counts of hosts, processors
)

// An axis is one path of the matrix, or several that change together.
type axis struct {
	paths  []string
	label  string // short, for people: "brokers", "disk", "workers-brokers"
	kind   axisKind
	unit   string   // what one step adds: "broker"; "" unless scaling
	values []string // numbers ascending, others in the plan's order
}

// together stands between the values of paths that change together; no value
// of a file has it.
const together = "\x1f"

// unset is how the plan writes a value of null.
const unset = "default"

// of is the cell's value on this axis.
func (a *axis) of(c *experiment.Cell) string {
	parts := make([]string, len(a.paths))
	for i, path := range a.paths {
		parts[i] = axisValue(c, path)
	}
	return strings.Join(parts, together)
}

// amount is the number of things that a value of a scaling axis stands for.
// Where several change together it is that of the last, the side that serves.
func (a *axis) amount(value string) float64 {
	parts := strings.Split(value, together)
	n, _ := number(parts[len(parts)-1])
	return n
}

func axisValue(c *experiment.Cell, path string) string {
	for _, a := range c.Axes {
		if a.Path == path {
			return a.Value
		}
	}
	return ""
}

// A family is the cells that one block of the matrix made: they vary in the
// same axes and can be compared along them.
type family struct {
	axes  []*axis
	cells []*cellView
}

// families sorts cells into families, in the plan's order.
func families(cells []*cellView) []*family {
	byPaths := map[string]*family{}
	var out []*family
	for _, c := range cells {
		paths := make([]string, len(c.plan.Axes))
		for i, a := range c.plan.Axes {
			paths[i] = a.Path
		}
		key := strings.Join(paths, "\n")
		f := byPaths[key]
		if f == nil {
			f = &family{}
			byPaths[key] = f
			out = append(out, f)
		}
		f.cells = append(f.cells, c)
	}
	for _, f := range out {
		f.axes = axesOf(f.cells)
	}
	return out
}

// fixed is what a family's block sets without varying it, which tells the
// family from others.
func (f *family) fixed() []string {
	var out []string
	for _, a := range f.cells[0].plan.Axes {
		if len(distinct(f.cells, a.Path)) == 1 {
			out = append(out, pathLabel(a.Path)+" "+a.Value)
		}
	}
	return out
}

// axesOf finds the axes along which cells vary.
func axesOf(cells []*cellView) []*axis {
	var axes []*axis
	for _, group := range joined(cells) {
		a := &axis{paths: group}
		for _, c := range cells {
			if v := a.of(c.plan); !slices.Contains(a.values, v) {
				a.values = append(a.values, v)
			}
		}
		a.classify()
		axes = append(axes, a)
	}
	label(axes)
	return axes
}

// joined groups the varying paths: two belong together when the cells do not
// hold every combination of their values, as of paths that change together.
func joined(cells []*cellView) [][]string {
	var groups [][]string
	for _, a := range cells[0].plan.Axes {
		if len(distinct(cells, a.Path)) < 2 {
			continue
		}
		at := slices.IndexFunc(groups, func(g []string) bool {
			return slices.ContainsFunc(g, func(p string) bool { return changeTogether(cells, p, a.Path) })
		})
		if at < 0 {
			groups = append(groups, []string{a.Path})
		} else {
			groups[at] = append(groups[at], a.Path)
		}
	}
	return groups
}

func distinct(cells []*cellView, paths ...string) map[string]bool {
	seen := map[string]bool{}
	for _, c := range cells {
		key := ""
		for _, p := range paths {
			key += axisValue(c.plan, p) + "\n"
		}
		seen[key] = true
	}
	return seen
}

func changeTogether(cells []*cellView, p, q string) bool {
	return len(distinct(cells, p, q)) < len(distinct(cells, p))*len(distinct(cells, q))
}

// classify tells what the axis asks, and puts its values in order.
func (a *axis) classify() {
	if !a.numeric() {
		return // words stay in the order in which the file has them
	}
	a.kind = ordered
	slices.SortStableFunc(a.values, func(x, y string) int { return slices.CompareFunc(split(x), split(y), byNumber) })
	if a.unit = unitOf(a.paths[len(a.paths)-1]); a.unit != "" && a.counts() {
		a.kind = scaling
	}
}

// numeric tells whether the values have an order of their own. An unset key
// has none, and comes after those that have.
func (a *axis) numeric() bool {
	numbers := 0
	for _, v := range a.values {
		for _, part := range split(v) {
			if _, ok := number(part); ok {
				numbers++
			} else if part != unset {
				return false
			}
		}
	}
	return numbers > 0
}

// counts tells whether every path counts something that work is spread over.
func (a *axis) counts() bool {
	for _, p := range a.paths {
		if unitOf(p) == "" {
			return false
		}
	}
	return true
}

// split takes the value of joined paths apart.
func split(value string) []string { return strings.Split(value, together) }

// show is a value as tables and pictures have it: "ssd", "4-5".
func show(value string) string { return strings.ReplaceAll(value, together, "-") }

func byNumber(x, y string) int {
	m, known := number(x)
	n, other := number(y)
	if known != other {
		return map[bool]int{true: -1, false: 1}[known]
	}
	return cmp.Compare(m, n)
}

// unitOf is what one more at this path adds; "" where more is not more hardware.
func unitOf(path string) string {
	switch {
	case strings.HasSuffix(path, "brokers.count"):
		return "broker"
	case strings.HasSuffix(path, "workers.count"):
		return "worker"
	case strings.HasSuffix(path, ".cpus"):
		return "processor"
	}
	return ""
}

// number reads a value of the file that may carry a unit of size, rate or
// time. It compares values along one axis and is shown nowhere.
func number(value string) (float64, bool) {
	digits := strings.ReplaceAll(strings.TrimSpace(value), "_", "")
	at := strings.IndexFunc(digits, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' && r != '-' && r != '+' })
	unit := ""
	if at >= 0 {
		digits, unit = digits[:at], strings.TrimSpace(digits[at:])
	}
	n, err := strconv.ParseFloat(digits, 64)
	factor := unitFactor(strings.TrimSuffix(unit, "/s"))
	return n * factor, err == nil && factor > 0
}

// unitFactor is what a unit of the file holds of its dimension's base; 0 when
// it is no unit.
func unitFactor(unit string) float64 {
	switch unit {
	case "", "B", "s", "per broker", "per worker", "per topic", "per producer":
		return 1
	case "kB", "kbit":
		return 1e3
	case "MB", "mbit":
		return 1e6
	case "GB", "gbit":
		return 1e9
	case "KiB":
		return 1 << 10
	case "MiB":
		return 1 << 20
	case "GiB":
		return 1 << 30
	case "TiB":
		return 1 << 40
	case "ms":
		return 1e-3
	case "m":
		return 60
	case "h":
		return 3600
	}
	return 0
}

// label gives every axis a short name, longer only where two would be the same.
func label(axes []*axis) {
	seen := map[string]int{}
	for _, a := range axes {
		parts := make([]string, len(a.paths))
		for i, p := range a.paths {
			parts[i] = pathLabel(p)
		}
		a.label = strings.Join(parts, "-")
		seen[a.label]++
	}
	for _, a := range axes {
		if seen[a.label] > 1 {
			a.label = strings.Join(a.paths, ", ")
		}
	}
}

// pathLabel is the part of a path that says what varies.
func pathLabel(path string) string {
	if rest, ok := strings.CutPrefix(path, "rigs."); ok {
		if _, after, found := strings.Cut(rest, "."); found {
			path = after
		}
	}
	for _, prefix := range []string{"bench.producer.", "bench.consumer.", "bench.", "kafka.broker.", "kafka."} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			return strings.ReplaceAll(rest, "_", " ")
		}
	}
	switch {
	case strings.HasSuffix(path, ".count"):
		return strings.TrimSuffix(path, ".count")
	case strings.HasSuffix(path, "brokers.disk.profile"):
		return "disk"
	case strings.HasSuffix(path, "brokers.network.rate"):
		return "network"
	}
	return strings.ReplaceAll(path, ".", " ")
}

// words is how a sentence names a value of the axis: "ssd", "2 brokers",
// "batch.size 16384".
func (a *axis) words(value string) string {
	switch {
	case a.kind == scaling && len(a.paths) == 1:
		return value + " " + plural(a.label, value)
	case a.kind == scaling:
		return a.joinedWords(value)
	case a.kind == categorical && len(a.paths) == 1 && wordLike(value):
		return value
	}
	return a.label + " " + show(value)
}

// preposition is what a sentence puts before a value: on a disk or a rig, with
// anything else.
func (a *axis) preposition() string {
	if last := a.paths[len(a.paths)-1]; last == "rig" || strings.HasSuffix(last, "disk.profile") {
		return "on"
	}
	return "with"
}

// joinedWords is "4 workers and 5 brokers".
func (a *axis) joinedWords(value string) string {
	parts := split(value)
	for i := range parts {
		parts[i] += " " + plural(pathLabel(a.paths[i]), parts[i])
	}
	return strings.Join(parts, " and ")
}

func plural(noun, count string) string {
	if count == "1" {
		return strings.TrimSuffix(noun, "s")
	}
	return noun
}

// wordLike tells values that explain themselves from those that need their key.
func wordLike(value string) bool {
	switch value {
	case "true", "false", "all", "default", "none", "max", "":
		return false
	}
	return strings.IndexFunc(value, unicode.IsLetter) == 0
}
