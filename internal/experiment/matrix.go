package experiment

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// cellsMax bounds how many points a matrix may have.
const cellsMax = 10_000

// An axis is one line of a block, ready to be applied.
type axis struct {
	key     *yaml.Node // where it stands
	paths   []string   // as spelled
	targets []target
	rows    [][]*yaml.Node // one node a target; nil or null unsets
}

// A point is one combination of values, before it is applied.
type point struct {
	rig    string
	bench  int // item of the list; 0 where there is only one
	values []assignment
}

// An assignment is one varied path and its value at a point.
type assignment struct {
	path   string
	target target
	node   *yaml.Node
}

// shown is a matrix value as reports and plans show it.
func shown(n *yaml.Node) string {
	if isNull(n) {
		return "default"
	}
	return n.Value
}

// A matrixReader reads the matrix. Axes that are wrong are reported and left
// out, so that the rest can still be looked at.
type matrixReader struct {
	origin
	names names
	found *findings
}

// read returns the blocks, and the same as the file's types show them. No
// matrix is one block without axes.
func (m *matrixReader) read(n *yaml.Node) ([][]axis, []Block) {
	if n == nil {
		return [][]axis{nil}, nil
	}
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 || isNull(n) {
		nodes = nil
		m.refuse(n, "matrix", refusal{reason: "is empty", expected: "axes, or no matrix at all"})
	}
	var blocks [][]axis
	var written []Block
	for _, b := range nodes {
		block, show := m.block(b)
		blocks, written = append(blocks, block), append(written, show)
	}
	if len(blocks) == 0 {
		blocks = [][]axis{nil}
	}
	return blocks, written
}

func (m *matrixReader) refuse(n *yaml.Node, key string, why refusal) {
	m.found.add(m.origin.refuse(n, key, why))
}

func (m *matrixReader) block(n *yaml.Node) ([]axis, Block) {
	if n.Kind == yaml.AliasNode {
		m.refuse(n, "matrix", aliased(n))
		return nil, nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		m.refuse(n, "matrix", refusal{reason: "a block without axes", expected: "a map from dotted paths to lists of values"})
		return nil, nil
	}
	var block []axis
	var show Block
	varied := make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		a, ok := m.axis(n.Content[i], n.Content[i+1], varied)
		if !ok {
			continue
		}
		block = append(block, a)
		line := BlockAxis{Paths: a.paths}
		for _, row := range a.rows {
			values := make([]string, len(row))
			for j, v := range row {
				values[j] = shown(v)
			}
			line.Values = append(line.Values, values)
		}
		show = append(show, line)
	}
	return block, show
}

// axis reads one line of a block. varied holds what the block's earlier lines vary.
func (m *matrixReader) axis(k, v *yaml.Node, varied map[string]string) (axis, bool) {
	a := axis{key: k}
	if k.Kind != yaml.ScalarNode || k.Value == "" {
		m.refuse(k, "matrix", refusal{reason: "an axis must be a dotted path, or several joined by commas"})
		return a, false
	}
	good := true
	for path := range strings.SplitSeq(k.Value, ",") {
		path = strings.TrimSpace(path)
		t, why := m.names.resolve(path)
		if why == nil && t.axis == "" && slices.Contains(runWide(), t.steps[0]) {
			why = &refusal{reason: "belongs to the whole run and cannot vary between its cells"}
		}
		if why == nil && varied[t.same()] != "" {
			why = &refusal{reason: "is varied twice in one block: also as " + varied[t.same()]}
		}
		if why != nil {
			m.refuse(k, "matrix."+path, *why)
			good = false
			continue
		}
		varied[t.same()] = path
		a.paths, a.targets = append(a.paths, path), append(a.targets, t)
	}
	width := strings.Count(k.Value, ",") + 1
	rows, rowsGood := m.rows(k, v, width)
	a.rows = rows
	return a, good && rowsGood && m.axisValues(k, a)
}

// rows reads the values of an axis of so many paths.
func (m *matrixReader) rows(k, v *yaml.Node, width int) ([][]*yaml.Node, bool) {
	key := "matrix." + k.Value
	if v.Kind == yaml.AliasNode {
		m.refuse(v, key, aliased(v))
		return nil, false
	}
	if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
		reason := "an axis needs a list of values"
		if v.Kind == yaml.SequenceNode {
			reason = "an axis without values"
		}
		m.refuse(v, key, refusal{reason: reason, expected: "a list such as [1, 2, 3]"})
		return nil, false
	}
	var rows [][]*yaml.Node
	good := true
	for _, item := range v.Content {
		row := []*yaml.Node{item}
		if width > 1 {
			if item.Kind != yaml.SequenceNode || len(item.Content) != width {
				m.refuse(item, key, refusal{reason: rowReason(item, width), expected: fmt.Sprintf("a list of %d values, one for each path", width)})
				good = false
				continue
			}
			row = item.Content
		}
		for _, n := range row {
			switch n.Kind {
			case yaml.ScalarNode:
				continue
			case yaml.AliasNode:
				m.refuse(n, key, aliased(n))
			default:
				m.refuse(n, key, refusal{reason: "a value that is a map or a list", expected: "one scalar, or null for the default"})
			}
			good = false
		}
		rows = append(rows, row)
	}
	return rows, good
}

