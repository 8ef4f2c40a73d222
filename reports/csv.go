package reports

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"

	"krig/internal/result"
)

// CSV writes one line for each measure of each repeat, in base units and
// exact. Columns: cell, one for each axis (sorted by path), repeat, attempt, status,
// host (empty for the load as a whole), measure, value (empty when not known), unit, reason
// (why a value is not known). A repeat without any measure has one line, with why.
func CSV(w io.Writer, r *result.Run) error {
	axes := axisPaths(r)
	out := csv.NewWriter(w)
	head := append([]string{"cell"}, axes...)
	lines := [][]string{append(head, "repeat", "attempt", "status", "host", "measure", "value", "unit", "reason")}
	for i := range r.Cells {
		lines = append(lines, cellLines(&r.Cells[i], axes)...)
	}
	if err := out.WriteAll(lines); err != nil {
		return err
	}
	return out.Error()
}

// axisPaths are all axes of all cells, sorted.
func axisPaths(r *result.Run) []string {
	seen := map[string]bool{}
	for _, c := range r.Cells {
		for path := range c.Axes {
			seen[path] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func cellLines(c *result.Cell, axes []string) [][]string {
	var out [][]string
	for _, rep := range c.Repeats {
		head := []string{c.ID}
		for _, path := range axes {
			head = append(head, c.Axes[path])
		}
		head = append(head, strconv.Itoa(rep.Repeat), strconv.Itoa(rep.Attempt), string(rep.Status))
		lines := measureLines(head, "", rep.Measures)
		for _, host := range slices.SortedFunc(maps.Keys(rep.Hosts), naturally) {
			lines = append(lines, measureLines(head, host, rep.Hosts[host].Measures)...)
		}
		if len(lines) == 0 {
			lines = [][]string{append(slices.Clone(head), "", "", "", "", rep.Reason)}
		}
		out = append(out, lines...)
	}
	return out
}

func measureLines(head []string, host string, measures result.Measures) [][]string {
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(measures)) {
		m := measures[name]
		value := ""
		if m.Value != nil {
			value = strconv.FormatFloat(*m.Value, 'f', -1, 64)
		}
		out = append(out, append(slices.Clone(head), host, name, value, m.Unit, m.Reason))
	}
	return out
}
