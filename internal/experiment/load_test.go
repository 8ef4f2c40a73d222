package experiment_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
)

// minimal is the smallest experiment that is right; tests add to it.
const minimal = `version: 1
name: t
rigs:
  lab:
    provider: lab
    brokers: {count: 3}
    workers: {count: 2}
bench:
  duration: 10s
`

// load loads a text and gives the errors with the file called exp.yaml.
func load(t testing.TB, text string, set ...string) (*experiment.File, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exp.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := experiment.Load(path, set...)
	return f, lines(err, filepath.Dir(path)+"/")
}

func lines(err error, dir string) []string {
	if err == nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(err.Error()) {
		out = append(out, strings.TrimSpace(strings.ReplaceAll(line, dir, "")))
	}
	return out
}

// good loads a text that must be right and gives its plan.
func good(t testing.TB, text string, set ...string) (*experiment.File, *experiment.Plan) {
	t.Helper()
	f, errs := load(t, text, set...)
	if errs != nil {
		t.Fatalf("refused:\n%s", strings.Join(errs, "\n"))
	}
	plan, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return f, plan
}

// edit replaces one piece of a text that must be there.
func edit(t testing.TB, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %q to replace in:\n%s", old, text)
	}
	return strings.Replace(text, old, new, 1)
}

