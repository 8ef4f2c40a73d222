package experiment_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
			"exp.yaml:3:7: rigs: is empty; expected a map from names to maps with the keys provider, engine, brokers, controllers, workers, module"}},
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
			`exp.yaml:5:15: rigs.lab.provider: "lba" is not known; expected one of lab, module; did you mean lab?`,
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

// A path may name what has no end.
func TestLoadReadsNoMoreThanAnExperiment(t *testing.T) {
	_, err := experiment.Load("/dev/zero")
	want := "/dev/zero:1:1: the file has more than 1048576 bytes; expected one YAML document with the keys of an experiment"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
