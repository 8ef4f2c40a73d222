package experiment_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"krig/internal/experiment"
)

func ids(p *experiment.Plan) []string {
	var out []string
	for _, c := range p.Cells {
		out = append(out, c.ID)
	}
	return out
}

const twoRigs = `version: 1
name: t
rigs:
  a: {provider: lab, brokers: {count: 1}, workers: {count: 1}}
  b: {provider: lab, brokers: {count: 2}, workers: {count: 1}}
bench:
  duration: 10s
`

const twoBenches = `version: 1
name: t
rigs: {lab: {provider: lab, brokers: {count: 1}, workers: {count: 1}}}
bench:
  - {name: small, record_size: 100B}
  - {name: large, record_size: 10kB}
`

func TestMatrixCells(t *testing.T) {
	tests := []struct {
		name, text, matrix string
		want               []string
	}{
		{"none", minimal, "", []string{"cell"}},
		{"one axis", minimal, "brokers.count: [1, 2]", []string{"brokers=1", "brokers=2"}},
		{"all combined, the first slowest", minimal, "brokers.count: [1, 2]\n  brokers.disk.profile: [ssd, hdd]", []string{
			"brokers=1,profile=ssd", "brokers=1,profile=hdd", "brokers=2,profile=ssd", "brokers=2,profile=hdd"}},
		{"with the rig's name", minimal, "rigs.lab.brokers.count: [1, 2]", []string{"brokers=1", "brokers=2"}},
		{"joined", minimal, "workers.count, brokers.count: [[1, 1], [4, 5]]", []string{"workers=1,brokers=1", "workers=4,brokers=5"}},
		{"null", minimal, "bench.producer.batch.size: [100, null]", []string{"batch.size=100", "batch.size=default"}},
		{"names that would be alike", minimal, "bench.producer.client.id: [x]\n  bench.consumer.client.id: [y]", []string{"producer.client.id=x,consumer.client.id=y"}},
		{"pools that would be alike", minimal, "brokers.memory: [3GiB]\n  workers.memory: [1GiB]", []string{"brokers.memory=3GiB,workers.memory=1GiB"}},
		{"values no directory takes", minimal, "bench.producers: [1 per worker, 2_0]\n  brokers.disk.write: [20MiB/s]", []string{
			"producers=1-per-worker,write=20MiB-s", "producers=2_0,write=20MiB-s"}},
		{"values alike once made safe", minimal, "bench.producer.a: [x/y, x-y]", []string{"a=x-y", "a=x-y~2"}},
		{"equal cells", minimal, "brokers.count: [3, 3, 2]\n  bench.driver: [native, null]", []string{
			"brokers=3,driver=native", "brokers=2,driver=native"}},
		{"rigs are an axis", twoRigs, "", []string{"rig=a", "rig=b"}},
		{"an axis of one rig", twoRigs, "rigs.a.brokers.count: [1, 2]", []string{"rig=a,brokers=1", "rig=a,brokers=2", "rig=b"}},
		{"rig named", twoRigs, "rig: [b]\n  bench.record_size: [1B, 2B]", []string{"rig=b,record_size=1B", "rig=b,record_size=2B"}},
		{"rig joined", twoRigs, "rig, kafka.version: [[a, 4.1.0], [b, 4.4.0]]", []string{"rig=a,version=4.1.0", "rig=b,version=4.4.0"}},
		{"benches are an axis", twoBenches, "", []string{"bench=small", "bench=large"}},
		{"an axis of one bench", twoBenches, "bench.small.producers: [1, 2]\n  bench.topics: [3]", []string{
			"bench=small,producers=1,topics=3", "bench=small,producers=2,topics=3", "bench=large,topics=3"}},
		{"bench named", twoBenches, "bench: [large]", []string{"bench=large"}},
		{"source", minimal, "kafka.source: [maven]\n  kafka.source.directory: [., null]", []string{"source=maven,directory=.", "source=maven,directory=default"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if tt.matrix != "" {
				text += "matrix:\n  " + tt.matrix + "\n"
			}
			_, plan := good(t, text)
			compare(t, ids(plan), tt.want)
		})
	}
}

