package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A reader fills the types of the file from YAML nodes and goes on after each
// error. A value that it refuses becomes the key's default, so that what
// depends on it can still be looked at.
type reader struct {
	origin
	found *findings
}

// A place is where the reader stands: the dotted path as the user knows it,
// and the same with * for names of rigs and without those of benches.
type place struct{ key, kind string }

func (p place) child(key string) place { return p.named(key, key) }

func (p place) named(name, kind string) place {
	if p.key == "" {
		return place{name, kind}
	}
	return place{p.key + "." + name, p.kind + "." + kind}
}

func (r *reader) refuse(n *yaml.Node, at place, why refusal) {
	r.found.add(r.origin.refuse(n, at.key, why))
}

// experiment reads the whole file but its matrix.
func (r *reader) experiment(root *yaml.Node) *Experiment {
	e := new(Experiment)
	r.group(root, reflect.ValueOf(e).Elem(), place{})
	return e
}

func (r *reader) value(n *yaml.Node, v reflect.Value, f field, at place) {
	if n.Kind == yaml.AliasNode {
		r.refuse(n, at, aliased(n))
		r.fallBack(v, f)
		return
	}
	kind := shapeOf(v.Type())
	if isNull(n) {
		r.refuse(n, at, refusal{reason: "has no value", expected: form(f)})
		r.fallBack(v, f)
		return
	}
	switch kind {
	case axes: // read apart: its paths need the rest of the file
	case group:
		if r.want(n, yaml.MappingNode, f, at) {
			r.group(n, v, at)
		}
	case named:
		if r.want(n, yaml.MappingNode, f, at) {
			r.named(n, v, f, at)
		}
	case foreign:
		if r.want(n, yaml.MappingNode, f, at) {
			r.foreign(n, v, at)
		}
	case free:
		if r.want(n, yaml.MappingNode, f, at) {
			r.free(n, v, at)
		}
	case items:
		r.items(n, v, f, at)
	case words:
		if r.want(n, yaml.SequenceNode, f, at) {
			r.words(n, v, at)
		}
	case source:
		r.source(n, v, f, at)
	case value:
		if r.want(n, yaml.ScalarNode, f, at) {
			r.scalar(n, v, f, at)
		} else {
			r.fallBack(v, f)
		}
	}
}

// want reports a node that has another form than its key needs.
func (r *reader) want(n *yaml.Node, kind yaml.Kind, f field, at place) bool {
	if n.Kind == kind {
		return true
	}
	is := map[yaml.Kind]string{yaml.MappingNode: "a map", yaml.SequenceNode: "a list", yaml.ScalarNode: quoted(n.Value)}[n.Kind]
	r.refuse(n, at, refusal{reason: "is " + is, expected: form(f)})
	return false
}

// pairs calls each for every key of a mapping, after refusing duplicates and
// keys that are no words.
func (r *reader) pairs(n *yaml.Node, at place, each func(key, v *yaml.Node)) {
	first := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind == yaml.AliasNode:
			r.refuse(k, at, aliased(k))
		case k.ShortTag() == "!!merge":
			r.refuse(k, at, refusal{reason: "merge key << is not allowed", expected: "the keys written out"})
		case k.Kind != yaml.ScalarNode || k.Value == "":
			r.refuse(k, at, refusal{reason: "a key must be a word"})
		case first[k.Value] != nil:
			r.refuse(k, at.child(k.Value), refusal{reason: "written twice: first on line " + strconv.Itoa(first[k.Value].Line), expected: "each key once"})
		default:
			first[k.Value] = k
			each(k, v)
		}
	}
}

// group reads a map with keys of ours.
func (r *reader) group(n *yaml.Node, v reflect.Value, at place) {
	fs := fields(v.Type())
	seen := make(map[string]bool)
	r.pairs(n, at, func(k, val *yaml.Node) {
		f, ok := fieldNamed(fs, k.Value)
		if !ok {
			r.refuse(k, at.child(k.Value), unknownKey(at, k.Value, fs))
			return
		}
		seen[f.key] = true
		r.value(val, v.Field(f.index), f, at.child(f.key))
	})
	for _, f := range fs {
		if f.required && !seen[f.key] {
			r.refuse(n, at.child(f.key), refusal{reason: "is missing", expected: form(f)})
		}
	}
}