func TestLoadRefuses(t *testing.T) {
	const (
		brokers = "    brokers: {count: 3}\n"
		workers = "    workers: {count: 2}\n"
		bench   = "  duration: 10s\n"
		pools   = "; expected a map with the keys count, on, disk, network, cpus, memory"
		top     = "one of version, name, rigs, kafka, bench, matrix, repeat, retries, order, seed, limit, collect"
	)
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"unknown key", "count: 3", "cuont: 3", []string{
			"exp.yaml:6:15: rigs.lab.brokers.cuont: unknown key; expected one of count, on, disk, network, cpus, memory; did you mean count?"}},
		{"unknown key at the top", "name: t", "name: t\nkafak: {}", []string{
			"exp.yaml:3:1: kafak: unknown key; expected " + top + "; did you mean kafka?"}},
		{"key that belongs elsewhere", bench, bench + "  heap: 1GiB\n", []string{
			"exp.yaml:10:3: bench.heap: unknown key; expected one of name, driver, topics, partitions, replication_factor, producers, consumers, record_size, records, rate, warmup, duration, limit, producer, consumer; did you mean kafka.jvm.heap?"}},
		{"duplicate key", "name: t", "name: t\nname: u", []string{
			"exp.yaml:3:1: name: written twice: first on line 2; expected each key once"}},
		{"duplicate among Kafka's names", bench, bench + "  producer: {acks: 1, acks: 0}\n", []string{
			"exp.yaml:10:23: bench.producer.acks: written twice: first on line 10; expected each key once"}},
		{"required", "version: 1\n", "", []string{"exp.yaml:1:1: version: is missing; expected 1"}},
		{"version of the file", "version: 1", "version: 2", []string{`exp.yaml:1:10: version: "2" is not known; expected 1`}},
		{"name", "name: t", "name: a b", []string{
			`exp.yaml:2:7: name: "a b" cannot be a name; expected at most 40 letters, digits, - and _, beginning with a letter or a digit`}},
		{"no unit", bench, bench + "  record_size: 800\n", []string{
			`exp.yaml:10:16: bench.record_size: "800" has no unit; expected a size with its unit, such as 800B, 16KiB or 8GiB`}},
		{"wrong unit", bench, bench + "  record_size: 800kb\n", []string{
			`exp.yaml:10:16: bench.record_size: "800kb" has the unknown unit "kb"; expected a size with its unit, such as 800B, 16KiB or 8GiB; did you mean 800kB?`}},
		{"duration without unit", bench, "  duration: 10\n", []string{
			`exp.yaml:9:13: bench.duration: "10" has no unit; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m`}},
		{"duration with a word", bench, "  duration: 10 sec\n", []string{
			`exp.yaml:9:13: bench.duration: "10 sec" has the unknown unit "sec"; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m; did you mean 10s?`}},
		{"link speed", brokers, "    brokers: {count: 3, network: {rate: 1Gbps}}\n", []string{
			`exp.yaml:6:41: rigs.lab.brokers.network.rate: "1Gbps" has the unknown unit "Gbps"; expected a link's speed with its unit, such as 100mbit or 1gbit; did you mean 1gbit?`}},
		{"count below 1", "count: 3", "count: 0", []string{"exp.yaml:6:22: rigs.lab.brokers.count: 0 is below 1; expected a whole number, such as 3 or 2_000_000"}},
		{"negative count", "count: 3", "count: -2", []string{"exp.yaml:6:22: rigs.lab.brokers.count: -2 is below 1; expected a whole number, such as 3 or 2_000_000"}},
		{"octal count", "count: 3", "count: 010", []string{`exp.yaml:6:22: rigs.lab.brokers.count: "010" is not a whole number; expected a whole number, such as 3 or 2_000_000`}},
		{"count per unknown", bench, bench + "  topics: 2 per brokers\n", []string{
			`exp.yaml:10:11: bench.topics: "per brokers" is not known here; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker; did you mean broker?`}},
		{"not a boolean", bench, bench + "collect: {sar: yes}\n", []string{
			`exp.yaml:10:16: collect.sar: "yes" is neither true nor false; expected true or false; did you mean true?`}},
		{"enum", bench, bench + "  driver: nativ\n", []string{
			`exp.yaml:10:11: bench.driver: "nativ" is not known; expected one of native, perftest; did you mean native?`}},
		{"a list for a value", bench, bench + "  topics: [1]\n", []string{
			"exp.yaml:10:11: bench.topics: is a list; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker"}},
		{"a value for a map", brokers, "    brokers: 3\n", []string{`exp.yaml:6:14: rigs.lab.brokers: is "3"` + pools}},
		{"no value", bench, bench + "  topics:\n", []string{
			"exp.yaml:10:10: bench.topics: has no value; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker"}},
		{"no value among Kafka's names", bench, bench + "  producer: {acks: }\n", []string{
			`exp.yaml:10:20: bench.producer.acks: has no value; expected text, a number, true or false; "" for an empty value`}},
		{"list among Kafka's names", bench, bench + "  producer: {acks: [1]}\n", []string{
			"exp.yaml:10:20: bench.producer.acks: is not one value; expected text as Kafka reads it; a list is one text with commas"}},
		{"source", bench, bench + "kafka: {source: mavne}\n", []string{
			"exp.yaml:10:17: kafka.source: is not a source of Kafka; expected maven, or a map with archive and sha512, or with directory; did you mean maven?"}},
		{"flags that are no text", bench, bench + "kafka: {jvm: {flags: [-Da=1, [b]]}}\n", []string{
			"exp.yaml:10:30: kafka.jvm.flags: has an item that is not text; expected a list of text"}},
		{"no rigs", "rigs:\n  lab:\n    provider: lab\n" + brokers + workers, "rigs: {}\n", []string{
			"exp.yaml:3:7: rigs: is empty; expected a map from names to maps with the keys provider, engine, brokers, controllers, workers"}},
		{"a name for a rig", "  lab:", "  my.lab:", []string{
			`exp.yaml:4:3: rigs.my.lab: "my.lab" cannot be a name; expected at most 40 letters, digits, - and _, beginning with a letter or a digit`}},
		{"a key that is no word", bench, bench + "? [a]\n: b\n", []string{"exp.yaml:10:3: a key must be a word"}},
		{"an empty key", bench, bench + "'': b\n", []string{"exp.yaml:10:1: a key must be a word"}},
		{"several lines among Kafka's names", bench, bench + "  producer: {a: \"x\\ny\"}\n", []string{
			"exp.yaml:10:17: bench.producer.a: has more than one line; expected text in one line"}},
		{"empty text", bench, bench + "kafka: {version: ''}\n", []string{"exp.yaml:10:18: kafka.version: is empty; expected text"}},
		{"too much of anything", "count: 3", "count: 99_999_999_999_999", []string{
			"exp.yaml:6:22: rigs.lab.brokers.count: 99_999_999_999_999 is above 1000000000000; expected a whole number, such as 3 or 2_000_000"}},
		{"nested too deeply", bench, bench + "x: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n", []string{
			"exp.yaml:10:54: nested too deeply"}},
		{"a long value", bench, bench + "  driver: " + strings.Repeat("x", 100) + "\n", []string{
			`exp.yaml:10:11: bench.driver: "` + strings.Repeat("x", 60) + `..." is not known; expected one of native, perftest`}},
		{"anchor and alias", brokers + workers, "    brokers: &x {count: 3}\n    workers: *x\n", []string{
			"exp.yaml:6:14: anchor &x is not allowed; expected the value written out where it is needed",
			"exp.yaml:7:14: rigs.lab.workers: alias *x is not allowed; expected the value written out"}},
		{"merge key", workers, "    workers:\n      <<: {count: 3}\n", []string{
			"exp.yaml:8:7: rigs.lab.workers: merge key << is not allowed; expected the keys written out"}},
		{"tag", "name: t", "name: !x t", []string{"exp.yaml:2:7: tag !x is not allowed; expected the value without a tag"}},
		{"second document", bench, bench + "---\nname: u\n", []string{
			"exp.yaml:10:1: a second document begins here; expected one YAML document with the keys of an experiment"}},
		{"tab", "    provider: lab", "\tprovider: lab", []string{
			"exp.yaml:5:1: not YAML: the line is indented by a tab, where YAML takes spaces alone; expected one YAML document with the keys of an experiment"}},
		{"unclosed map", bench, bench + "kafka: {version: 4.4.0\n", []string{
			"exp.yaml:10:1: not YAML: did not find expected ',' or '}'; expected one YAML document with the keys of an experiment"}},
		{"broken second document", bench, bench + "---\n: : :\n", []string{
			"exp.yaml:11:1: not YAML: did not find expected key; expected one YAML document with the keys of an experiment"}},
		{"a key that commands the terminal", bench, bench + "\"\\e[31mred\": 1\n", []string{
			`exp.yaml:10:1: "\x1b[31mred": unknown key; expected ` + top}},
		{"an empty source", bench, bench + "kafka: {source: {}}\n", []string{
			"exp.yaml:10:17: kafka.source: is empty; expected maven, or a map with archive and sha512, or with directory"}},
		{"more repeats than a run can make", bench, bench + "repeat: 1_000_000_000\nmatrix: {bench.topics: [1, 2]}\n", []string{
			"exp.yaml:10:9: repeat: 1000000000 for each of 2 cells are too many repeats; expected at most 100000 in all"}},
		{"alias of nothing", "count: 3", "count: *x", []string{
			"exp.yaml:6:1: not YAML: unknown anchor 'x' referenced; expected one YAML document with the keys of an experiment"}},
		{"not UTF-8", "name: t", "name: \xff", []string{
			"exp.yaml:2:1: not UTF-8 text; expected one YAML document with the keys of an experiment"}},
		{"not built: top", bench, bench + "objectives: [x]\n", []string{"exp.yaml:10:1: objectives: objectives is not built yet: this krig cannot do it"}},
		{"not built: pool", "count: 3", "count: 3, storage: {nfs: {server: lab}}", []string{
			"exp.yaml:6:25: rigs.lab.brokers.storage: storage is not built yet: this krig cannot do it"}},
		{"not built: provider", "provider: lab", "provider: aws", []string{`exp.yaml:5:15: rigs.lab.provider: "aws" is not built yet: this krig cannot do it`}},
		{"not built: rate", bench, bench + "  rate: search\n", []string{`exp.yaml:10:9: bench.rate: "search" is not built yet: this krig cannot do it`}},
		{"not built: mode", bench, bench + "kafka: {mode: zookeeper}\n", []string{`exp.yaml:10:15: kafka.mode: "zookeeper" is not built yet: this krig cannot do it`}},
		{"not built: collector", bench, bench + "collect: {jmx: true}\n", []string{"exp.yaml:10:11: collect.jmx: jmx is not built yet: this krig cannot do it"}},
		{"all at once", "name: t\nrigs:\n  lab:\n    provider: lab\n    brokers: {count: 3}\n", "name: a b\nrigs:\n  lab:\n    provider: lba\n    brokers: {count: x, dsk: 1}\n", []string{
			`exp.yaml:2:7: name: "a b" cannot be a name; expected at most 40 letters, digits, - and _, beginning with a letter or a digit`,
			`exp.yaml:5:15: rigs.lab.provider: "lba" is not known; expected lab; did you mean lab?`,
			`exp.yaml:6:22: rigs.lab.brokers.count: "x" is not a whole number; expected a whole number, such as 3 or 2_000_000`,
			"exp.yaml:6:25: rigs.lab.brokers.dsk: unknown key; expected one of count, on, disk, network, cpus, memory; did you mean disk?"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := load(t, edit(t, minimal, tt.old, tt.new))
			compare(t, got, tt.want)
		})
	}
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got:\n%s\nwant:\n%s", g, w)
	}
}

