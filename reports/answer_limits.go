package reports

import (
	"fmt"
	"slices"
	"strings"
)

// limits says in how many cells what was at its limit, with the fullest's figures.
func (a *analysis) limits() string {
	var order []resource
	cells := map[resource][]*cellView{}
	undetermined := 0
	for _, c := range a.cells {
		first := c.diag.first()
		if c.summary.N > 0 && len(first) == 0 {
			undetermined++
		}
		for _, s := range first {
			if cells[s.what] == nil {
				order = append(order, s.what)
			}
			cells[s.what] = append(cells[s.what], c)
		}
	}
	if len(order) == 0 {
		return sentence("what was at its limit is " + a.bestCell().diag.sentence(a.units))
	}
	parts := make([]string, len(order))
	for i, what := range order {
		parts[i] = a.limitClause(what, cells[what])
	}
	text := "at its limit: " + strings.Join(parts, "; ")
	if undetermined > 0 {
		text += fmt.Sprintf("; not determined in %s", count(undetermined, "cell"))
	}
	return sentence(text)
}

// limitClause is one resource: in how many cells, and the fullest with figures.
func (a *analysis) limitClause(what resource, cells []*cellView) string {
	fullest := slices.MaxFunc(cells, func(p, q *cellView) int {
		s, _ := p.diag.largest(what)
		t, _ := q.diag.largest(what)
		if s.part() > t.part() {
			return 1
		}
		return -1
	})
	s, _ := fullest.diag.largest(what)
	if len(a.cells) == 1 {
		return s.text(a.units)
	}
	return fmt.Sprintf("%s in %d of %d cells (most %s: %s)", what.plural(), len(cells), len(a.cells), fullest.phrase, s.brief(a.units))
}
