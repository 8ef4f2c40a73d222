package experiment

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// idMax is the longest ID of a cell; it names a directory.
const idMax = 120

// cellNames gives cells their IDs: the shortest names that tell a plan's axes
// apart, with the values as written as far as a directory's name may hold them.
type cellNames struct {
	short map[string]string // path as spelled -> short name
	used  map[string]bool
}

func newCellNames(blocks [][]axis, m matrixReader) *cellNames {
	n := &cellNames{short: make(map[string]string), used: make(map[string]bool)}
	var targets []target
	var paths []string
	for _, b := range blocks {
		for _, a := range m.implied(b) {
			for i, path := range a.paths {
				if !slices.Contains(paths, path) {
					paths, targets = append(paths, path), append(targets, a.targets[i])
				}
			}
		}
	}
	for i, path := range paths {
		for length := 1; ; length++ {
			name := shortName(targets[i], length)
			n.short[path] = name
			if length >= len(targets[i].steps) || !taken(name, targets, i, length) {
				break
			}
		}
	}
	return n
}

// taken tells whether another axis has the same name at this length.
func taken(name string, targets []target, i, length int) bool {
	for j, other := range targets {
		if j != i && other.same() != targets[i].same() && shortName(other, length) == name {
			return true
		}
	}
	return false
}

// shortName is the last keys of a path. A count goes by its pool alone.
func shortName(t target, length int) string {
	if t.axis != "" {
		return t.axis
	}
	steps := t.steps
	if len(steps) > 1 && steps[len(steps)-1] == "count" {
		steps = steps[:len(steps)-1]
	}
	return strings.Join(steps[max(0, len(steps)-length):], ".")
}

// id is a name that no earlier cell has.
func (n *cellNames) id(axes []Axis) string {
	var parts []string
	for _, a := range axes {
		parts = append(parts, safe(n.short[a.Path])+"="+safe(a.Value))
	}
	id := strings.Join(parts, ",")
	if id == "" {
		id = "cell"
	}
	if len(id) > idMax {
		h := fnv.New32a()
		h.Write([]byte(id))
		id = fmt.Sprintf("%s~%08x", id[:idMax-9], h.Sum32())
	}
	for base, i := id, 2; n.used[strings.ToLower(id)]; i++ { // some file systems fold case
		id = fmt.Sprintf("%s~%d", base, i)
	}
	n.used[strings.ToLower(id)] = true
	return id
}

// safe keeps what is fit for a directory's name on every system.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r) {
			return r
		}
		return '-'
	}, s)
}