// IDs name directories: they stay short and tell cells apart all the same.
func TestLongIDs(t *testing.T) {
	var axes strings.Builder
	for i := range 8 {
		fmt.Fprintf(&axes, "  bench.producer.some.very.long.name.of.a.setting.%d: [0, 1]\n", i)
	}
	f, plan := good(t, minimal+"matrix:\n"+axes.String())
	if len(plan.Cells) != 256 {
		t.Errorf("got %d cells", len(plan.Cells))
	}
	wantDistinctIDs(t, f)
	_, again := good(t, minimal+"matrix:\n"+axes.String())
	compare(t, ids(again), ids(plan))
}

// Counts beyond all measure stay numbers.
func TestHugeCounts(t *testing.T) {
	_, plan := good(t, minimal, "bench.topics=1_000_000_000_000 per broker", "bench.partitions=1_000_000_000_000", "bench.replication_factor=3")
	if n := plan.Cells[0].Replicas(); n != math.MaxInt64 {
		t.Errorf("got %d", n)
	}
}

func TestMatrixValues(t *testing.T) {
	_, plan := good(t, twoBenches+`matrix:
  - brokers.count, bench.small.producer.acks: [[1, all], [2, null]]
    bench.record_size: [5B]
  - bench.large.consumers: [1 per topic]
`)
	var got []string
	for _, c := range plan.Cells {
		acks, ok := c.Bench.Producer["acks"]
		got = append(got, fmt.Sprint(c.Bench.Name, " ", c.BrokerCount(), " ", acks, ok, " ", c.Bench.RecordSize, " ", c.Resolve(c.Bench.Consumers), " ", c.Axes))
	}
	compare(t, got, []string{
		"small 1 alltrue 5B 0 [{bench small} {brokers.count 1} {bench.small.producer.acks all} {bench.record_size 5B}]",
		"small 2 false 5B 0 [{bench small} {brokers.count 2} {bench.small.producer.acks default} {bench.record_size 5B}]",
		"large 1 false 5B 0 [{bench large} {brokers.count 1} {bench.record_size 5B}]",
		"large 2 false 5B 0 [{bench large} {brokers.count 2} {bench.record_size 5B}]",
		"small 1 false 100B 0 [{bench small}]",
		"large 1 false 10kB 1 [{bench large} {bench.large.consumers 1 per topic}]",
	})
}

