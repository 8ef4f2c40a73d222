package experiment_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"krig/internal/experiment"
)

// order spells the visits of a plan.
func order(p *experiment.Plan) []string {
	var out []string
	for _, v := range p.Visits {
		out = append(out, fmt.Sprint(p.Cells[v.Cell].ID, " #", v.Repeat))
	}
	return out
}

func TestBlocked(t *testing.T) {
	text := minimal + `matrix:
  brokers.count: [3, 1, 2]
  kafka.broker.num.io.threads: [8, 16]
  brokers.disk.profile: [hdd, ssd]
  workers.count: [2, 1]
`
	_, plan := good(t, text, "seed=1")
	var want []string
	for _, disk := range []string{"hdd", "ssd"} {
		for _, threads := range []string{"8", "16"} {
			for _, brokers := range []string{"1", "2", "3"} {
				for _, workers := range []string{"1", "2"} {
					want = append(want, fmt.Sprintf("brokers=%s,num.io.threads=%s,profile=%s,workers=%s #1", brokers, threads, disk, workers))
				}
			}
		}
	}
	compare(t, order(plan), want)
}

// Cells that share a cluster are measured in turns that the seed decides; each
// cell's repeats keep their order.
func TestBlockedShuffles(t *testing.T) {
	text := minimal + "repeat: 3\nmatrix:\n  bench.record_size: [1B, 2B, 3B, 4B]\n  brokers.count: [1, 2]\n"
	_, plan := good(t, text, "seed=1")
	_, again := good(t, text, "seed=1")
	_, other := good(t, text, "seed=2")
	if !slices.Equal(order(plan), order(again)) {
		t.Error("the same seed gave two orders")
	}
	if slices.Equal(order(plan), order(other)) {
		t.Error("two seeds gave the same order")
	}
	next := map[int]int{}
	shuffled := false
	for i, v := range plan.Visits {
		next[v.Cell]++
		if v.Repeat != next[v.Cell] {
			t.Errorf("visit %d is repeat %d of its cell, want %d", i, v.Repeat, next[v.Cell])
		}
		if n := plan.Cells[v.Cell].BrokerCount(); n != 1+i/12 {
			t.Errorf("visit %d has %d brokers", i, n)
		}
		shuffled = shuffled || i > 0 && v.Cell == plan.Visits[i-1].Cell
	}
	if len(plan.Visits) != 24 || !shuffled {
		t.Errorf("got %d visits, shuffled: %v", len(plan.Visits), shuffled)
	}
}

func TestRounds(t *testing.T) {
	_, plan := good(t, minimal+"order: rounds\nrepeat: 3\nmatrix: {brokers.count: [1, 2, 3, 4, 5]}\n", "seed=3")
	if len(plan.Visits) != 15 {
		t.Fatalf("got %d visits", len(plan.Visits))
	}
	for r := range 3 {
		seen := map[int]bool{}
		for _, v := range plan.Visits[5*r : 5*r+5] {
			seen[v.Cell] = true
			if v.Repeat != r+1 {
				t.Errorf("round %d holds repeat %d", r+1, v.Repeat)
			}
		}
		if len(seen) != 5 {
			t.Errorf("round %d has %d cells", r+1, len(seen))
		}
	}
	if slices.IsSorted(order(plan)[:5]) && slices.IsSorted(order(plan)[5:10]) {
		t.Error("rounds are not shuffled")
	}
}

func TestSeedIsRecorded(t *testing.T) {
	f, plan := good(t, minimal)
	g, other := good(t, minimal)
	if plan.Seed == other.Seed || f.Experiment.Seed != plan.Seed || g.Experiment.Seed != other.Seed {
		t.Errorf("got seeds %d and %d", plan.Seed, other.Seed)
	}
	if _, zero := good(t, minimal, "seed=0"); zero.Seed != 0 {
		t.Errorf("got seed %d, want the 0 that was written", zero.Seed)
	}
}

