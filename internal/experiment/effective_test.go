package experiment_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"krig/internal/experiment"
)

// rerun loads the effective file of f and gives its plan.
func rerun(t testing.TB, f *experiment.File) (string, *experiment.Plan) {
	t.Helper()
	text, err := f.Effective()
	if err != nil {
		t.Fatal(err)
	}
	_, plan := good(t, string(text))
	return string(text), plan
}

func TestEffectiveGivesTheSamePlan(t *testing.T) {
	texts := map[string]string{
		"minimal":                   minimal,
		"two rigs":                  twoRigs + "matrix: [{rigs.a.brokers.count: [1, 2]}, {rig: [b], bench.topics: [1, null]}]\n",
		"two benches":               twoBenches + "matrix: {bench.small.records: [10, null], bench.large.consumer.x: [null, 1]}\n",
		"records varied":            edit(t, minimal, "  duration: 10s\n", "  topics: 2\n") + "matrix: {bench.records: [1000, null]}\n",
		"consumer varied":           minimal + "matrix: {bench.consumer.fetch.min.bytes: [1, null]}\n",
		"figures of a disk varied":  minimal + "matrix: {brokers.disk.write: [20MiB/s, null]}\n",
		"placing varied":            minimal + "matrix: {workers.on: [brokers, null], workers.count: [2]}\n",
		"as written":                minimal + "kafka: {broker: {a: 3.10, b: 'null', c: \"\", d: yes, e: '# x', f: 'a: b', g: 2_0, h: ' x '}}\n",
		"comments and odd layout":   "# head\n" + strings.ReplaceAll(minimal, "bench:", "bench: # load\n  # more\n") + "  producer: {acks: 1, # one\n    linger.ms: 5}\n# foot\n",
		"all that can be shortened": edit(t, minimal, "10s", "120s") + "limit: 90m\norder: rounds\nrepeat: 3\nseed: 18446744073709551615\ncollect: {interval: 60s, pidstat: true}\n",
	}
	for _, path := range []string{"../../examples/demo.yaml", "../../examples/smoke.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			f, plan := good(t, text)
			effective, again := rerun(t, f)
			if !reflect.DeepEqual(plan, again) {
				t.Errorf("the plan of\n%sdiffers from that of\n%s", effective, text)
			}
			if strings.Contains(effective, "# ") && !strings.Contains(text, "# x'") {
				t.Errorf("comments in\n%s", effective)
			}
		})
	}
}

func TestEffectiveText(t *testing.T) {
	f, _ := good(t, minimal+"kafka:\n  broker: {a: 3.10}\n", "seed=5", "brokers.count=2", "bench.producer.acks=1")
	got, _ := rerun(t, f)
	compare(t, strings.Split(got, "\n"), strings.Split(`version: 1
name: t
rigs:
  lab:
    provider: lab
    brokers: {count: 2, disk: {size: 8GiB, profile: none}, memory: 2GiB}
    workers: {count: 2, memory: 2GiB}
    engine: direct
bench:
  duration: 10s
  producer:
    acks: 1
  driver: native
  topics: 1
  partitions: 1
  replication_factor: 1
  producers: 1 per worker
  record_size: 1KiB
  rate: max
  warmup: 5s
  consumers: 0
kafka:
  broker: {a: 3.10}
  version: 4.4.0
  source: maven
  mode: kraft
  jvm:
    heap: 1GiB
seed: 5
repeat: 1
retries: 1
order: blocked
collect:
  interval: 1s
  sar: true
  iostat: true
  pidstat: false
`, "\n"))
}

func TestInputs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.tgz", "b.tgz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "exp.yaml")
	text := minimal + "kafka: {source: {archive: a.tgz, sha512: " + strings.Repeat("0", 128) + "}}\nmatrix: {kafka.source.archive: [b.tgz, a.tgz, 'https://host/c.tgz']}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := experiment.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, f.Inputs(), []string{filepath.Join(dir, "a.tgz"), filepath.Join(dir, "b.tgz")})
	plan, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	_, again := rerun(t, f) // from another directory
	for i, c := range plan.Cells {
		if got := again.Cells[i].Kafka.Source; got != c.Kafka.Source {
			t.Errorf("from another directory: got %+v, want %+v", got, c.Kafka.Source)
		}
	}
}
