package experiment

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkFile refuses what no cell is needed to see.
func (f *File) checkFile() {
	refuse := func(n *yaml.Node, key string, why refusal) { f.problems.add(f.origin.refuse(n, key, why)) }
	if n := child(f.root, "name"); n != nil && n.Kind == yaml.ScalarNode && n.Value != "" {
		if why := badName(n.Value); why != nil {
			refuse(n, "name", *why)
		}
	}
	list := child(f.root, "bench")
	if !f.names.listed {
		if n := child(list, "name"); n != nil && badName(n.Value) != nil {
			refuse(n, "bench.name", *badName(n.Value))
		}
		return
	}
	benchKeys := keys(fields(reflect.TypeFor[Bench]()))
	for i, item := range list.Content {
		name := f.names.benches[i]
		at := item
		if n := child(item, "name"); n != nil {
			at = n
		}
		key := itemKey("bench", item, i) + ".name"
		switch {
		case name == "" && len(list.Content) > 1 && item.Kind == yaml.MappingNode:
			refuse(at, key, refusal{reason: "is missing: of several benches each needs a name", expected: "text"})
		case name == "":
		case badName(name) != nil:
			refuse(at, key, *badName(name))
		case slices.Contains(benchKeys, name):
			refuse(at, key, refusal{reason: quoted(name) + " is a key of a bench: paths could not tell them apart", expected: "another name"})
		case slices.Index(f.names.benches, name) < i:
			refuse(at, key, refusal{reason: quoted(name) + " names two benches", expected: "a name of its own"})
		}
	}
}

// A check looks at one cell. reads are the keys that it depends on: where one
// of them is refused already, it would only say what follows from that.
type check struct {
	reads string
	find  func(c *Cell) []Problem
}

func checks() []check {
	const placing = " brokers.count brokers.on workers.count workers.on controllers.count controllers.on"
	return []check{
		{"brokers", checkPlaced("brokers")},
		{"controllers", checkPlaced("controllers")},
		{"workers", checkPlaced("workers")},
		{placing, checkShared("brokers")},
		{placing, checkShared("controllers")},
		{placing, checkShared("workers")},
		{"kafka.mode" + placing, checkCombined},
		{"kafka.version kafka.mode", checkVersion},
		{"kafka.source", checkSource},
		{"kafka.jvm.heap kafka.mode brokers.memory" + placing, ofLab(checkHeap)},
		{"brokers.disk", ofLab(checkThrottle("brokers"))},
		{"controllers.disk", ofLab(checkThrottle("controllers"))},
		{"workers.disk", ofLab(checkThrottle("workers"))},
		{"brokers.disk.size brokers.memory brokers.cpus", ofLab(checkLeast("brokers"))},
		{"controllers.disk.size controllers.memory controllers.cpus", ofLab(checkLeast("controllers"))},
		{"workers.disk.size workers.memory workers.cpus", ofLab(checkLeast("workers"))},
		{"module provider", checkModule},
		{"provider brokers", checkOwn("brokers")},
		{"provider controllers", checkOwn("controllers")},
		{"provider workers", checkOwn("workers")},
		{"bench.replication_factor" + placing, checkReplication},
		{"bench.producers bench.consumers bench.topics" + placing, checkClients},
		{"bench.records bench.duration", checkEnd},
		{"bench.duration bench.warmup bench.limit", checkLimit},
		{"bench.record_size bench.producer kafka.broker", checkRecordSize},
		{"collect.interval bench.duration bench.records", checkInterval},
		{"bench.records bench.record_size bench.replication_factor bench.topics bench.partitions bench.producers brokers.disk" + placing, checkSpace},
	}
}

// ofLab is a check of what only hosts of the lab have.
func ofLab(find func(*Cell) []Problem) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		if c.Rig.Provider != "" && c.Rig.Provider != usualProvider {
			return nil
		}
		return find(c)
	}
}

// checkCell runs all checks on a cell.
func (f *File) checkCell(c *Cell) {
	for i, check := range checks() {
		if slices.ContainsFunc(strings.Fields(check.reads), func(key string) bool { return f.refused(key, c) }) {
			continue
		}
		for _, p := range check.find(c) {
			p.Cell = c.ID
			f.report(p, &f.problems, strconv.Itoa(i), f.said)
		}
	}
}

// refused tells whether the reader refused a key that the cell has.
func (f *File) refused(key string, c *Cell) bool {
	if len(f.found.list) == 0 {
		return false
	}
	top, _, _ := strings.Cut(key, ".")
	if _, ok := fieldNamed(fields(reflect.TypeFor[Rig]()), top); ok {
		return f.found.poisons("rigs." + c.RigName + "." + key)
	}
	return f.found.poisons(f.display(strings.Split(key, "."), f.points[c.ID].bench))
}