func TestBetween(t *testing.T) {
	type tr = experiment.Transition
	tests := []struct {
		name, pools, matrix string
		want                tr
	}{
		{"brokers", "", "brokers.count: [1, 2]", tr{Resize: true}},
		{"workers", "", "workers.count: [1, 2]", tr{Resize: true}},
		{"both", "", "workers.count, brokers.count: [[1, 1], [2, 2]]", tr{Resize: true}},
		{"brokers and a topic", "", "bench.topics, brokers.count: [[1, 1], [2, 2]]", tr{Resize: true}},
		{"a topic", "", "bench.replication_factor: [1, 2]", tr{}},
		{"a client", "", "bench.producer.acks: [null, 1]", tr{}},
		{"a collector", "", "collect.sar: [true, false]", tr{}},
		{"a broker's setting", "", "kafka.broker.num.io.threads: [null, 8]", tr{Cluster: true}},
		{"heap", "", "kafka.jvm.heap: [512MiB, 1GiB]", tr{Cluster: true}},
		{"version", "", "kafka.version: [4.1.0, 4.4.0]", tr{Prepare: true}},
		{"source", "", "kafka.source.directory: [., ..]", tr{Prepare: true}},
		{"version and brokers", "", "kafka.version, brokers.count: [[4.1.0, 1], [4.4.0, 2]]", tr{Prepare: true}},
		{"disk", "", "brokers.disk.profile: [ssd, hdd]", tr{Infra: true}},
		{"disk and all else", "", "brokers.disk.profile, kafka.version, brokers.count: [[ssd, 4.1.0, 1], [hdd, 4.4.0, 2]]", tr{Infra: true}},
		{"network", "", "workers.network.rate: [1gbit, null]", tr{Infra: true}},
		{"mode", "", "kafka.mode: [kraft, combined]", tr{Cluster: true}},
		{"controllers of their own", "controllers: {count: 1}", "controllers.count: [1, 3]", tr{Cluster: true}},
		{"brokers beside controllers of their own", "controllers: {count: 3}", "brokers.count: [1, 3]", tr{Resize: true}},
		{"brokers with a controller on each", "controllers: {on: brokers}", "brokers.count: [1, 3]", tr{Cluster: true}},
		{"brokers with controllers on the first", "controllers: {on: brokers, count: 1}", "brokers.count: [1, 3]", tr{Resize: true}},
		{"brokers that are the controllers", "", "kafka.mode, brokers.count: [[combined, 1], [combined, 3]]", tr{Cluster: true}},
		{"workers under controllers on each", "controllers: {on: workers}", "workers.count: [1, 3]", tr{Cluster: true}},
		{"workers on the brokers", "", "workers.on, workers.count: [[brokers, 1], [brokers, 2]]", tr{Resize: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := edit(t, minimal, "bench:\n", "    "+tt.pools+"\nbench:\n")
			_, plan := good(t, text+"matrix:\n  "+tt.matrix+"\n")
			for _, pair := range [][2]*experiment.Cell{{plan.Cells[0], plan.Cells[1]}, {plan.Cells[1], plan.Cells[0]}} {
				got := experiment.Between(pair[0], pair[1])
				if len(got.Paths) == 0 || !slices.IsSorted(got.Paths) {
					t.Errorf("got paths %q", got.Paths)
				}
				got.Paths = nil
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			}
			if got := experiment.Between(plan.Cells[0], plan.Cells[0]); !reflect.DeepEqual(got, tr{}) {
				t.Errorf("from a cell to itself: got %+v", got)
			}
		})
	}
}

func TestBetweenNamesPaths(t *testing.T) {
	_, plan := good(t, minimal+"matrix:\n  brokers.count, bench.producer.acks, brokers.disk.profile: [[1, 1, ssd], [2, null, hdd]]\n")
	compare(t, experiment.Between(plan.Cells[0], plan.Cells[1]).Paths, []string{"bench.producer.acks", "rigs.lab.brokers.count",
		"rigs.lab.brokers.disk.profile", "rigs.lab.brokers.disk.read", "rigs.lab.brokers.disk.write"})
	_, rigs := good(t, twoRigs)
	got := experiment.Between(rigs.Cells[0], rigs.Cells[1])
	if !got.Infra || !got.Anew || strings.Join(got.Paths, " ") != "rig" {
		t.Errorf("between rigs: got %+v", got)
	}
}
