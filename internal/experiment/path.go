package experiment

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// names are what paths may go through: a file's rigs and benches.
type names struct {
	rigs    []string
	benches []string // by position; "" for one without a name
	listed  bool     // bench is written as a list
}

func namesIn(root *yaml.Node) names {
	var ns names
	if rigs := child(root, "rigs"); rigs != nil && rigs.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(rigs.Content); i += 2 {
			if name := rigs.Content[i].Value; !slices.Contains(ns.rigs, name) {
				ns.rigs = append(ns.rigs, name)
			}
		}
	}
	bench := child(root, "bench")
	if bench == nil || bench.Kind != yaml.SequenceNode {
		return ns
	}
	ns.listed = true
	for _, item := range bench.Content {
		name := ""
		if n := child(item, "name"); n != nil {
			name = n.Value
		}
		ns.benches = append(ns.benches, name)
	}
	return ns
}

// A target is a scalar of the file that a dotted path names.
type target struct {
	steps []string // the keys from the top, names of rigs included and of benches not
	rig   string   // the rig that it belongs to; "" for none
	bench int      // the item of a list of benches; -1 for whichever the cell has
	axis  string   // rig or bench, where the path names that axis itself
	field field
}

// same identifies what is varied: two paths with the same one vary the same.
func (t target) same() string { return strings.Join(t.steps, ".") + t.axis }

// runWide are keys of the run as a whole: they can be overridden, not varied.
func runWide() []string {
	return []string{"version", "name", "repeat", "retries", "order", "seed", "limit"}
}

// resolve finds what a dotted path names. With one rig its name may be left out.
func (ns names) resolve(path string) (target, *refusal) {
	t := target{bench: -1}
	if path == "rig" || path == "bench" {
		t.axis = path
		return t, ns.axisRefusal(path)
	}
	segments := strings.Split(path, ".")
	top := reflect.TypeFor[Experiment]()
	if _, ok := fieldNamed(fields(top), segments[0]); !ok && ns.inRig(segments[0]) {
		if len(ns.rigs) != 1 {
			return t, &refusal{reason: "which rig is meant?", expected: "rigs.NAME." + path + " with NAME one of " + strings.Join(ns.rigs, ", ")}
		}
		segments = append([]string{"rigs", ns.rigs[0]}, segments...)
	}
	why, rest := ns.descend(&t, top, segments)
	if why != nil && why.nearest != "" && !strings.Contains(why.nearest, ".") { // one segment: say the whole path
		given := strings.Split(path, ".")
		given[len(given)-len(rest)] = why.nearest
		why.nearest = strings.Join(given, ".")
	}
	return t, why
}

func (ns names) axisRefusal(axis string) *refusal {
	switch {
	case axis == "bench" && !ns.listed:
		return &refusal{reason: "there is only one bench", expected: "a path of one of its keys, such as bench.record_size"}
	}
	return nil
}

// inRig tells whether a path may begin with this word because a rig has it,
// built or not.
func (ns names) inRig(segment string) bool {
	_, ok := fieldNamed(fields(reflect.TypeFor[Rig]()), segment)
	return ok || isNotBuilt("rigs.*."+segment)
}

// descend follows segments through the types. With a refusal comes the rest
// of the segments, of which the first is not known.
func (ns names) descend(t *target, typ reflect.Type, segments []string) (*refusal, []string) {
	at := place{}
	for len(segments) > 0 {
		f, ok := fieldNamed(fields(typ), segments[0])
		if !ok {
			return ns.unknown(at, typ, segments[0]), segments
		}
		at = at.child(f.key)
		t.steps, t.field, segments = append(t.steps, f.key), f, segments[1:]
		switch shapeOf(f.typ) {
		case group, source:
			typ = f.typ
		case named:
			if len(segments) == 0 {
				break
			}
			if !slices.Contains(ns.rigs, segments[0]) {
				return &refusal{reason: "there is no rig " + quoted(segments[0]), expected: "one of " + strings.Join(ns.rigs, ", "), nearest: Nearest(segments[0], ns.rigs)}, segments
			}
			t.rig, typ, at = segments[0], f.typ.Elem(), at.named(segments[0], "*")
			t.steps, segments = append(t.steps, segments[0]), segments[1:]
		case items:
			typ = f.typ.Elem()
			t.bench, segments = ns.item(typ, segments)
		case foreign:
			return t.foreign(segments), nil
		case free:
			return t.free(segments), nil
		default:
			return t.end(segments), nil
		}
	}
	if shapeOf(t.field.typ) == source {
		return nil, nil
	}
	return &refusal{reason: "names a group of keys", expected: "one scalar below it: " + strings.Join(keys(fields(typ)), ", ")}, nil
}

// item takes the name of a bench off the segments, where one leads them.
func (ns names) item(typ reflect.Type, segments []string) (int, []string) {
	if len(segments) == 0 || !ns.listed {
		return -1, segments
	}
	if _, key := fieldNamed(fields(typ), segments[0]); key {
		return -1, segments
	}
	i := slices.Index(ns.benches, segments[0])
	if i < 0 {
		return -1, segments
	}
	return i, segments[1:]
}

// unknown is [unknownKey] for paths, in which also names and what one rig has
// may have been meant.
func (ns names) unknown(at place, typ reflect.Type, segment string) *refusal {
	why := unknownKey(at, segment, fields(typ))
	var more []string
	switch {
	case at.key == "" && len(ns.rigs) == 1:
		more = keys(fields(reflect.TypeFor[Rig]()))
	case at.key == "bench":
		more = ns.benches
	}
	if near := Nearest(segment, more); near != "" && (why.nearest == "" || strings.Contains(why.nearest, ".")) {
		why.nearest = near
	}
	return &why
}

// foreign takes the rest of a path as one of Kafka's names.
func (t *target) foreign(rest []string) *refusal {
	name := strings.Join(rest, ".")
	if name == "" {
		return &refusal{reason: "names a map of Kafka's names", expected: strings.Join(t.steps, ".") + ".NAME, such as " + strings.Join(t.steps, ".") + ".batch.size"}
	}
	t.steps = append(t.steps, name)
	t.field = field{key: name, typ: reflect.TypeFor[string]()}
	return nil
}

// end checks that a path ends where a scalar does.
func (t *target) end(rest []string) *refusal {
	switch {
	case shapeOf(t.field.typ) != value:
		return &refusal{reason: "is a list or a map as a whole", expected: "the path of one scalar"}
	case len(rest) > 0:
		return &refusal{reason: "there is nothing below " + t.field.key, expected: strings.Join(t.steps, ".")}
	}
	return nil
}

// badName refuses names that cannot stand in paths, host names and directories.
func badName(name string) *refusal {
	const longest = 40
	good := name != "" && len(name) <= longest
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		good = good && (letter || i > 0 && (r == '-' || r == '_'))
	}
	if good {
		return nil
	}
	return &refusal{reason: quoted(name) + " cannot be a name", expected: "at most 40 letters, digits, - and _, beginning with a letter or a digit"}
}