func TestMatrixRefuses(t *testing.T) {
	const line = "exp.yaml:11:"
	tests := []struct {
		name, text, matrix string
		want               []string
	}{
		{"names nothing", minimal, "brokers.cuont: [1]", []string{
			line + "3: matrix.brokers.cuont: unknown key; expected one of count, on, disk, network, cpus, memory; did you mean brokers.count?"}},
		{"names nothing at the top", minimal, "brokrs.count: [1]", []string{
			line + "3: matrix.brokrs.count: unknown key; expected one of version, name, rigs, kafka, bench, matrix, repeat, retries, order, seed, limit, collect; did you mean brokers.count?"}},
		{"a bench that is not there", twoBenches, "bench.smal.topics: [1]", []string{
			"exp.yaml:8:3: matrix.bench.smal.topics: unknown key; expected one of name, driver, topics, partitions, replication_factor, producers, consumers, record_size, records, rate, warmup, duration, limit, producer, consumer; did you mean bench.small.topics?"}},
		{"a key in the wrong place", minimal, "kafka.heap: [1GiB]", []string{
			line + "3: matrix.kafka.heap: unknown key; expected one of version, source, mode, broker, jvm; did you mean kafka.jvm.heap?"}},
		{"a rig that is not there", minimal, "rigs.lap.brokers.count: [1]", []string{
			line + `3: matrix.rigs.lap.brokers.count: there is no rig "lap"; expected one of lab; did you mean rigs.lab.brokers.count?`}},
		{"a group", minimal, "brokers.disk: [1]", []string{
			line + "3: matrix.brokers.disk: names a group of keys; expected one scalar below it: size, profile, write, read, iops"}},
		{"a map of Kafka's", minimal, "bench.producer: [1]", []string{
			line + "3: matrix.bench.producer: names a map of Kafka's names; expected bench.producer.NAME, such as bench.producer.batch.size"}},
		{"a list", minimal, "kafka.jvm.flags: [a]", []string{
			line + "3: matrix.kafka.jvm.flags: is a list or a map as a whole; expected the path of one scalar"}},
		{"below a scalar", minimal, "repeat.x: [1]", []string{line + "3: matrix.repeat.x: there is nothing below repeat; expected repeat"}},
		{"the run's own", minimal, "repeat: [1, 2]", []string{line + "3: matrix.repeat: belongs to the whole run and cannot vary between its cells"}},
		{"which rig", twoRigs + "x: 1\n", "brokers.count: [1]", []string{
			"exp.yaml:8:1: x: unknown key; expected one of version, name, rigs, kafka, bench, matrix, repeat, retries, order, seed, limit, collect",
			"exp.yaml:10:3: matrix.brokers.count: which rig is meant?; expected rigs.NAME.brokers.count with NAME one of a, b"}},
		{"one bench", minimal, "bench: [a]", []string{line + "3: matrix.bench: there is only one bench; expected a path of one of its keys, such as bench.record_size"}},
		{"no such rig", minimal, "rig: [lab, lap]", []string{line + `14: matrix.rig: there is no rig "lap"; expected one of lab; did you mean lab?`}},
		{"empty axis", minimal, "brokers.count: []", []string{line + "18: matrix.brokers.count: an axis without values; expected a list such as [1, 2, 3]"}},
		{"no list", minimal, "brokers.count: 3", []string{line + "18: matrix.brokers.count: an axis needs a list of values; expected a list such as [1, 2, 3]"}},
		{"unequal rows", minimal, "brokers.count, workers.count: [[1, 1], [2], 3]", []string{
			line + "42: matrix.brokers.count, workers.count: 1 values for 2 joined paths; expected a list of 2 values, one for each path",
			line + "47: matrix.brokers.count, workers.count: one value for 2 joined paths; expected a list of 2 values, one for each path"}},
		{"a row for one path", minimal, "brokers.count: [[1, 2]]", []string{
			line + "19: matrix.brokers.count: a value that is a map or a list; expected one scalar, or null for the default"}},
		{"twice", minimal, "brokers.count: [1]\n  rigs.lab.brokers.count: [2]", []string{
			"exp.yaml:12:3: matrix.rigs.lab.brokers.count: is varied twice in one block: also as brokers.count"}},
		{"a value that its key refuses", minimal, "brokers.count: [1, none]\n  bench.record_size: [1KiB, 800]", []string{
			line + `22: rigs.lab.brokers.count: "none" is not a whole number; expected a whole number, such as 3 or 2_000_000`,
			`exp.yaml:12:29: bench.record_size: "800" has no unit; expected a size with its unit, such as 800B, 16KiB or 8GiB`}},
		{"a value that a cell refuses", minimal, "brokers.count: [3, 1]\n  bench.replication_factor: [1, 3]", []string{
			"exp.yaml:12:33: bench.replication_factor: 3 replicas need as many brokers (in cell brokers=1,replication_factor=3); expected at most 1, the number of brokers"}},
		{"not built", minimal, "collect.jmx: [true]\n  bench.rate: [max, search]", []string{
			line + "3: matrix.collect.jmx: jmx is not built yet: this krig cannot do it",
			`exp.yaml:12:21: bench.rate: "search" is not built yet: this krig cannot do it`}},
		{"not built in a rig", minimal, "zookeepers.count: [3]", []string{
			line + "3: matrix.zookeepers.count: zookeepers is not built yet: this krig cannot do it"}},
		{"no axes", minimal, "{}", []string{line + "3: matrix: a block without axes; expected a map from dotted paths to lists of values"}},
		{"no blocks", minimal, "[]", []string{line + "3: matrix: is empty; expected axes, or no matrix at all"}},
		{"an alias", minimal, "brokers.count: &x [1]\n  workers.count: *x", []string{
			line + "18: anchor &x is not allowed; expected the value written out where it is needed",
			"exp.yaml:12:18: matrix.workers.count: alias *x is not allowed; expected the value written out"}},
		{"too many", minimal, strings.Repeat("bench.producer.X: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n  ", 5), []string{
			line + "3: matrix: has too many cells; expected at most 10000"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			matrix := tt.matrix
			for i := 0; strings.Contains(matrix, "X"); i++ {
				matrix = strings.Replace(matrix, "X", fmt.Sprint("x", i), 1)
			}
			_, got := load(t, tt.text+"matrix:\n  "+matrix+"\n")
			compare(t, got, tt.want)
		})
	}
}

// What one cell needs may come from its axes alone.
func TestMatrixSupplies(t *testing.T) {
	_, plan := good(t, edit(t, minimal, "brokers: {count: 3}", "brokers: {memory: 3GiB}")+"matrix:\n  brokers.count: [1]\n  controllers.count: [null, 3]\n")
	if n := plan.Cells[0].BrokerCount(); n != 1 {
		t.Errorf("got %d brokers", n)
	}
	if c := plan.Cells[1]; c.Rig.Controllers.Memory != 2<<30 || c.Quorum().Count != 3 {
		t.Errorf("got controllers %+v", c.Rig.Controllers)
	}
}

