package experiment_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"krig/internal/experiment"
)

var update = flag.Bool("update", false, "write what is generated")

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := experiment.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("krig.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("krig.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks a YAML text as an editor does.
func validate(t testing.TB, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// examples are all experiments that krig ships.
func examples(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("got %d examples: %v", len(paths), err)
	}
	out := make(map[string]string)
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(p)] = string(text)
	}
	text, err := experiment.Template("lab")
	if err != nil {
		t.Fatal(err)
	}
	out["template lab"] = string(text)
	return out
}

func TestExamplesPass(t *testing.T) {
	s := compiled(t)
	for name, text := range examples(t) {
		t.Run(name, func(t *testing.T) {
			f, _ := good(t, text)
			effective, _ := rerun(t, f)
			for _, text := range []string{text, effective} {
				if err := validate(t, s, text); err != nil {
					t.Errorf("the schema refuses it: %v", err)
				}
			}
		})
	}
}

// The schema takes what the reader takes, and refuses what it refuses, as far
// as a schema sees.
func TestSchemaAgreesWithReader(t *testing.T) {
	const bench, pools = "  duration: 10s\n", "{count: 3}"
	tests := []struct {
		old, new string
		ok       bool
	}{
		{bench, bench, true},
		{bench, "  records: 2_000 per worker\n  limit: 1h30m\n", true},
		{bench, bench + "  topics: 2_000\n  consumers: 0\n  rate: 0.5\n", true},
		{bench, bench + "  rate: 5_000\n  producer: {acks: 0, a: true, b: 1.5, c: x}\n", true},
		{bench, bench + "kafka: {source: maven, jvm: {flags: [-Da=1]}}\n", true},
		{bench, bench + "matrix: {brokers.cpus: [1, null], 'bench.topics, bench.producer.a': [[1, x], [2, true]]}\n", true},
		{bench, bench + "matrix: [{brokers.count: [1]}, {workers.count: [2]}]\n", true},
		{"bench:\n  duration: 10s\n", "bench: [{name: a, topics: 1}, {name: b}]\n", true},
		{pools, "{count: 3, cpus: 0.5, memory: 1.5GiB, network: {rate: 100mbit}, disk: {write: 20 MB/s, iops: 100}}", true},
		{"count: 3", "cuont: 3", false},
		{"count: 3", "count: 0", false},
		{"count: 3", "count: three", false},
		{"count: 3", "count: [3]", false},
		{"version: 1", "version: 2", false},
		{"name: t\n", "", false},
		{"name: t", "name: a b", false},
		{"provider: lab", "provider: aws", false},
		{"rigs:\n  lab:", "rigs:\n  'a b':", false},
		{"count: 3", "count: 3, storage: {}", false},
		{"count: 3", "count: 3, memory: 2", false},
		{"count: 3", "count: 3, memory: 2GB/s", false},
		{"count: 3", "count: 3, network: {rate: 1Gbps}", false},
		{"count: 3", "count: 3, disk: {write: 30MiB}", false},
		{"count: 3", "count: 3, disk: {profile: sdd}", false},
		{"count: 3", "count: 3, cpus: 0", false},
		{bench, "  duration: 10\n", false},
		{bench, "  duration: 10d\n", false},
		{bench, bench + "  topics: 0\n", false},
		{bench, bench + "  topics: 2 per producer\n", false},
		{bench, bench + "  record_size: 800\n", false},
		{bench, bench + "  rate: fast\n", false},
		{bench, bench + "  producer: {acks: [1]}\n", false},
		{bench, bench + "  kind: x\n", false},
		{bench, bench + "collect: {sar: 1}\n", false},
		{bench, bench + "collect: {jmx: true}\n", false},
		{bench, bench + "repeat: 0\n", false},
		{bench, bench + "order: random\n", false},
		{bench, bench + "kafka: {source: mvn}\n", false},
		{bench, bench + "kafka: {source: {archive: x}}\n", false},
		{bench, bench + "matrix: {brokers.count: []}\n", false},
		{bench, bench + "matrix: {brokers.count: 3}\n", false},
		{bench, bench + "matrix: []\n", false},
		{bench, bench + "matrix: {}\n", false},
		{"bench:\n  duration: 10s\n", "bench: [{topics: 1}, {name: b}]\n", false},
		{"bench:\n  duration: 10s\n", "bench: []\n", false},
	}
	s := compiled(t)
	for _, tt := range tests {
		text := edit(t, minimal, tt.old, tt.new)
		err := validate(t, s, text)
		if (err == nil) != tt.ok {
			t.Errorf("schema: got %v, want right: %v, for\n%s", err, tt.ok, text)
		}
		if _, errs := load(t, text); (errs == nil) != tt.ok {
			t.Errorf("reader: got %q, want right: %v, for\n%s", errs, tt.ok, text)
		}
	}
}

func TestTemplateUnknown(t *testing.T) {
	if _, err := experiment.Template("cloud"); err == nil || err.Error() != `there is no template "cloud"; known: lab, module` {
		t.Errorf("got %v", err)
	}
}

// What the template says is a default is one: with the commented lines taken
// in, it still loads.
func TestTemplateComments(t *testing.T) {
	text, err := experiment.Template("lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{"cpus: 2", "consumers: 1 per worker", "order: rounds", "limit: 2h", "controllers: {count: 3}", "controllers: {on: brokers, count: 3}"} {
		changed := edit(t, string(text), "# "+comment, comment)
		if strings.Contains(comment, "on: brokers, count") {
			changed = edit(t, changed, "  brokers.count: [1, 2, 3]\n", "  brokers.count: [3, 4]\n")
		}
		good(t, changed)
	}
}

func TestReference(t *testing.T) {
	const path = "../../examples/REFERENCE.md"
	got := experiment.Reference()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the types say; go test ./internal/experiment -run TestReference -update writes it", path)
	}
}
