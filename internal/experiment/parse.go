package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// sizeMax bounds the file: beyond it, it is no experiment.
const sizeMax = 1 << 20

// depthMax bounds the nesting that is followed.
const depthMax = 50

var (
	yamlLine      = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// An origin says where nodes come from: the file, or an override. The nodes of
// an override have the negative number of its place in overrides as Line,
// because a node has no other room for it.
type origin struct {
	file      string
	overrides []string // "path=value"
}

// at is an Error with the place of a node filled in.
func (o origin) at(n *yaml.Node) *Error {
	if n.Line < 0 {
		return &Error{File: "--set " + o.overrides[-n.Line-1]}
	}
	return &Error{File: o.file, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// refuse is an Error at a node.
func (o origin) refuse(n *yaml.Node, key string, r refusal) *Error {
	e := o.at(n)
	e.Key, e.Reason, e.Expected, e.Nearest = key, r.reason, r.expected, r.nearest
	return e
}

// parse turns the file's text into its top mapping. What YAML itself refuses
// comes with the YAML library's words.
func (o origin) parse(data []byte) (*yaml.Node, *Error) {
	fail := func(line int, reason string) (*yaml.Node, *Error) {
		return nil, &Error{File: o.file, Line: line, Column: 1, Reason: reason, Expected: "one YAML document with the keys of an experiment"}
	}
	if len(data) > sizeMax {
		return fail(1, fmt.Sprintf("the file has more than %d bytes", sizeMax))
	}
	if i := invalidUTF8(data); i >= 0 {
		return fail(1+bytes.Count(data[:i], []byte("\n")), "not UTF-8 text")
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return fail(1, "the file is empty")
	} else if err != nil {
		line, reason := yamlReason(data, err)
		return fail(line, reason)
	}
	if err := d.Decode(&more); err == nil {
		return fail(max(more.Line, 1), "a second document begins here")
	} else if !errors.Is(err, io.EOF) {
		line, reason := yamlReason(data, err)
		return fail(line, reason)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return fail(max(doc.Line, 1), "the file is not a map of keys")
	}
	return doc.Content[0], nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func yamlReason(data []byte, err error) (int, string) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m := yamlLine.FindStringSubmatch(first)
	if m == nil {
		return 1, first
	}
	line, _ := strconv.Atoi(m[1])
	if strings.HasPrefix(m[2], "did not find expected") {
		line++ // the library counts lines from 0 where its parser, not its scanner, fails
	}
	if indentedByTab(data, line) {
		return line, "not YAML: the line is indented by a tab, where YAML takes spaces alone"
	}
	if a := unknownAnchor.FindStringSubmatch(m[2]); a != nil { // the one error without a line
		before, _, _ := bytes.Cut(data, []byte("*"+a[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	return max(line, 1), "not YAML: " + m[2]
}

// indentedByTab tells whether a line, from 1, has a tab before its text.
func indentedByTab(data []byte, line int) bool {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	text := bytes.TrimLeft(lines[line-1], " ")
	return bytes.HasPrefix(text, []byte("\t"))
}

// refuseYAML reports what an experiment does not use of YAML and no key shows:
// anchors, tags, and endless nesting, which alone is false: nothing may follow it.
func (o origin) refuseYAML(n *yaml.Node, found *findings, depth int) bool {
	if depth > depthMax {
		found.add(o.refuse(n, "", refusal{reason: "nested too deeply"}))
		return false
	}
	if n.Anchor != "" {
		found.add(o.refuse(n, "", refusal{reason: "anchor &" + n.Anchor + " is not allowed", expected: "the value written out where it is needed"}))
	}
	if n.Style&yaml.TaggedStyle != 0 {
		found.add(o.refuse(n, "", refusal{reason: "tag " + n.Tag + " is not allowed", expected: "the value without a tag"}))
	}
	for _, child := range n.Content {
		if !o.refuseYAML(child, found, depth+1) {
			return false
		}
	}
	return true
}

// aliased is the refusal of an alias.
func aliased(n *yaml.Node) refusal {
	return refusal{reason: "alias *" + n.Value + " is not allowed", expected: "the value written out"}
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// child is the value under a key of a mapping; nil where there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// keyNode is the key itself.
func keyNode(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i]
		}
	}
	return nil
}

// text is a scalar node as if it had been written where like stands. Only
// what would be read as null is quoted.
func text(s string, like *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s, Line: like.Line, Column: like.Column}
	if isNull(n) {
		n.Tag = "!!str"
	}
	return n
}

// with is a copy of a mapping in which key has the value; a nil value takes
// the key out. What is not a mapping is replaced by one. The original stays.
func with(n *yaml.Node, key string, v *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	if n != nil {
		out.Line, out.Column = n.Line, n.Column
	} else if v != nil {
		out.Line, out.Column = v.Line, v.Column
	}
	replaced := false
	if n != nil && n.Kind == yaml.MappingNode {
		out.Style = n.Style
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, old := n.Content[i], n.Content[i+1]
			if k.Value == key {
				replaced = true
				old = v
			}
			if old != nil {
				out.Content = append(out.Content, k, old)
			}
		}
	}
	if !replaced && v != nil {
		out.Content = append(out.Content, text(key, v), v)
	}
	return out
}

// put is [with] for a path of keys. bench is the item that a list of benches
// is entered at; taking out the last key of a map that the path made, takes
// out the map.
func put(n *yaml.Node, path []string, bench int, v *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.SequenceNode {
		if bench < 0 || bench >= len(n.Content) {
			return n
		}
		out := *n
		out.Content = append([]*yaml.Node(nil), n.Content...)
		out.Content[bench] = put(n.Content[bench], path, bench, v)
		return &out
	}
	if len(path) == 1 {
		return with(n, path[0], v)
	}
	sub := child(n, path[0])
	if v == nil && (sub == nil || sub.Kind == yaml.ScalarNode) {
		return n // nothing to take out
	}
	return with(n, path[0], put(sub, path[1:], bench, v))
}

// find follows a path of keys, as [put] does, as far as it goes. It returns
// the last value met, its key (nil at the top), and whether all was met.
func find(n *yaml.Node, path []string, bench int) (value, key *yaml.Node, whole bool) {
	for _, step := range path {
		if n.Kind == yaml.SequenceNode && bench >= 0 && bench < len(n.Content) {
			n = n.Content[bench]
		}
		next := child(n, step)
		if next == nil {
			return n, key, false
		}
		key, n = keyNode(n, step), next
	}
	return n, key, true
}

// bare is a deep copy without comments, with other text in some scalars.
func bare(n *yaml.Node, other map[*yaml.Node]string) *yaml.Node {
	out := *n
	if s, ok := other[n]; ok {
		out.Value = s
	}
	out.HeadComment, out.LineComment, out.FootComment = "", "", ""
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = bare(c, other)
	}
	return &out
}