func TestCellCounts(t *testing.T) {
	tests := []struct {
		name, pools, mode string
		hosts             map[string]int
		brokers, workers  int
		quorum            experiment.Quorum
	}{
		{"no controllers", "brokers: {count: 3}, workers: {count: 2}", "kraft", map[string]int{"brokers": 3, "workers": 2, "controllers": 0}, 3, 2, experiment.Quorum{Pool: "brokers", Count: 1}},
		{"own controllers", "brokers: {count: 2}, workers: {count: 2}, controllers: {count: 3}", "kraft", map[string]int{"brokers": 2, "workers": 2, "controllers": 3}, 2, 2, experiment.Quorum{Pool: "controllers", Count: 3}},
		{"one on each", "brokers: {count: 3}, workers: {count: 2}, controllers: {on: brokers}", "kraft", map[string]int{"brokers": 3, "workers": 2, "controllers": 0}, 3, 2, experiment.Quorum{Pool: "brokers", Count: 3}},
		{"on the first", "brokers: {count: 5}, workers: {count: 2}, controllers: {on: brokers, count: 3}", "kraft", map[string]int{"brokers": 5, "workers": 2, "controllers": 0}, 5, 2, experiment.Quorum{Pool: "brokers", Count: 3}},
		{"combined", "brokers: {count: 3}, workers: {count: 2}", "combined", map[string]int{"brokers": 3, "workers": 2, "controllers": 0}, 3, 2, experiment.Quorum{Pool: "brokers", Count: 3, Combined: true}},
		{"all on one", "brokers: {count: 1}, workers: {on: brokers}, controllers: {on: workers}", "kraft", map[string]int{"brokers": 1, "workers": 0, "controllers": 0}, 1, 1, experiment.Quorum{Pool: "brokers", Count: 1}},
		{"brokers on the workers", "brokers: {on: workers, count: 2}, workers: {count: 4, disk: {profile: hdd}}", "kraft", map[string]int{"brokers": 0, "workers": 4, "controllers": 0}, 2, 4, experiment.Quorum{Pool: "workers", Count: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, plan := good(t, "version: 1\nname: t\nrigs: {lab: {provider: lab, "+tt.pools+"}}\nkafka: {mode: "+tt.mode+"}\nbench: {topics: 2 per broker, partitions: 3, producers: 2 per topic, consumers: 1 per worker, records: 10 per producer}\n")
			c := plan.Cells[0]
			for pool, n := range tt.hosts {
				if c.Hosts()[pool] != n {
					t.Errorf("%s: got %d hosts of its own, want %d", pool, c.Hosts()[pool], n)
				}
			}
			topics := int64(2 * tt.brokers)
			got := fmt.Sprint(c.BrokerCount(), c.WorkerCount(), c.Quorum(), c.Resolve(c.Bench.Topics), c.Replicas(), c.Resolve(c.Bench.Producers), c.Resolve(c.Bench.Consumers), c.Resolve(c.Bench.Records), c.LoadBytes())
			want := fmt.Sprint(tt.brokers, tt.workers, tt.quorum, topics, 3*topics, 2*topics, tt.workers, 20*topics, 20*topics*(1024+16))
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	tests := []struct {
		disk string
		want experiment.Disk
	}{
		{"{profile: ssd}", experiment.Disk{Size: 8 << 30, Profile: "ssd", Write: 30 << 20, Read: 60 << 20}},
		{"{profile: hdd, size: 1GB}", experiment.Disk{Size: 1e9, Profile: "hdd", Write: 12 << 20, Read: 24 << 20}},
		{"{profile: none}", experiment.Disk{Size: 8 << 30, Profile: "none"}},
		{"{write: 50MB/s}", experiment.Disk{Size: 8 << 30, Profile: "custom", Write: 50e6}},
		{"{iops: 100, read: 1KiB/s}", experiment.Disk{Size: 8 << 30, Profile: "custom", Read: 1024, IOPS: 100}},
	}
	for _, tt := range tests {
		_, plan := good(t, edit(t, minimal, "count: 3", "count: 3, disk: "+tt.disk))
		if got := plan.Cells[0].BrokerDisk(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.disk, got, tt.want)
		}
	}
}
