package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/bench/loadgen"
	"krig/internal/experiment"
	"krig/internal/result"
)

// tool runs one of Kafka's performance tools and returns what it printed and
// the CPU seconds that it used.
func tool(tb testing.TB, classpath string, args ...string) (string, float64) {
	tb.Helper()
	cmd := exec.Command("java", append([]string{"-Xmx512m", "-cp", classpath}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%v: %v: %s%s", args[0], err, out.String(), errs.String())
	}
	return out.String(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

var (
	producerTotal = regexp.MustCompile(`(?m)^\d+ records sent, [\d.]+ records/sec \(([\d.]+) MB/sec\)`)
	mebi          = float64(1 << 20)
)

// BenchmarkNativeVsPerftest puts the same loads on one real broker with both
// drivers, in turn, and compares the medians: 1 KiB records, acks=1, 128 KiB
// batches, one client; then reading what the tool wrote, by fetch rate.
func BenchmarkNativeVsPerftest(b *testing.B) {
	const records, rounds = 1_000_000, 3
	p, kafka := realPlace(b, 1)
	addr, classpath := kafka.addr, kafka.jars+"/*"
	if _, err := kafka.admin(b).CreateTopic(b.Context(), 1, 1, nil, "perf"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		figures := map[string][]float64{}
		add := func(name string, v float64) { figures[name] = append(figures[name], v) }
		for range rounds {
			rate, cpu := producePerftest(b, classpath, addr, records)
			add("perftest-produce-MiB/s", rate/mebi)
			add("perftest-produce-cpu-s/GB", cpu)
			rate, cpu = produceNative(p, records)
			add("native-produce-MiB/s", rate/mebi)
			add("native-produce-cpu-s/GB", cpu)
		}
		for range rounds {
			add("perftest-consume-MiB/s", consumePerftest(b, classpath, addr, records)/mebi)
			add("native-consume-MiB/s", consumeNative(b, p, addr, records)/mebi)
		}
		median := map[string]float64{}
		for name, all := range figures {
			slices.Sort(all)
			median[name] = all[len(all)/2]
			b.ReportMetric(median[name], name)
		}
		b.ReportMetric(median["native-produce-MiB/s"]/median["perftest-produce-MiB/s"], "produce-ratio")
		b.ReportMetric(median["native-produce-cpu-s/GB"]/median["perftest-produce-cpu-s/GB"], "produce-cpu-ratio")
		b.ReportMetric(median["native-consume-MiB/s"]/median["perftest-consume-MiB/s"], "consume-ratio")
	}
}

const versusSize = 1024 // bytes of a record

// producePerftest writes with Kafka's tool: bytes/s and CPU seconds a GB.
func producePerftest(b *testing.B, classpath, addr string, records int) (rate, cpu float64) {
	b.Helper()
	out, cpu := tool(b, classpath, "org.apache.kafka.tools.ProducerPerformance", "--topic", "perf", "--num-records", strconv.Itoa(records),
		"--record-size", strconv.Itoa(versusSize), "--throughput", "-1", "--producer-props", "bootstrap.servers="+addr, "acks=1", "batch.size=131072")
	m := producerTotal.FindStringSubmatch(out)
	if m == nil {
		b.Fatalf("no total in %s", out)
	}
	rate, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate * mebi, cpu / (float64(records*versusSize) / 1e9)
}

// produceNative writes with the native driver: bytes/s and CPU seconds a GB.
func produceNative(p *place, records int64) (rate, cpu float64) {
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Partitions, c.Bench.Producers = count(1), count(1)
		c.Bench.Producer = map[string]string{"acks": "1", "batch.size": "131072"}
		c.Bench.RecordSize, c.Bench.Records, c.Bench.Duration = versusSize, count(records), 0
	}))
	rate, _ = r.Measures.Get("produce.throughput")
	cpu, _ = r.Measures.Get("generator.cpu")
	return rate, cpu / (float64(records*versusSize) / 1e9)
}

func TestNativeOnARealBroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	p, kafka := realPlace(t, 1)
	for _, acks := range []string{"all", "0"} {
		r := p.measure(cell(func(c *experiment.Cell) {
			c.ID = "acks-" + acks
			c.Bench.Partitions, c.Bench.Producers, c.Bench.Consumers = count(3), count(2), count(1)
			c.Bench.Producer["acks"] = acks
			c.Bench.Records, c.Bench.Duration = count(20_000), 0
		}))
		if r.Status != result.Valid {
			t.Errorf("acks=%s: %s: %s", acks, r.Status, r.Reason)
			continue
		}
		if lost, known := r.Measures.Get("produce.lost"); known != (acks == "0") || lost != 0 {
			t.Errorf("acks=%s: produce.lost = %v, known %v", acks, lost, known)
		}
		if value(t, r, "produce.rate") <= 0 || value(t, r, "consume.rate") <= 0 {
			t.Errorf("acks=%s: %v", acks, r.Measures)
		}
		if r.Settle.Residue != "" {
			t.Errorf("acks=%s: not settled: %s", acks, r.Settle.Residue)
		}
		if left, err := filepath.Glob(filepath.Join(kafka.logDir, "krig-*")); err != nil || len(left) > 0 {
			t.Errorf("acks=%s: directories left: %v %v", acks, left, err)
		}
	}
}

// consumePerftest reads the topic with Kafka's tool: bytes/s by its fetch rate.
func consumePerftest(b *testing.B, classpath, addr string, records int) float64 {
	b.Helper()
	out, _ := tool(b, classpath, "org.apache.kafka.tools.ConsumerPerformance", "--topic", "perf", "--bootstrap-server", addr, "--messages", strconv.Itoa(records), "--timeout", "60000")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for len(lines) > 2 && !strings.HasPrefix(lines[0], "start.time") {
		lines = lines[1:] // warnings
	}
	head, last := strings.Split(lines[0], ","), strings.Split(lines[len(lines)-1], ",")
	for i, name := range head {
		if strings.TrimSpace(name) == "fetch.MB.sec" && i < len(last) {
			rate, err := strconv.ParseFloat(strings.TrimSpace(last[i]), 64)
			if err != nil {
				b.Fatal(err)
			}
			return rate * mebi
		}
	}
	b.Fatalf("no fetch rate in %s", out)
	return 0
}

// consumeNative reads the topic with the native driver's consumer, through the agent.
func consumeNative(b *testing.B, p *place, addr string, records int64) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	call, err := p.session.agents["w1"].Call(ctx, "load", loadgen.Spec{
		Brokers: []string{addr}, Workers: 1, RecordSize: 1024, ByRecords: true, Await: time.Second,
		ConsumerSettings: map[string]string{"check.crcs": "false"}, // as the tool has it
		Consumers:        []loadgen.Consumer{{Group: "native-" + strconv.FormatInt(time.Now().UnixNano(), 36), Topics: []string{"perf"}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	var end loadgen.Summary
	stopped := false
	for {
		m, err := call.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		switch m.Kind {
		case loadgen.Assigned:
			err = call.Send(loadgen.Start, loadgen.StartBody{At: time.Now().Add(100 * time.Millisecond).UnixNano()})
		case loadgen.Tick:
			var i loadgen.Interval
			if err = json.Unmarshal(m.Body, &i); err == nil && i.Counters.Consumed >= records && !stopped {
				stopped = true
				err = call.Send(loadgen.Stop, struct{}{})
			}
		case loadgen.End:
			err = json.Unmarshal(m.Body, &end)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return float64(end.Counters.Bytes) / (time.Duration(end.LastRead - end.FirstRead)).Seconds()
}