// unknownKey says what could have been meant: a sibling, or a key of the same
// name elsewhere in the file.
func unknownKey(at place, key string, fs []field) refusal {
	full := at.child(key)
	if why := refuseNotBuilt(full.kind, key); why != nil {
		return *why
	}
	known := keys(fs)
	near := Nearest(key, known)
	if near == "" {
		near = elsewhere(reflect.TypeFor[Experiment](), key, "")
	}
	return refusal{reason: "unknown key", expected: "one of " + strings.Join(known, ", "), nearest: near}
}

// elsewhere finds a key by its own name anywhere below a type.
func elsewhere(t reflect.Type, key, at string) string {
	for _, f := range fields(t) {
		path := strings.TrimPrefix(at+"."+f.key, ".")
		if f.key == key {
			return path
		}
		sub := f.typ
		switch shapeOf(f.typ) {
		case named:
			sub, path = f.typ.Elem(), path+".NAME"
		case items:
			sub = f.typ.Elem()
		case group, source:
		default:
			continue
		}
		if got := elsewhere(sub, key, path); got != "" {
			return got
		}
	}
	return ""
}

// named reads a map with names of the user's.
func (r *reader) named(n *yaml.Node, v reflect.Value, f field, at place) {
	out := reflect.MakeMap(v.Type())
	elem := field{key: f.key, typ: v.Type().Elem()}
	r.pairs(n, at, func(k, val *yaml.Node) {
		here := at.named(k.Value, "*")
		if why := badName(k.Value); why != nil {
			r.refuse(k, here, *why)
		}
		one := reflect.New(v.Type().Elem()).Elem()
		r.value(val, one, elem, here)
		out.SetMapIndex(reflect.ValueOf(k.Value), one)
	})
	if out.Len() == 0 {
		r.refuse(n, at, refusal{reason: "is empty", expected: form(f)})
	}
	v.Set(out)
}

// foreign reads a map from Kafka's names to text, as written.
func (r *reader) foreign(n *yaml.Node, v reflect.Value, at place) {
	out := make(map[string]string)
	r.pairs(n, at, func(k, val *yaml.Node) {
		here := at.child(k.Value)
		switch {
		case val.Kind == yaml.AliasNode:
			r.refuse(val, here, aliased(val))
		case isNull(val):
			r.refuse(val, here, refusal{reason: "has no value", expected: `text, a number, true or false; "" for an empty value`})
		case val.Kind != yaml.ScalarNode:
			r.refuse(val, here, refusal{reason: "is not one value", expected: "text as Kafka reads it; a list is one text with commas"})
		case strings.ContainsAny(val.Value, "\n\r\x00"):
			r.refuse(val, here, refusal{reason: "has more than one line", expected: "text in one line"})
		default:
			out[k.Value] = val.Value
		}
	})
	v.Set(reflect.ValueOf(out))
}

// items reads a list of groups, or one group in its place.
func (r *reader) items(n *yaml.Node, v reflect.Value, f field, at place) {
	nodes, places := []*yaml.Node{n}, []place{at}
	if n.Kind == yaml.SequenceNode {
		nodes, places = n.Content, nil
		for i, item := range nodes {
			places = append(places, place{itemKey(at.key, item, i), at.kind})
		}
		if len(nodes) == 0 {
			r.refuse(n, at, refusal{reason: "is empty", expected: form(f)})
		}
	}
	out := reflect.MakeSlice(v.Type(), len(nodes), len(nodes))
	elem := field{key: f.key, typ: v.Type().Elem()}
	for i, item := range nodes {
		r.value(item, out.Index(i), elem, places[i])
	}
	v.Set(out)
}

