package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// costNamed are the words of the cost tags.
func costNamed(tag string) Cost {
	return map[string]Cost{"live": Live, "client": Client, "topic": Topic, "cluster": Cluster, "prepare": Prepare, "infra": Infra}[tag]
}

// String is the word of the cost tags.
func (c Cost) String() string {
	return [...]string{"live", "client", "topic", "cluster", "prepare", "infra"}[c]
}

// A setting is one resolved value of a cell under its path.
type setting struct {
	value string
	cost  Cost
	count string // the pool whose number of hosts it is; "" for all else
}

// settings lists every value of a cell. Paths are those of the file, with the
// rig's name and without a bench's.
func (c *Cell) settings() map[string]setting {
	out := map[string]setting{"rig": {value: c.RigName, cost: Infra}}
	v := reflect.ValueOf(*c)
	for _, f := range fields(reflect.TypeFor[Experiment]()) {
		cost, path := costNamed(f.cost), f.key
		switch f.key {
		case "rigs":
			collectSettings(out, reflect.ValueOf(c.Rig), "rigs."+c.RigName, cost)
		case "kafka", "bench", "collect":
			collectSettings(out, v.FieldByName(f.name), path, cost)
		}
	}
	for _, pool := range poolNames() {
		path := "rigs." + c.RigName + "." + pool + ".count"
		s := out[path]
		s.count = pool
		out[path] = s
	}
	return out
}

func collectSettings(out map[string]setting, v reflect.Value, path string, cost Cost) {
	switch shapeOf(v.Type()) {
	case group, source:
		for _, f := range fields(v.Type()) {
			here := cost
			if f.cost != "" {
				here = costNamed(f.cost)
			}
			collectSettings(out, v.Field(f.index), path+"."+f.key, here)
		}
	case foreign:
		for key, s := range v.Interface().(map[string]string) {
			out[path+"."+key] = setting{value: "=" + s, cost: cost} // "" and absent differ
		}
	case free:
		for key, x := range v.Interface().(Values) {
			out[path+"."+key] = setting{value: "=" + string(x), cost: cost}
		}
	default:
		out[path] = setting{value: fmt.Sprint(v.Interface()), cost: cost}
	}
}

// Between says what must be done before b can be measured where a was.
func Between(a, b *Cell) Transition {
	sa, sb := a.settings(), b.settings()
	if a.RigName != b.RigName {
		return Transition{Anew: true, Infra: true, Paths: []string{"rig"}}
	}
	t := Transition{Anew: a.Rig.Provider != b.Rig.Provider || a.Rig.Engine != b.Rig.Engine || a.Rig.Module.Path != b.Rig.Module.Path}
	var dearest Cost
	resized := false
	for _, path := range slices.Sorted(maps.Keys(union(sa, sb))) {
		x, y := sa[path], sb[path]
		if x == y {
			continue
		}
		t.Paths = append(t.Paths, path)
		cost := max(x.cost, y.cost)
		switch max(x.count, y.count) {
		case "brokers", "workers":
			resized = true
			continue
		case "controllers":
			cost = Cluster
		}
		dearest = max(dearest, cost)
	}
	if resized && a.Quorum() != b.Quorum() {
		dearest = max(dearest, Cluster)
	}
	switch dearest {
	case Infra:
		t.Infra = true
	case Prepare:
		t.Prepare = true
	case Cluster:
		t.Cluster = true
	default:
		t.Resize = resized
	}
	return t
}

func union(a, b map[string]setting) map[string]setting {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// state spells those of a cell's settings that have the given cost, the number
// of brokers and workers left out: cells with the same one share such a state.
func state(s map[string]setting, cost Cost) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if s[path].cost != cost || s[path].count == "brokers" || s[path].count == "workers" {
			continue
		}
		fmt.Fprintf(&b, "%s=%q\n", path, s[path].value)
	}
	return b.String()
}