func rowReason(item *yaml.Node, width int) string {
	if item.Kind != yaml.SequenceNode {
		return fmt.Sprintf("one value for %d joined paths", width)
	}
	return fmt.Sprintf("%d values for %d joined paths", len(item.Content), width)
}

// axisValues checks the values of the axes rig and bench, which no key reads.
func (m *matrixReader) axisValues(k *yaml.Node, a axis) bool {
	good := true
	for i, t := range a.targets {
		known := m.names.rigs
		if t.axis == "bench" {
			known = m.names.benches
		}
		for _, row := range a.rows {
			if t.axis == "" || slices.Contains(known, row[i].Value) && !isNull(row[i]) {
				continue
			}
			m.refuse(row[i], "matrix."+a.paths[i], refusal{reason: "there is no " + t.axis + " " + quoted(row[i].Value),
				expected: "one of " + strings.Join(known, ", "), nearest: Nearest(row[i].Value, known)})
			good = false
		}
	}
	return good
}

// points expands blocks. Several rigs, and several benches, are axes that
// every block has unless it names them itself.
func (m *matrixReader) points(n *yaml.Node, blocks [][]axis) []point {
	total := 0
	full := make([][]axis, len(blocks))
	for i, b := range blocks {
		full[i] = m.implied(b)
		size := 1
		for _, a := range full[i] {
			size = min(size*len(a.rows), cellsMax+1)
		}
		total += size
	}
	if total > cellsMax {
		m.refuse(n, "matrix", refusal{reason: "has too many cells", expected: fmt.Sprintf("at most %d", cellsMax)})
		return nil
	}
	var out []point
	for _, b := range full {
		out = append(out, m.product(b)...)
	}
	return out
}

func (m *matrixReader) implied(b []axis) []axis {
	has := func(name string) bool {
		return slices.ContainsFunc(b, func(a axis) bool {
			return slices.ContainsFunc(a.targets, func(t target) bool { return t.axis == name })
		})
	}
	var out []axis
	add := func(name string, values []string) {
		a := axis{paths: []string{name}, targets: []target{{axis: name, bench: -1}}}
		for _, v := range values {
			a.rows = append(a.rows, []*yaml.Node{{Kind: yaml.ScalarNode, Value: v}})
		}
		out = append(out, a)
	}
	if len(m.names.rigs) > 1 && !has("rig") {
		add("rig", m.names.rigs)
	}
	if len(m.names.benches) > 1 && !has("bench") {
		add("bench", m.names.benches)
	}
	return append(out, b...)
}

// product combines the axes, the first changing slowest.
func (m *matrixReader) product(b []axis) []point {
	at := make([]int, len(b))
	var out []point
	for {
		var all []assignment
		for i, a := range b {
			for j, t := range a.targets {
				all = append(all, assignment{a.paths[j], t, a.rows[at[i]][j]})
			}
		}
		out = append(out, m.point(all))
		i := len(b) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(b[i].rows) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return out
		}
	}
}

// point keeps of the values those that count for its rig and its bench.
func (m *matrixReader) point(all []assignment) point {
	p := point{}
	if len(m.names.rigs) > 0 {
		p.rig = m.names.rigs[0]
	}
	for _, a := range all {
		switch a.target.axis {
		case "rig":
			p.rig = a.node.Value
		case "bench":
			p.bench = slices.Index(m.names.benches, a.node.Value)
		}
	}
	for _, a := range all {
		t := a.target
		if (t.rig == "" || t.rig == p.rig) && (t.bench < 0 || t.bench == p.bench) {
			p.values = append(p.values, a)
		}
	}
	return p
}

// apply is the file at this point.
func (p point) apply(root *yaml.Node) *yaml.Node {
	for _, a := range p.values {
		if a.target.axis != "" {
			continue
		}
		v := a.node
		if isNull(v) {
			v = nil
		}
		root = put(root, a.target.steps, p.bench, v)
	}
	return root
}

// axes are the point's values as the cell shows them.
func (p point) axes() []Axis {
	out := []Axis{}
	for _, a := range p.values {
		out = append(out, Axis{Path: a.path, Value: shown(a.node)})
	}
	return out
}