// itemKey is the path of an item of a list: by its name where it has one.
func itemKey(at string, item *yaml.Node, i int) string {
	if name := child(item, "name"); name != nil && name.Kind == yaml.ScalarNode && badName(name.Value) == nil {
		return at + "." + name.Value
	}
	return fmt.Sprintf("%s[%d]", at, i)
}

func (r *reader) words(n *yaml.Node, v reflect.Value, at place) {
	var out []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || isNull(item) {
			r.refuse(item, at, refusal{reason: "has an item that is not text", expected: "a list of text"})
			continue
		}
		out = append(out, item.Value)
	}
	v.Set(reflect.ValueOf(out))
}

// source reads the word maven, which is the zero Source, or the map.
func (r *reader) source(n *yaml.Node, v reflect.Value, f field, at place) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		r.group(n, v, at)
	case n.Kind == yaml.MappingNode:
		r.refuse(n, at, refusal{reason: "is empty", expected: form(f)})
	case n.Kind != yaml.ScalarNode || n.Value != "maven":
		near := ""
		if n.Kind == yaml.ScalarNode {
			near = Nearest(n.Value, []string{"maven"})
		}
		r.refuse(n, at, refusal{reason: "is not a source of Kafka", expected: form(f), nearest: near})
	}
}

func (r *reader) scalar(n *yaml.Node, v reflect.Value, f field, at place) {
	why := readScalar(n, v, f)
	if why == nil && len(f.enum) > 0 && !slices.Contains(f.enum, n.Value) {
		why = refuseNotBuilt(at.kind+"="+n.Value, quoted(n.Value))
		if why == nil {
			why = &refusal{reason: quoted(n.Value) + " is not known", expected: form(f), nearest: Nearest(n.Value, f.enum)}
		}
	} else if why != nil {
		if unbuilt := refuseNotBuilt(at.kind+"="+n.Value, quoted(n.Value)); unbuilt != nil {
			why = unbuilt
		}
	}
	if why != nil {
		r.refuse(n, at, *why)
		r.fallBack(v, f)
	}
}

// readScalar reads the text of a node as written.
func readScalar(n *yaml.Node, v reflect.Value, f field) *refusal {
	s := n.Value
	if own, ok := v.Addr().Interface().(scalar); ok {
		return own.read(s, f)
	}
	switch v.Kind() {
	case reflect.Bool:
		if (s != "true" && s != "false") || n.ShortTag() != "!!bool" {
			near := map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}[strings.ToLower(s)]
			return &refusal{reason: quoted(s) + " is neither true nor false", expected: "true or false", nearest: near}
		}
		v.SetBool(s == "true")
	case reflect.Int:
		n, why := whole(s, f.least(1))
		if why != nil {
			return why
		}
		v.SetInt(n)
	case reflect.Uint64:
		u, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 10, 64)
		if !wholePattern.MatchString(s) || err != nil {
			return &refusal{reason: quoted(s) + " is not a whole number from 0 to 18446744073709551615", expected: "a whole number, such as 42"}
		}
		v.SetUint(u)
	case reflect.Float64:
		x, err := strconv.ParseFloat(s, 64)
		if m := quantityPattern.FindStringSubmatch(s); m == nil || m[2] != "" || err != nil || x <= 0 {
			return &refusal{reason: quoted(s) + " is not a number above 0", expected: form(f)}
		}
		v.SetFloat(x)
	case reflect.String:
		if s == "" {
			return &refusal{reason: "is empty", expected: form(f)}
		}
		v.SetString(s)
	}
	return nil
}

// fallBack sets what a refused key would be if it were not there.
func (r *reader) fallBack(v reflect.Value, f field) {
	if def := f.defaultFor(usualProvider); def != "" && shapeOf(v.Type()) == value {
		readScalar(text(def, &yaml.Node{}), v, f)
	} else if v.Kind() == reflect.Int {
		v.SetInt(f.least(1))
	}
}
