package loadgen

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// BenchmarkLateness is how late the scheduler wakes at 20,000 records a second
// against a broker in this process that throws everything away.
func BenchmarkLateness(b *testing.B) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "t"), kfake.BlackholeProduce())
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	for b.Loop() {
		c := newConductor(b)
		c.producer = true
		spec := &Spec{
			Brokers: cluster.ListenAddrs(), Workers: 1, ProducersInAll: 4,
			RecordSize: 1024, Rate: 20_000, Window: 5 * time.Second, Await: 10 * time.Second,
			ProducerSettings: map[string]string{"acks": "1"},
		}
		for i := range spec.ProducersInAll {
			spec.Producers = append(spec.Producers, Producer{Index: i, Topics: []string{"t"}})
		}
		if err := Run(b.Context(), spec, c); err != nil {
			b.Fatal(err)
		}
		late := c.histogram(Late)
		if late.TotalCount() != 100_000 {
			b.Fatalf("%d records were due, want 100000", late.TotalCount())
		}
		b.ReportMetric(float64(late.ValueAtQuantile(50))/1e3, "late-p50-µs")
		b.ReportMetric(float64(late.ValueAtQuantile(99))/1e3, "late-p99-µs")
		b.ReportMetric(float64(late.ValueAtQuantile(99.9))/1e3, "late-p999-µs")
		b.ReportMetric(float64(late.Max())/1e3, "late-max-µs")
		b.ReportMetric(c.summary.CPU/5, "cpus")
	}
}
