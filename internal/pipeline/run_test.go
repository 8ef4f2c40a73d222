package pipeline_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"krig/infra/lab/labtest"
	"krig/internal/pipeline"
	"krig/internal/result"
	"krig/internal/rundir"
)

// One small run through all stages: one cluster grows, shrinks and grows
// again, and the run directory is whole.
func TestRunGrowsAndShrinksOneCluster(t *testing.T) {
	l := newLab(t)
	out, err := l.run(`
version: 1
name: grows
rigs:
  lab:
    provider: lab
    brokers: {count: 1, disk: {size: 6GiB}, memory: 1GiB}
    workers: {count: 1, memory: 1GiB}
kafka: {jvm: {heap: 384MiB}}
bench: {partitions: 2 per broker, record_size: 1KiB, warmup: 1s, duration: 3s, consumers: 1}
matrix:
  - brokers.count: [1, 2]
order: rounds
repeat: 2
seed: `+rounds1212+`
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Failed) > 0 || len(out.Leftovers) > 0 {
		t.Fatalf("failed %v, left over %v", out.Failed, out.Leftovers)
	}
	var clusters, sizes []string
	for _, r := range measured(t, out.Run) {
		cl := clusterOf(t, out.Run, r)
		clusters = append(clusters, cl.ID)
		sizes = append(sizes, strconv.Itoa(len(cl.Brokers)))
		for _, m := range []string{"produce.rate", "consume.rate", "produce.latency.p99", "end_to_end.latency.p99"} {
			if v, ok := r.Measures.Get(m); !ok || v <= 0 {
				t.Errorf("%s: %s is %+v", r.Cell, m, r.Measures[m])
			}
		}
	}
	if got := strings.Join(sizes, " "); got != "1 2 1 2" {
		t.Errorf("the clusters had %s brokers, want 1 2 1 2", got)
	}
	if len(slices.Compact(clusters)) != 1 {
		t.Errorf("one cluster grows and shrinks; the results name %v", clusters)
	}
	for _, want := range []string{"result.json", "report.html", "plan.json", "effective.yaml", "environment.json", "logs/b1", "logs/b2"} {
		if _, err := os.Stat(out.Run.Path(want)); err != nil {
			t.Errorf("the run directory lacks %s: %v", want, err)
		}
	}
}

// rounds1212 is a seed whose two passes both visit one broker first.
const rounds1212 = "3"

// An interrupted run takes everything down, and goes on at its first missing
// repeat, here on the next of two rigs, loaded by Kafka's own tools.
func TestRunResumesOnTheNextRig(t *testing.T) {
	l := newLab(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	loads := 0
	text := `
version: 1
name: resumes
rigs:
  one: {provider: lab, brokers: {count: 1, disk: {size: 2GiB}, memory: 1GiB}, workers: {count: 1, memory: 1GiB}}
  two: {provider: lab, brokers: {count: 1, disk: {size: 3GiB}, memory: 1GiB}, workers: {on: brokers}}
kafka: {jvm: {heap: 384MiB}}
bench: {driver: perftest, partitions: 2, record_size: 1KiB, records: 20_000, producer: {acks: 1}}
`
	file := l.write(text)
	out, err := pipeline.Run(ctx, file, pipeline.Options{RunsDir: l.runs, Version: "test"}, func(e rundir.Event) {
		if strings.HasPrefix(e.Message, "loading") {
			if loads++; loads == 2 {
				interrupt()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || !out.Interrupted || len(out.Leftovers) > 0 {
		t.Fatalf("interrupted: %v, %v, left over %v", out.Interrupted, err, out.Leftovers)
	}
	if got := measured(t, out.Run); len(got) != 1 || got[0].Rig != "one" {
		t.Fatalf("before the interruption one repeat on rig one was whole, have %+v", got)
	}
	if left := machine(t, l.short()); left != "" {
		t.Errorf("after the interruption there stands\n%s", left)
	}
	refusesChange(t, l, out.Run.Dir, file)
	out, err = pipeline.Resume(t.Context(), out.Run.Dir, pipeline.Options{RunsDir: l.runs, Version: "test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := measured(t, out.Run)
	if len(got) != 2 || got[1].Rig != "two" || len(out.Failed) > 0 {
		t.Fatalf("after resuming rig two is measured as well, have %+v", got)
	}
}

// refusesChange asserts that a changed experiment is not resumed, and puts it back.
func refusesChange(t *testing.T, l *lab, dir, file string) {
	t.Helper()
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(was, "retries: 2\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = pipeline.Resume(t.Context(), dir, pipeline.Options{RunsDir: l.runs, Version: "test"}, nil)
	var refused *pipeline.Refused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), file+" changed") {
		t.Errorf("resuming a changed experiment: %v", err)
	}
	if err := os.WriteFile(file, was, 0o644); err != nil {
		t.Fatal(err)
	}
}

// measured are the valid repeats of a run in the order in which they were measured.
func measured(t *testing.T, run *rundir.Run) []result.Repeat {
	t.Helper()
	var out []result.Repeat
	for _, r := range repeats(t, run) {
		if r.Status == result.Valid {
			out = append(out, r)
		} else {
			t.Logf("%s, repeat %d: %s: %s", r.Cell, r.Repeat, r.Status, r.Reason)
		}
	}
	slices.SortFunc(out, func(a, b result.Repeat) int { return a.Started.Compare(b.Started) })
	return out
}

func clusterOf(t *testing.T, run *rundir.Run, r result.Repeat) rundir.Cluster {
	t.Helper()
	var cl rundir.Cluster
	if err := run.ReadJSON(&cl, "rigs", r.Rig, strconv.Itoa(r.RigState), "clusters", strconv.Itoa(r.Cluster)+".json"); err != nil {
		t.Fatal(err)
	}
	return cl
}

// What Kafka itself refuses is told before any host is made, and leaves no
// run directory.
func TestRunRefusesWhatKafkaDoesNotKnow(t *testing.T) {
	labtest.Need(t)
	l := &lab{t: t, runs: t.TempDir()}
	_, err := l.run(`
version: 1
name: refused
rigs: {lab: {provider: lab, brokers: {count: 1}, workers: {count: 1}}}
kafka: {broker: {num.io.thread: 3}}
bench: {duration: 1s}
`, nil)
	var refused *pipeline.Refused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "no such setting, the nearest is num.io.threads") {
		t.Errorf("a setting that Kafka does not know: %v", err)
	}
	if left, err := os.ReadDir(l.runs); err != nil || len(left) > 0 {
		t.Errorf("a refused run left %v (%v)", left, err)
	}
}
