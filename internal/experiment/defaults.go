package experiment

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// complete is the file with every key written out that has a default and is
// not there. This is the one place where defaults are applied.
//
// Some defaults depend on other keys. held tells that a matrix varies such a
// key (of the named group, by its path), so that the default cannot be told
// before a cell is chosen: then it is left out. Nil holds nothing.
func complete(root *yaml.Node, held func(path string) bool) *yaml.Node {
	if held == nil {
		held = func(string) bool { return false }
	}
	c := completer{held: held, provider: usualProvider}
	return c.group(root, reflect.TypeFor[Experiment](), "")
}

// A completer adds defaults.
type completer struct {
	held     func(path string) bool
	provider string // of the rig that it is in; "" where the matrix varies it
}

func (c completer) group(n *yaml.Node, t reflect.Type, at string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n // the reader refuses it
	}
	for _, f := range fields(t) {
		path := strings.TrimPrefix(at+"."+f.key, ".")
		old := child(n, f.key)
		if v := c.value(old, f, path, n); v != old {
			n = with(n, f.key, v)
		}
	}
	if t == reflect.TypeFor[Bench]() {
		n = c.bench(n, at)
	}
	return n
}

// value is what stands under a key once defaults are in: the old node where nothing changes.
func (c completer) value(old *yaml.Node, f field, path string, parent *yaml.Node) *yaml.Node {
	switch shapeOf(f.typ) {
	case group:
		if old == nil {
			if !c.begins(f, path, parent) {
				return nil
			}
			old = &yaml.Node{Kind: yaml.MappingNode, Line: parent.Line, Column: parent.Column}
		}
		return c.group(old, f.typ, path)
	case named:
		return c.named(old, f.typ.Elem(), path)
	case items:
		return c.items(old, f.typ.Elem(), path)
	}
	def := f.defaultFor(c.provider)
	if old != nil || def == "" || c.depends(f, path, parent) {
		return old
	}
	return text(def, parent)
}

// named completes each group of a map of them.
func (c completer) named(n *yaml.Node, t reflect.Type, path string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return n
	}
	out := *n
	out.Content = append([]*yaml.Node(nil), n.Content...)
	for i := 0; i+1 < len(out.Content); i += 2 {
		here, one := path+"."+out.Content[i].Value, c
		if t == reflect.TypeFor[Rig]() {
			one.provider = c.providerOf(out.Content[i+1], here)
		}
		out.Content[i+1] = one.group(out.Content[i+1], t, here)
	}
	return &out
}

// providerOf is the provider of a rig; where none that is known is written,
// which the reader refuses, the usual one, so that the rest can be looked at.
func (c completer) providerOf(rig *yaml.Node, path string) string {
	if c.held(path + ".provider") {
		return ""
	}
	f, _ := fieldNamed(fields(reflect.TypeFor[Rig]()), "provider")
	if n := child(rig, "provider"); n != nil && slices.Contains(f.enum, n.Value) {
		return n.Value
	}
	return usualProvider
}

func (c completer) items(n *yaml.Node, t reflect.Type, path string) *yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return c.group(n, t, path)
	}
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		out.Content[i] = c.group(item, t, itemKey(path, item, i))
	}
	return &out
}

// begins tells whether a group that is not written exists all the same, with
// its defaults: a pool does not, nor does a module, and only brokers of the lab
// get a disk unasked.
func (c completer) begins(f field, path string, parent *yaml.Node) bool {
	switch f.typ {
	case reflect.TypeFor[Pool](), reflect.TypeFor[Network](), reflect.TypeFor[Module](), reflect.TypeFor[ModuleSSH]():
		return false
	case reflect.TypeFor[Disk]():
		return c.provider == usualProvider && strings.HasSuffix(path, ".brokers.disk") && !c.shared(path, parent)
	}
	return true
}

// shared tells whether the pool that holds path has its hosts from another.
func (c completer) shared(path string, pool *yaml.Node) bool {
	return child(pool, "on") != nil || c.held(sibling(path, "on"))
}

// depends tells whether a default does not hold because of another key.
func (c completer) depends(f field, path string, parent *yaml.Node) bool {
	switch {
	case f.key == "memory":
		return c.shared(path, parent)
	case f.key == "profile":
		for _, key := range []string{"write", "read", "iops"} {
			if child(parent, key) != nil || c.held(sibling(path, key)) {
				return true
			}
		}
	}
	return false
}

// bench adds the defaults of a load that depend on its other keys.
func (c completer) bench(n *yaml.Node, at string) *yaml.Node {
	add := func(key, def, because string) {
		if child(n, key) == nil && !c.held(at+"."+because) {
			n = with(n, key, text(def, n))
		}
	}
	if child(n, "records") != nil {
		add("warmup", "0s", "records")
	} else {
		add("warmup", "5s", "records")
		add("duration", "30s", "records")
	}
	consumers := "0"
	if m := child(n, "consumer"); m != nil && len(m.Content) > 0 {
		consumers = "1 per worker"
	}
	add("consumers", consumers, "consumer")
	return n
}

func sibling(path, key string) string {
	return path[:strings.LastIndex(path, ".")+1] + key
}
