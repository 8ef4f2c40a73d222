package pipeline_test

import (
	"os"
	"strconv"
	"testing"

	"krig/internal/result"
	"krig/internal/rundir"
)

// One small run through all stages: the cluster grows and shrinks, both
// drivers load it, and the machine is as it was.
func TestRunGrowsOneCluster(t *testing.T) {
	l := newLab(t)
	out, err := l.run(`
version: 1
name: grows
rigs:
  lab:
    provider: lab
    brokers: {count: 1, disk: {size: 1GiB, profile: ssd}, memory: 1GiB}
    workers: {count: 1, memory: 1GiB}
kafka: {jvm: {heap: 384MiB}}
bench:
  - {name: own, partitions: 2 per broker, record_size: 1KiB, rate: 2000, warmup: 1s, duration: 4s, consumers: 1}
  - {name: tool, driver: perftest, partitions: 2 per broker, record_size: 1KiB, records: 20_000}
matrix:
  - brokers.count: [1, 2]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Failed) > 0 || len(out.Leftovers) > 0 {
		t.Fatalf("failed %v, left over %v", out.Failed, out.Leftovers)
	}
	clusters := map[string]bool{}
	for _, r := range repeats(t, out.Run) {
		if r.Status != result.Valid {
			t.Errorf("%s: %s: %s", r.Cell, r.Status, r.Reason)
			continue
		}
		var cl rundir.Cluster
		if err := out.Run.ReadJSON(&cl, "rigs", r.Rig, num(r.RigState), "clusters", num(r.Cluster)+".json"); err != nil {
			t.Fatal(err)
		}
		clusters[cl.ID] = true
		if rate, ok := r.Measures.Get("produce.rate"); !ok || rate <= 0 {
			t.Errorf("%s: produce.rate %v", r.Cell, r.Measures["produce.rate"])
		}
	}
	if len(clusters) != 1 {
		t.Errorf("one cluster grew from 1 to 2 brokers; the results name clusters %v", clusters)
	}
	for _, want := range []string{"result.json", "report.html", "plan.json", "effective.yaml", "logs/b1"} {
		if _, err := os.Stat(out.Run.Path(want)); err != nil {
			t.Errorf("the run directory lacks %s: %v", want, err)
		}
	}
}

func num(n int) string { return strconv.Itoa(n) }