func TestLoadChecksCells(t *testing.T) {
	const bench = "bench:\n  duration: 10s\n"
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"no workers", "    workers: {count: 2}\n", "", []string{"exp.yaml:5:5: rigs.lab.workers: is missing; expected a pool of hosts, such as workers: {count: 1}"}},
		{"pool without hosts", "workers: {count: 2}", "workers: {memory: 1GiB}", []string{
			"exp.yaml:7:14: rigs.lab.workers: has no hosts; expected count, or on: with the pool whose hosts it shares"}},
		{"circle", "{count: 3}\n    workers: {count: 2}", "{on: workers}\n    workers: {on: brokers}", []string{
			"exp.yaml:6:19: rigs.lab.brokers.on: goes in a circle; expected a pool with hosts of its own",
			"exp.yaml:7:19: rigs.lab.workers.on: goes in a circle; expected a pool with hosts of its own"}},
		{"on itself", "workers: {count: 2}", "workers: {on: workers}", []string{
			"exp.yaml:7:19: rigs.lab.workers.on: goes in a circle; expected a pool with hosts of its own"}},
		{"on a pool that is not there", "workers: {count: 2}", "workers: {on: controllers}", []string{
			"exp.yaml:7:19: rigs.lab.workers.on: there are no controllers in rig lab; expected a pool that the rig has"}},
		{"more than the pool shared", "workers: {count: 2}", "workers: {on: brokers, count: 4}", []string{
			"exp.yaml:7:35: rigs.lab.workers.count: 4 is more than the 3 hosts of brokers; expected at most 3"}},
		{"a disk of shared hosts", "workers: {count: 2}", "workers: {on: brokers, disk: {}, cpus: 2}", []string{
			"exp.yaml:7:34: rigs.lab.workers.disk: the hosts are those of brokers, which say what they have; expected brokers.disk",
			"exp.yaml:7:44: rigs.lab.workers.cpus: the hosts are those of brokers, which say what they have; expected brokers.cpus"}},
		{"profile and figures", "{count: 3}", "{count: 3, disk: {profile: ssd, write: 5MB/s}}", []string{
			"exp.yaml:6:41: rigs.lab.brokers.disk.profile: stands beside write, read or iops; expected a profile, or figures of its own"}},
		{"replicas above brokers", bench, bench + "  replication_factor: 4\n", []string{
			"exp.yaml:10:23: bench.replication_factor: 4 replicas need as many brokers; expected at most 3, the number of brokers"}},
		{"too old", bench, "kafka: {version: 2.7.1}\n" + bench, []string{"exp.yaml:8:18: kafka.version: 2.7.1 is too old; expected 2.8.0 or later"}},
		{"preview", bench, "kafka: {version: 3.2.3}\n" + bench, []string{
			"exp.yaml:8:18: kafka.version: KRaft was a preview in Kafka 3.2.3, and mode zookeeper is not built yet; expected 3.3.0 or later"}},
		{"as written", bench, "kafka: {version: 3.10}\n" + bench, []string{
			`exp.yaml:8:18: kafka.version: "3.10" is not a version of Kafka; expected three numbers, such as 4.4.0`}},
		{"combined", bench, "kafka: {mode: combined}\n" + bench, nil},
		{"archive without sum", bench, "kafka: {source: {archive: http://h/k.tgz}}\n" + bench, []string{
			"exp.yaml:8:17: kafka.source: has an archive without its sha512; expected sha512, as published beside the archive"}},
		{"archive not there", bench, "kafka: {source: {archive: k.tgz, sha512: abc}}\n" + bench, []string{
			"exp.yaml:8:27: kafka.source.archive: there is no file k.tgz; expected a .tgz of Kafka",
			`exp.yaml:8:42: kafka.source.sha512: "abc" is not a SHA-512; expected 128 hexadecimal digits`}},
		{"archive and directory", bench, "kafka: {source: {archive: k.tgz, directory: k}}\n" + bench, []string{
			"exp.yaml:8:17: kafka.source: has a directory and an archive; expected one of the two"}},
		{"heap above memory", bench, "kafka: {jvm: {heap: 2GiB}}\n" + bench, []string{
			"exp.yaml:8:21: kafka.jvm.heap: 2GiB and a controller's 256MiB of heap take all of the host's 2GiB; expected less, or more brokers.memory"}},
		{"memory below the heap", "{count: 3}", "{count: 3, memory: 1GiB}", []string{
			"exp.yaml:6:33: rigs.lab.brokers.memory: 1GiB leaves nothing beside a broker's heap of 1GiB and a controller's 256MiB; expected more than 1280MiB, or a smaller kafka.jvm.heap"}},
		{"hosts too small to be made", "workers: {count: 2}", "workers: {count: 2, memory: 1MiB, cpus: 0.001, disk: {size: 1MiB}}", []string{
			"exp.yaml:7:33: rigs.lab.workers.memory: 1MiB is too little for a host; expected 64MiB or more",
			"exp.yaml:7:45: rigs.lab.workers.cpus: 0.001 is less than the kernel can give; expected 0.01 or more",
			"exp.yaml:7:65: rigs.lab.workers.disk.size: 1MiB is too small for a file system; expected 300MiB or more"}},
		{"no sample inside the load", bench, bench + "collect: {interval: 1m}\n", []string{
			"exp.yaml:10:21: collect.interval: 1m is longer than the load of 10s, which no sample would see; expected less than bench.duration"}},
		{"nothing to read", bench, bench + "  producers: 0\n  consumers: 1\n", []string{
			"exp.yaml:11:14: bench.consumers: there are no records to read without producers; expected bench.producers above 0"}},
		{"no load", bench, bench + "  producers: 0\n", []string{
			"exp.yaml:10:14: bench.producers: without producers and consumers there is no load; expected 1 or more, such as 1 per worker"}},
		{"two ends", bench, bench + "  records: 5\n", []string{
			"exp.yaml:9:13: bench.duration: stands beside records, and each would end the load; expected one of the two"}},
		{"too short", bench, "bench:\n  duration: 500ms\n", []string{
			"exp.yaml:9:13: bench.duration: 500ms is too short to see anything; expected 1s or more"}},
		{"limit inside the load", bench, bench + "  limit: 12s\n", []string{
			"exp.yaml:10:10: bench.limit: 12s would end the repeat inside its 15s of load; expected more than warmup and duration together"}},
		{"interval", bench, bench + "collect: {interval: 1500ms}\n", []string{
			"exp.yaml:10:21: collect.interval: 1.5s is not possible; expected whole seconds, 1s or more"}},
		{"beyond the disks", bench, "bench:\n  records: 30_000_000\n  replication_factor: 2\n  partitions: 3\n", []string{
			"exp.yaml:9:12: bench.records: 30000000 records of 1KiB in 2 replicas take up to 19.4GiB on one broker, whose disk has 8GiB; expected at most 90 % of the disk: fewer records, a larger disk or more partitions and brokers"}},
		{"one partition on one of three disks", bench, "bench:\n  records: 8_000_000\n", []string{
			"exp.yaml:9:12: bench.records: 8000000 records of 1KiB in 1 replicas take up to 7.7GiB on one broker, whose disk has 8GiB; expected at most 90 % of the disk: fewer records, a larger disk or more partitions and brokers"}},
		{"the same over three disks", bench, "bench:\n  records: 8_000_000\n  partitions: 1 per broker\n", nil},
		{"a fault hides only what follows from it", bench, "kafka: {version: 1}\n" + bench + "  replication_factor: 9\n  topics: x\n", []string{
			`exp.yaml:8:18: kafka.version: "1" is not a version of Kafka; expected three numbers, such as 4.4.0`,
			"exp.yaml:11:23: bench.replication_factor: 9 replicas need as many brokers; expected at most 3, the number of brokers",
			`exp.yaml:12:11: bench.topics: "x" is not a whole number; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := load(t, edit(t, minimal, tt.old, tt.new))
			for i := range got { // paths in reasons are absolute
				got[i] = strings.ReplaceAll(got[i], os.TempDir(), "")
			}
			compare(t, got, tt.want)
		})
	}
	t.Run("mode combined and controllers", func(t *testing.T) {
		text := edit(t, minimal, "    workers", "    controllers: {count: 1}\n    workers") + "kafka: {mode: combined}\n"
		_, got := load(t, text)
		compare(t, got, []string{"exp.yaml:7:18: rigs.lab.controllers: with mode combined the brokers are the controllers; expected no controllers, or kafka.mode: kraft"})
	})
}

func TestBenchNames(t *testing.T) {
	const other = "; expected at most 40 letters, digits, - and _, beginning with a letter or a digit"
	head := strings.TrimSuffix(minimal, "bench:\n  duration: 10s\n")
	for text, want := range map[string][]string{
		"bench: {name: a b}\n":                         {`exp.yaml:8:15: bench.name: "a b" cannot be a name` + other},
		"bench: [{topics: 1}]\n":                       nil,
		"bench: [{topics: 1}, {name: b}]\n":            {"exp.yaml:8:9: bench[0].name: is missing: of several benches each needs a name; expected text"},
		"bench: [{name: b}, {name: b}]\n":              {`exp.yaml:8:27: bench.b.name: "b" names two benches; expected a name of its own`},
		"bench: [{name: a.b}, {name: b}]\n":            {`exp.yaml:8:16: bench[0].name: "a.b" cannot be a name` + other},
		"bench: [{name: topics}, {name: b}]\n":         {`exp.yaml:8:16: bench.topics.name: "topics" is a key of a bench: paths could not tell them apart; expected another name`},
		"bench: [{name: a, kind: x}, {topics: all}]\n": {"exp.yaml:8:19: bench.a.kind: kind is not built yet: this krig cannot do it", "exp.yaml:8:29: bench[1].name: is missing: of several benches each needs a name; expected text", `exp.yaml:8:38: bench[1].topics: "all" is not a whole number; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker`},
	} {
		_, got := load(t, head+text)
		compare(t, got, want)
	}
}

func TestQuantities(t *testing.T) {
	const fits = "kafka.broker.message.max.bytes=9000000000000"
	for text, want := range map[string]int64{"1B": 1, "800B": 800, "1kB": 1000, "1KiB": 1024, "16 KiB": 16384, "1.5KiB": 1536, "2_000MB": 2e9, "1MiB": 1 << 20,
		"0.5GB": 5e8, "8GiB": 8 << 30, "1TB": 1e12, "1TiB": 1 << 40, "0.1MB": 1e5} {
		_, plan := good(t, minimal, "bench.record_size="+text, "brokers.disk.write="+text+"/s", "brokers.disk.size=4TiB", fits)
		c := plan.Cells[0]
		if int64(c.Bench.RecordSize) != want || int64(c.Rig.Brokers.Disk.Write) != want {
			t.Errorf("%s: got %d and %d, want %d", text, c.Bench.RecordSize, c.Rig.Brokers.Disk.Write, want)
		}
		again := c.Bench.RecordSize.String()
		if _, plan := good(t, minimal, "bench.record_size="+again, fits); int64(plan.Cells[0].Bench.RecordSize) != want {
			t.Errorf("%s is written %s, which is another size", text, again)
		}
	}
	for text, want := range map[string]int64{"1kbit": 1000, "100mbit": 1e8, "2.5gbit": 25e8} {
		_, plan := good(t, minimal, "workers.network.rate="+text)
		rate := plan.Cells[0].Rig.Workers.Network.Rate
		if _, again := good(t, minimal, "workers.network.rate="+rate.String()); int64(rate) != want || again.Cells[0].Rig.Workers.Network.Rate != rate {
			t.Errorf("%s: got %d, written %s", text, rate, rate)
		}
	}
	for text, want := range map[string]time.Duration{"1500ms": 1500 * time.Millisecond, "90s": 90 * time.Second, "5 s": 5 * time.Second, "1h": time.Hour, "1h30m": 90 * time.Minute, "0.5h": 30 * time.Minute, "2m5s": 125 * time.Second} {
		_, plan := good(t, minimal, "bench.duration="+text)
		d := plan.Cells[0].Bench.Duration
		if _, again := good(t, minimal, "bench.duration="+d.String()); time.Duration(d) != want || again.Cells[0].Bench.Duration != d {
			t.Errorf("%s: got %v, written %s", text, time.Duration(d), d)
		}
	}
	for text, want := range map[string]experiment.SendRate{"max": {Max: true}, "5000": {Value: 5000}, "2_000": {Value: 2000}, "0.5": {Value: 0.5}} {
		_, plan := good(t, minimal, "bench.rate="+text)
		rate := plan.Cells[0].Bench.Rate
		if _, again := good(t, minimal, "bench.rate="+rate.String()); rate != want || again.Cells[0].Bench.Rate != rate {
			t.Errorf("%s: got %+v, written %s", text, rate, rate)
		}
	}
}

func TestQuantitiesRefused(t *testing.T) {
	for set, want := range map[string]string{
		"bench.record_size=0B":         `"0B" is below 1B; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=0.3B":       `"0.3B" is below 1B; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=1.0001kB":   `"1.0001kB" is not a whole number; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=9e9GB":      `"9e9GB" has the unknown unit "e9GB"; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=9999999TiB": `"9999999TiB" is too large; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=-1B":        `"-1B" is not a quantity; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=1GIB":       `"1GIB" has the unknown unit "GIB"; expected a size with its unit, such as 800B, 16KiB or 8GiB; did you mean 1GiB?`,
		"brokers.disk.write=30MiB":     `"30MiB" has the unknown unit "MiB"; expected a size a second with its unit, such as 30MiB/s; did you mean 30MiB/s?`,
		"bench.duration=0s":            `"0s" is no length of time; expected more than 0s`,
		"bench.duration=-5s":           `"-5s" is not a length of time; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m`,
		"bench.duration=1000000000h":   `"1000000000h" is too long; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m`,
		"bench.rate=0":                 `0 is out of range; expected more than 0 and at most 1e12 records a second, or max`,
		"bench.rate=maxx":              `"maxx" is not a rate; expected records a second, such as 5000, or max; did you mean max?`,
		"brokers.cpus=0":               `"0" is not a number above 0; expected a number above 0, such as 2 or 0.5`,
		"seed=-1":                      `"-1" is not a whole number from 0 to 18446744073709551615; expected a whole number, such as 42`,
	} {
		_, got := load(t, minimal, set)
		path, _, _ := strings.Cut(set, "=")
		full := path
		if strings.HasPrefix(path, "brokers") {
			full = "rigs.lab." + path
		}
		compare(t, got, []string{"--set " + set + ": " + full + ": " + want})
	}
}

func TestLoadNamesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exp.yaml")
	if err := os.WriteFile(path, []byte(edit(t, minimal, "count: 3", "cuont: 3")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := experiment.Load(path)
	var e *experiment.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v holds no *Error", err)
	}
	want := experiment.Error{File: path, Line: 6, Column: 15, Key: "rigs.lab.brokers.cuont", Reason: "unknown key",
		Expected: "one of count, on, disk, network, cpus, memory", Nearest: "count"}
	if *e != want {
		t.Errorf("got  %+v\nwant %+v", *e, want)
	}
}

func TestLoadUnreadable(t *testing.T) {
	if _, err := experiment.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file is not there", err)
	}
	for text, want := range map[string]string{
		"":          "exp.yaml:1:1: the file is empty; expected one YAML document with the keys of an experiment",
		"- 1\n":     "exp.yaml:1:1: the file is not a map of keys; expected one YAML document with the keys of an experiment",
		"# words\n": "exp.yaml:1:1: the file is empty; expected one YAML document with the keys of an experiment",
	} {
		_, got := load(t, text)
		compare(t, got, []string{want})
	}
}

func TestDefaults(t *testing.T) {
	_, plan := good(t, "version: 1\nname: t\nrigs: {lab: {provider: lab, brokers: {count: 2}, workers: {count: 3}}}\nbench: {}\n")
	c := plan.Cells[0]
	if c.ID != "cell" || len(c.Axes) != 0 || c.RigName != "lab" {
		t.Errorf("got cell %q of rig %q with axes %v", c.ID, c.RigName, c.Axes)
	}
	checks := map[string][2]any{
		"engine":       {c.Rig.Engine, "direct"},
		"broker disk":  {c.Rig.Brokers.Disk, experiment.Disk{Size: 8 << 30, Profile: "none"}},
		"worker disk":  {c.Rig.Workers.Disk, experiment.Disk{}},
		"memory":       {c.Rig.Workers.Memory, experiment.Bytes(2 << 30)},
		"controllers":  {c.Rig.Controllers, experiment.Pool{}},
		"version":      {c.Kafka.Version, "4.4.0"},
		"mode":         {c.Kafka.Mode, "kraft"},
		"source":       {c.Kafka.Source, experiment.Source{}},
		"heap":         {c.Kafka.JVM.Heap, experiment.Bytes(1 << 30)},
		"driver":       {c.Bench.Driver, "native"},
		"topics":       {c.Bench.Topics, experiment.Count{N: 1, Set: true}},
		"producers":    {c.Bench.Producers, experiment.Count{N: 1, Per: "worker", Set: true}},
		"consumers":    {c.Bench.Consumers, experiment.Count{Set: true}},
		"records":      {c.Bench.Records, experiment.Count{}},
		"rate":         {c.Bench.Rate, experiment.SendRate{Max: true}},
		"warmup":       {c.Bench.Warmup.String(), "5s"},
		"duration":     {c.Bench.Duration.String(), "30s"},
		"record size":  {c.Bench.RecordSize, experiment.Bytes(1024)},
		"replicas":     {c.Bench.ReplicationFactor, 1},
		"collect":      {c.Collect, experiment.Collect{Interval: 1e9, Sar: true, Iostat: true}},
		"visits":       {len(plan.Visits), 1},
		"order":        {plan.Order, "blocked"},
		"quorum":       {c.Quorum(), experiment.Quorum{Pool: "brokers", Count: 1}},
		"retries":      {mustExperiment(t).Retries, 1},
		"resolved":     {c.Resolve(c.Bench.Producers), int64(3)},
		"worker count": {c.WorkerCount(), 3},
	}
	for name, pair := range checks {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
}

func mustExperiment(t *testing.T) *experiment.Experiment {
	f, _ := good(t, minimal)
	return f.Experiment
}

func TestDefaultsThatDepend(t *testing.T) {
	tests := []struct{ name, bench, warmup, duration, consumers string }{
		{"records", "{records: 1000}", "0s", "0s", "0"},
		{"records and warm-up", "{records: 1000, warmup: 2s}", "2s", "0s", "0"},
		{"no warm-up", "{warmup: 0s}", "0s", "30s", "0"},
		{"consumer settings", "{consumer: {fetch.min.bytes: 1}}", "5s", "30s", "1 per worker"},
		{"no consumers all the same", "{consumer: {fetch.min.bytes: 1}, consumers: 0}", "5s", "30s", "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, plan := good(t, edit(t, minimal, "bench:\n  duration: 10s\n", "bench: "+tt.bench+"\n"))
			b := plan.Cells[0].Bench
			got := []string{b.Warmup.String(), b.Duration.String(), b.Consumers.String()}
			compare(t, got, []string{tt.warmup, tt.duration, tt.consumers})
		})
	}
}

func TestScalarsAsWritten(t *testing.T) {
	_, plan := good(t, minimal+`kafka:
  broker: {compression.type: zstd, a: 3.10, b: 2_000_000, c: 0x1F, d: yes, e: "true", f: '', g: 1e3, h: ~x}
  jvm: {flags: [-XX:+UseG1GC, -Da=1]}
`)
	want := map[string]string{"compression.type": "zstd", "a": "3.10", "b": "2_000_000", "c": "0x1F", "d": "yes", "e": "true", "f": "", "g": "1e3", "h": "~x"}
	got := plan.Cells[0].Kafka.Broker
	if len(got) != len(want) {
		t.Errorf("got %d settings, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %q, want %q", k, got[k], v)
		}
	}
	compare(t, plan.Cells[0].Kafka.JVM.Flags, []string{"-XX:+UseG1GC", "-Da=1"})
}

func TestSet(t *testing.T) {
	_, plan := good(t, minimal, "brokers.count=5", "rigs.lab.workers.cpus=1.5", "bench.producer.batch.size=16384", "repeat=3", "bench.duration=null", "bench.records=1_000")
	c := plan.Cells[0]
	if c.BrokerCount() != 5 || c.Rig.Workers.CPUs != 1.5 || c.Bench.Producer["batch.size"] != "16384" || len(plan.Visits) != 3 || c.Resolve(c.Bench.Records) != 1000 {
		t.Errorf("got %+v", c)
	}
	varied := minimal + "matrix: {brokers.count: [1, 2]}\n"
	tests := []struct {
		name, text string
		set        []string
		want       []string
	}{
		{"no key", minimal, []string{"bench.sise=1KiB"}, []string{
			"--set bench.sise=1KiB: bench.sise: unknown key; expected one of name, driver, topics, partitions, replication_factor, producers, consumers, record_size, records, rate, warmup, duration, limit, producer, consumer"}},
		{"misspelled", minimal, []string{"brokers.cuont=1"}, []string{
			"--set brokers.cuont=1: brokers.cuont: unknown key; expected one of count, on, disk, network, cpus, memory; did you mean brokers.count?"}},
		{"a bad value", minimal, []string{"repeat=2", "bench.record_size=1"}, []string{
			`--set bench.record_size=1: bench.record_size: "1" has no unit; expected a size with its unit, such as 800B, 16KiB or 8GiB`}},
		{"no value", minimal, []string{"bench.topics"}, []string{
			"--set bench.topics: is not an override; expected path=value, such as --set bench.record_size=1KiB"}},
		{"a group", minimal, []string{"kafka.jvm=1"}, []string{
			"--set kafka.jvm=1: kafka.jvm: names a group of keys; expected one scalar below it: heap, flags"}},
		{"an axis", varied, []string{"brokers.count=3"}, []string{
			"--set brokers.count=3: brokers.count: is an axis of the matrix, which would override this; expected another key, or also --set matrix=null for no matrix"}},
		{"no matrix", varied, []string{"brokers.count=3", "matrix=null"}, nil},
		{"a check", minimal, []string{"bench.replication_factor=4"}, []string{
			"--set bench.replication_factor=4: bench.replication_factor: 4 replicas need as many brokers; expected at most 3, the number of brokers"}},
		{"not built", minimal, []string{"rigs.lab.host_type=vm"}, []string{
			"--set rigs.lab.host_type=vm: rigs.lab.host_type: host_type is not built yet: this krig cannot do it"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := load(t, tt.text, tt.set...)
			compare(t, got, tt.want)
		})
	}
}

// A stage's check is asked of every cell, also beside errors of the file, and
// answers once for each place.
func TestCheckAsksStages(t *testing.T) {
	text := minimal + "  producer: {acks: all}\nmatrix:\n  bench.producer.linger.ms: [5, bad]\n  brokers.count: [1, 2]\n"
	f, errs := load(t, text)
	if errs != nil {
		t.Fatal(errs)
	}
	stage := func(c *experiment.Cell) []experiment.Problem {
		out := []experiment.Problem{{Path: "bench.producer.acks", Reason: "never"}}
		if c.Bench.Producer["linger.ms"] == "bad" {
			out = append(out, experiment.Problem{Path: "bench.producer.linger.ms", Reason: "is no number", Expected: "one"})
		}
		return out
	}
	compare(t, lines(f.Check(stage), filepath.Dir(f.Path)+"/"), []string{
		"exp.yaml:10:20: bench.producer.acks: never (in cell linger.ms=5,brokers=1)",
		"exp.yaml:12:33: bench.producer.linger.ms: is no number (in cell linger.ms=bad,brokers=1); expected one"})

	f, errs = load(t, text+"repeat: 0\n")
	got := lines(f.Check(stage), filepath.Dir(f.Path)+"/")
	if len(errs) != 1 || len(got) != 3 {
		t.Errorf("beside an error of the file: got %q and %q", errs, got)
	}
}

func TestLocate(t *testing.T) {
	f, plan := good(t, minimal+"matrix:\n  brokers.count: [1, 2]\n")
	tests := []struct {
		name string
		p    experiment.Problem
		line int
		key  string
	}{
		{"a key", experiment.Problem{Path: "bench.duration"}, 9, "bench.duration"},
		{"without the rig", experiment.Problem{Path: "workers.count"}, 7, "rigs.lab.workers.count"},
		{"with the rig", experiment.Problem{Path: "rigs.lab.workers.count"}, 7, "rigs.lab.workers.count"},
		{"a default", experiment.Problem{Path: "bench.producer.acks"}, 9, "bench.producer.acks"},
		{"nothing of it there", experiment.Problem{Path: "kafka.broker.num.io.threads"}, 1, "kafka.broker.num.io.threads"},
		{"an axis", experiment.Problem{Path: "brokers.count"}, 11, "rigs.lab.brokers.count"},
		{"a matrix value", experiment.Problem{Path: "brokers.count", Cell: plan.Cells[1].ID}, 11, "rigs.lab.brokers.count"},
		{"no key at all", experiment.Problem{Path: "nothing.such"}, 1, "nothing.such"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := f.Locate(tt.p)
			if e.Line != tt.line || e.Key != tt.key || e.File != f.Path {
				t.Errorf("got %s:%d %s, want line %d %s", e.File, e.Line, e.Key, tt.line, tt.key)
			}
		})
	}
}

// A path may name what has no end.
func TestLoadReadsNoMoreThanAnExperiment(t *testing.T) {
	_, err := experiment.Load("/dev/zero")
	want := "/dev/zero:1:1: the file has more than 1048576 bytes; expected one YAML document with the keys of an experiment"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
