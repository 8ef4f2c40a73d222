package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/perftool"
	"krig/internal/result"
)

func TestPerftest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	t.Parallel() // with what mostly waits
	p, _ := realPlace(t, 2)
	perf := func(change func(*experiment.Cell)) *experiment.Cell {
		return cell(func(c *experiment.Cell) {
			c.Kafka.Version, c.Bench.Driver, c.Bench.RecordSize = "4.4.0", "perftest", 1000
			change(c)
		})
	}
	t.Run("records at a rate, with consumer and warm-up", func(t *testing.T) {
		p.t = t
		r := p.measure(perf(func(c *experiment.Cell) {
			c.Bench.Producers, c.Bench.Consumers = count(1), count(1)
			c.Bench.Records, c.Bench.Rate = count(6000), experiment.SendRate{Value: 3000}
			c.Bench.Warmup = experiment.Duration(time.Second)
		}))
		if r.Status != result.Valid {
			t.Fatalf("%s: %s", r.Status, r.Reason)
		}
		got := value(t, r, "produce.rate")
		if got > 6000 || got <= 0 { // a tool that was late makes up for it
			t.Errorf("produce.rate = %v, want about 3000", got)
		}
		if slow := got < keptRate*3000; slow != slices.Contains(r.Marks, result.NotSustained) {
			t.Errorf("produce.rate = %v, marks %v", got, r.Marks)
		}
		if got := value(t, r, "produce.throughput"); got != 1000*value(t, r, "produce.rate") {
			t.Errorf("produce.throughput = %v", got)
		}
		if got := value(t, r, "produce.errors"); got != 0 {
			t.Errorf("produce.errors = %v", got)
		}
		value(t, r, "produce.latency.p99")
		value(t, r, "consume.throughput")
		if len(r.Commands) != 2 || r.Commands[0].Process != "producer 1" || r.Commands[1].Host != "w1" || len(r.Client.NotApplied) > 0 {
			t.Errorf("commands %v, settings not applied %v", r.Commands, r.Client.NotApplied)
		}
		names := []string{}
		for _, ph := range r.Phases {
			names = append(names, ph.Name)
		}
		if !slices.Equal(names, []string{"warmup", "steady"}) {
			t.Errorf("phases %v", names)
		}
		kept, err := perftoolFile(p.run.Path("cells", "c1", "1", "load", "w1", "producer-1.txt"))
		if err != nil || kept.Total == nil || kept.Total.Records != 9000 || kept.Steady.Records != 6000 {
			t.Errorf("kept output: %+v, %v", kept, err)
		}
	})
	t.Run("two producers without acknowledgements", func(t *testing.T) {
		p.t = t
		r := p.measure(perf(func(c *experiment.Cell) {
			c.ID, c.Bench.Records = "c2", count(10001)
			c.Bench.Producer = map[string]string{"acks": "0", "linger.ms": "5"}
			c.Bench.Rate = experiment.SendRate{Value: 5000}
		}))
		if r.Status != result.Valid {
			t.Fatalf("%s: %s", r.Status, r.Reason)
		}
		if got := value(t, r, "produce.lost"); got != 0 {
			t.Errorf("produce.lost = %v", got)
		}
		if m := r.Measures["produce.latency.p99"]; m.Value != nil || !strings.Contains(m.Reason, "cannot be merged") {
			t.Errorf("produce.latency.p99 = %+v", m)
		}
		low, high := value(t, r, "produce.latency.p99.min_of_processes"), value(t, r, "produce.latency.p99.max_of_processes")
		if low > high || value(t, r, "produce.latency.max") < high {
			t.Errorf("p99 from %v to %v", low, high)
		}
		value(t, r, "produce.throughput.span")
	})
	t.Run("a time at the highest rate, with two consumers", func(t *testing.T) {
		p.t = t
		c := perf(func(c *experiment.Cell) {
			c.ID, c.Bench.Producers, c.Bench.Consumers = "c3", count(2), count(2)
			c.Bench.Producer = map[string]string{"acks": "1", "buffer.memory": "1000000", "client.id": "a=b"}
			c.Bench.Consumer = map[string]string{"fetch.min.bytes": "1"}
		})
		r := p.measure(c)
		if r.Status != result.Valid {
			t.Fatalf("%s: %s", r.Status, r.Reason)
		}
		steady := r.Phases[len(r.Phases)-1]
		if took := steady.End.Sub(steady.Start); took < time.Second || took > 30*time.Second { // by a rate that was measured before
			t.Errorf("it took %v, want about 2 s", took)
		}
		if !slices.Contains(r.Marks, result.AtSaturation) || slices.Contains(r.Marks, result.LimitedByGenerator) {
			t.Errorf("marks %v: a buffer of 1 MB was never full", r.Marks)
		}
		if got := value(t, r, "generator.blocked_time"); got <= 0 {
			t.Errorf("generator.blocked_time = %v", got)
		}
		if p, c := value(t, r, "produce.throughput.span"), value(t, r, "consume.throughput"); c < p/4 {
			t.Errorf("consumed %v B/s of %v", c, p)
		}
	})
	t.Run("a producer is killed", func(t *testing.T) {
		p.t = t
		c := perf(func(c *experiment.Cell) {
			c.ID, c.Bench.Records, c.Bench.Rate = "c4", count(60000), experiment.SendRate{Value: 1000}
		})
		killed := make(chan error, 1)
		go func() { killed <- killTool(t.Context(), "--num-records 30000") }()
		r := p.measure(c)
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
		if r.Status != result.Invalid || !strings.Contains(r.Reason, "exit status 137") {
			t.Errorf("%s: %s", r.Status, r.Reason)
		}
	})
	t.Run("priming", func(t *testing.T) {
		if err := p.session.Prime(t.Context(), p.cluster, perf(func(c *experiment.Cell) { c.ID, c.Bench.Producers = "c5", count(1) })); err != nil {
			t.Error(err)
		}
	})
	t.Run("a record that is too large", func(t *testing.T) {
		p.t = t
		r := p.measure(perf(func(c *experiment.Cell) {
			c.ID, c.Bench.RecordSize, c.Bench.Producers, c.Bench.Records = "c6", 3<<20, count(1), count(3)
		}))
		if r.Status == result.Valid || !strings.Contains(r.Reason, "producer 1 on w1") {
			t.Errorf("%s: %s", r.Status, r.Reason)
		}
	})
}

// killTool kills the first process whose arguments hold some words, once it has
// run a second.
func killTool(ctx context.Context, words string) error {
	for {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil || !strings.Contains(strings.ReplaceAll(string(data), "\x00", " "), words) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				return err
			}
			time.Sleep(time.Second)
			return syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func perftoolFile(path string) (*perftool.Producer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r perftool.ProducerReader
	for line := range strings.Lines(string(text)) {
		r.Line(time.Time{}, strings.TrimSuffix(line, "\n"))
	}
	return r.Result(), nil
}
