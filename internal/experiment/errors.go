package experiment

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// An Error is one thing that is wrong with an experiment file. [Load] and
// [File.Check] return all of them at once, joined and in the file's order;
// errors.As finds the first.
type Error struct {
	File     string // the path as given, or "--set path=value" for an override
	Line     int    // from 1; 0 for an override
	Column   int    // from 1; 0 for an override
	Key      string // dotted path of the key; "" when the file as a whole is meant
	Reason   string
	Expected string // what would be right; "" when the reason says it
	Nearest  string // the known key or value that comes closest; "" when none does
	Cell     string // the first cell that it concerns; "" when it concerns all
}

// Error is the one-line form: place, key, reason, remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column))
	}
	if e.Key != "" {
		b.WriteString(": " + printable(e.Key))
	}
	b.WriteString(": " + e.Reason)
	if e.Cell != "" {
		b.WriteString(" (in cell " + e.Cell + ")")
	}
	if e.Expected != "" {
		b.WriteString("; expected " + e.Expected)
	}
	if e.Nearest != "" {
		b.WriteString("; did you mean " + e.Nearest + "?")
	}
	return b.String()
}

// printable is text of the file's that neither breaks the line nor commands the terminal.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	return quoted(s)
}

// A refusal is why a value or a key is not taken, before it is known where it stands.
type refusal struct {
	reason, expected, nearest string
}

// findings gathers errors, each only once: a matrix meets the same line in many cells.
type findings struct {
	list []*Error
	seen map[Error]bool
}

func (f *findings) add(e *Error) {
	same := *e
	same.Cell = ""
	if f.seen[same] {
		return
	}
	if f.seen == nil {
		f.seen = make(map[Error]bool)
	}
	f.seen[same] = true
	f.list = append(f.list, e)
}

// joined is all that was found, in the file's order; nil when that is nothing.
func joined(found ...findings) error {
	var all findings
	for _, f := range found {
		for _, e := range f.list {
			all.add(e)
		}
	}
	slices.SortStableFunc(all.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, len(all.list))
	for i, e := range all.list {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// poisons tells whether an error concerns the key, something in it, or what holds it.
func (f *findings) poisons(key string) bool {
	return slices.ContainsFunc(f.list, func(e *Error) bool {
		return e.Key == key || strings.HasPrefix(e.Key, key+".") || strings.HasPrefix(key, e.Key+".")
	})
}

// Nearest is the candidate that is fewest edits away from what was written, or
// "" when all are too far to be what was meant.
func Nearest(written string, candidates []string) string {
	best, bestDistance := "", max(2, len(written)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(written), strings.ToLower(c)); d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// longestWord is how much of a word is compared.
const longestWord = 80

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b. Long words are cut: nobody meant them.
func distance(a, b string) int {
	a, b = a[:min(len(a), longestWord)], b[:min(len(b), longestWord)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
