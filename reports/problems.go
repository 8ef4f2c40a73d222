package reports

import (
	"fmt"
	"strings"

	"krig/internal/result"
)

const (
	// manyRepeatsNamed is the number of left-out repeats up to which a sentence names them.
	manyRepeatsNamed = 3

	// reasonInSentence is how many letters of a reason a sentence holds.
	reasonInSentence = 110
)

// leftOut names the repeats that do not count, or counts them where they are
// many. Earlier attempts at a repeat that was made again are no loss.
func (a *analysis) leftOut() string {
	var named []string
	for _, p := range a.problems() {
		if !p.earlier {
			named = append(named, fmt.Sprintf("%s (%s: %s)", p.where, p.what, cut(p.reason)))
		}
	}
	switch {
	case len(named) == 0:
		return ""
	case len(named) > manyRepeatsNamed:
		return fmt.Sprintf("%d repeats are not counted; each is named below.", len(named))
	}
	return sentence("not counted: " + and(named))
}

// cut shortens a reason for a sentence; it stands in full below.
func cut(reason string) string {
	runes := []rune(reason)
	if len(runes) <= reasonInSentence {
		return reason
	}
	return strings.TrimRight(string(runes[:reasonInSentence]), " ,;:") + "…"
}

// A problem is one repeat, or an earlier attempt at one, that does not count.
type problem struct {
	cell    *cellView
	where   string // "repeat 2 of 3 brokers, ssd"
	what    string // "invalid", "failed", "missing"
	reason  string
	figure  string // what an invalid one showed; "" when it showed nothing
	earlier bool   // the repeat was tried again
}

// problems lists what does not count, in the plan's order.
func (a *analysis) problems() []problem {
	var out []problem
	for _, c := range a.cells {
		for _, try := range attempts(c.result) {
			if try.Status == result.Valid && !try.earlier {
				continue
			}
			p := problem{cell: c, where: try.name() + " of " + c.name, what: string(try.Status), reason: plain(try.Reason), earlier: try.earlier}
			if v, ok := try.Measures.Get(a.measure.name); ok {
				p.figure = a.measure.noun + " " + a.units.show(v, a.measure.unit)
			}
			out = append(out, p)
		}
		for _, n := range c.result.Missing {
			out = append(out, problem{cell: c, where: fmt.Sprintf("repeat %d of %s", n, c.name), what: "missing", reason: "it was not measured"})
		}
	}
	return out
}

// plain puts a reason of several lines on one.
func plain(reason string) string {
	lines := strings.FieldsFunc(reason, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}
