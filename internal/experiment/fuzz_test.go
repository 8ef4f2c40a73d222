package experiment_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"krig/internal/experiment"
)

// loadBytes writes and loads a text; dir is the fuzz target's own.
func loadBytes(t *testing.T, dir string, text []byte, set ...string) (*experiment.File, error) {
	t.Helper()
	path := filepath.Join(dir, "exp.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return experiment.Load(path, set...)
}

// wantPlaces fails unless each error is an *Error in the one-line form, with a
// line where it is the file's.
func wantPlaces(t *testing.T, err error) {
	t.Helper()
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		var e *experiment.Error
		if !errors.As(one, &e) {
			t.Fatalf("%v is no *Error", one)
		}
		if e.Reason == "" || (e.Line < 1 || e.Column < 1) && !strings.HasPrefix(e.File, "--set ") {
			t.Fatalf("an error without a place or a reason: %+v", e)
		}
	}
}

// wantSamePlan fails unless the effective file gives the plan again.
func wantSamePlan(t *testing.T, f *experiment.File, dir string) {
	t.Helper()
	plan, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Effective()
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadBytes(t, dir, text)
	if err != nil {
		t.Fatalf("the effective file is refused: %v\n%s", err, text)
	}
	got, err := again.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plan, got) {
		t.Fatalf("the effective file gives another plan:\n%s", text)
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range examples(f) {
		f.Add(text, "")
	}
	f.Add(minimal, "brokers.count=2")
	f.Add(minimal, "matrix=null")
	f.Add("version: 1\nname: t\nrigs:\n  own:\n    provider: module\n    brokers: {count: 1}\n    workers: {count: 1}\n"+
		"    module: {path: ., ssh: {agent: true}, variables: {a: {file: x}, b: [1.50, {c: null}], d: {file: 3}}}\n"+load10s, "module.variables.a=0x1")
	f.Add(twoRigs+"matrix: [{rigs.a.brokers.count: [1, null]}, {rig: [b]}]\n", "bench.producer.x=1")
	f.Add(twoBenches+"matrix: {bench.small.records: [10, null]}\n", "")
	f.Add("a: &a [*a]\n<<: *a\n? {b: c}\n: !x d\n--- e\n", "=")
	f.Add(minimal+"matrix:\n  'brokers.count, workers.count': [[1, 2], [*x]]\n", "x")
	f.Fuzz(func(t *testing.T, text, set string) {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		dir := t.TempDir()
		file, err := loadBytes(t, dir, []byte(text), sets...)
		if err != nil {
			wantPlaces(t, err)
			return
		}
		if !strings.Contains(text+set, "directory") && !strings.Contains(text+set, "archive") { // spelled otherwise
			wantSamePlan(t, file, dir)
		}
	})
}

// FuzzScalars puts a text where each kind of scalar stands. What is taken
// comes out of the effective file alike.
func FuzzScalars(f *testing.F) {
	for _, s := range []string{"800B", "1.5GiB", "16 KiB", "30MiB/s", "1gbit", "0.5kbit", "500ms", "1h30m", "2_000_000", "4 per worker", "max", "0.1", "-1", "1e9",
		"9223372036854775807", "99999999999999999999TiB", "٣", "1__0", "0x10", "1m1ms", "null", "~", "\"1\"", "[1]", "{a: b}", "# x", "a: b", "*x", "|\n  1"} {
		for key := range scalarKeys() {
			f.Add(key, s)
		}
	}
	f.Fuzz(func(t *testing.T, key int, value string) {
		path := scalarKeys()[uint(key)%uint(len(scalarKeys()))]
		dir := t.TempDir()
		file, err := loadBytes(t, dir, []byte(minimal), "seed=1", "bench.duration=20s", path+"="+value)
		if err != nil {
			wantPlaces(t, err)
			return
		}
		wantSamePlan(t, file, dir)
	})
}

func scalarKeys() []string {
	return []string{"bench.record_size", "brokers.disk.write", "brokers.network.rate", "bench.warmup", "bench.topics", "bench.producers",
		"bench.rate", "brokers.cpus", "brokers.count", "collect.sar", "kafka.broker.x", "bench.driver", "kafka.version", "seed", "name"}
}

// FuzzMatrix varies a path over values.
func FuzzMatrix(f *testing.F) {
	for _, paths := range []string{"brokers.count", "rigs.lab.brokers.disk.profile", "bench.producer.batch.size", "brokers.count, workers.count", "rig", "bench", "repeat", "x.y", "kafka.source.directory", "matrix", ",", "."} {
		for _, values := range []string{"[1, 2]", "[[1, 2], [2, 3]]", "[null, ssd]", "[]", "1", "[[]]", "[{a: b}]", "[lab]", "['', \"null\", ~, null]"} {
			f.Add(paths, values)
		}
	}
	f.Fuzz(func(t *testing.T, paths, values string) {
		dir := t.TempDir()
		file, err := loadBytes(t, dir, []byte(minimal+"seed: 1\nmatrix:\n  - workers.count: [1, 2]\n  - ? \""+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(paths)+"\"\n    : "+values+"\n"))
		if err != nil {
			wantPlaces(t, err)
			return
		}
		if !strings.Contains(paths, "source") {
			wantSamePlan(t, file, dir)
		}
		wantDistinctIDs(t, file)
	})
}

func wantDistinctIDs(t *testing.T, f *experiment.File) {
	t.Helper()
	plan, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, c := range plan.Cells {
		if c.ID == "" || len(c.ID) > 128 || seen[c.ID] || strings.ContainsAny(c.ID, "/\\ :\x00") || c.ID[0] == '.' {
			t.Fatalf("%q is no good as a directory's name, or is not the first", c.ID)
		}
		seen[c.ID] = true
	}
}
