package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/kafka"
	"krig/internal/perftool"
)

func TestProducerArgv(t *testing.T) {
	spec := producerSpec{
		bootstrap: []string{"b1:9092", "b2:9092"}, topic: "perf", records: 1000, size: 100, throughput: "-1",
		config: map[string]string{"linger.ms": "5", "acks": "all"},
	}
	warm, transactional, file := spec, spec, spec
	warm.warmup = 200
	transactional.transaction, transactional.config = "t-1", map[string]string{"transactional.id": "t"}
	file.configFile = "/k/producer.properties"
	const (
		class  = "org.apache.kafka.tools.ProducerPerformance "
		common = "--topic perf --num-records 1000 --record-size 100 --throughput -1 --print-metrics"
		old    = class + common + " --producer-props bootstrap.servers=b1:9092,b2:9092 acks=all linger.ms=5"
		now    = class + "--bootstrap-server b1:9092,b2:9092 " + common + " --reporting-interval 1000"
		trans  = " --transactional-id t-1 --transaction-duration-ms 3000"
	)
	tests := []struct {
		version string
		spec    producerSpec
		want    string
	}{
		{"2.8.2", spec, old}, {"3.4.0", spec, old}, {"3.9.1", spec, old}, {"4.0.0", spec, old}, {"4.1.0", spec, old},
		{"4.2.0", spec, now + " --command-property acks=all linger.ms=5"},
		{"4.4.0", spec, now + " --command-property acks=all linger.ms=5"},
		{"4.4.0", warm, now + " --warmup-records 200 --command-property acks=all linger.ms=5"},
		{"3.7.0", transactional, class + common + trans + " --producer-props bootstrap.servers=b1:9092,b2:9092"},
		{"4.0.0", transactional, class + common + trans + " --producer-props bootstrap.servers=b1:9092,b2:9092"},
		{"4.4.0", transactional, now + trans},
		{"3.9.1", file, class + common + " --producer.config /k/producer.properties --producer-props bootstrap.servers=b1:9092,b2:9092 acks=all linger.ms=5"},
		{"4.4.0", file, now + " --command-config /k/producer.properties --command-property acks=all linger.ms=5"},
	}
	for _, tt := range tests {
		v, err := parseToolVersion(tt.version)
		if err != nil {
			t.Fatal(err)
		}
		class, args := v.producer(tt.spec)
		if got := class + " " + strings.Join(args, " "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.version, got, tt.want)
		}
	}
}

func TestConsumerArgv(t *testing.T) {
	spec := consumerSpec{
		bootstrap: []string{"b1:9092"}, topic: "perf", group: "g", records: 1000, timeout: 30 * time.Second,
		config: map[string]string{"max.partition.fetch.bytes": "4096", "fetch.min.bytes": "1"}, configFile: "/k/consumer.properties",
	}
	const (
		scala = "kafka.tools.ConsumerPerformance "
		java  = "org.apache.kafka.tools.ConsumerPerformance "
		old   = "--bootstrap-server b1:9092 --topic perf --group g --messages 1000 --timeout 30000 --fetch-size 4096 --consumer.config /k/consumer.properties"
		now   = "--bootstrap-server b1:9092 --topic perf --group g --num-records 1000 --timeout 30000 --fetch-size 4096 --command-config /k/consumer.properties"
	)
	for version, want := range map[string]string{
		"2.8.2": scala + old, "3.4.0": scala + old, "3.5.0": java + old, "3.9.1": java + old, "4.0.0": java + old, "4.1.0": java + old,
		"4.2.0": java + now, "4.4.0": java + now,
	} {
		v, err := parseToolVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		class, args := v.consumer(spec)
		if got := class + " " + strings.Join(args, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", version, got, want)
		}
	}
}

func TestToolCommand(t *testing.T) {
	got := jvm{java: "/usr/bin/java", jars: "/k/libs", logging: "/k/perftest"}.command("C", []string{"-a"})
	want := []string{"/usr/bin/java", "-Xms256m", "-Xmx256m", "-Duser.language=en", "-Duser.timezone=UTC", "-XX:-UsePerfData",
		"-Dlog4j.configuration=file:/k/perftest/log4j.properties", "-Dlog4j2.configurationFile=/k/perftest/log4j2.properties",
		"-cp", "/k/libs/*", "C", "-a"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSplitConfig(t *testing.T) {
	inline, file := splitConfig(map[string]string{"acks": "1", "sasl.jaas.config": "a b=\"c\";", "client.id": "", "transactional.id": "t"})
	if len(inline) != 1 || inline["acks"] != "1" || len(file) != 2 {
		t.Errorf("inline %v, file %v", inline, file)
	}
	if got, want := string(kafka.WriteProperties(file)), "client.id=\nsasl.jaas.config=a b=\"c\";\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckPerftest(t *testing.T) {
	tests := []struct {
		name   string
		change func(*experiment.Cell)
		want   []string
	}{
		{"fine", func(*experiment.Cell) {}, nil},
		{"fewer producers than topics", func(c *experiment.Cell) { c.Bench.Topics = count(3) },
			[]string{"bench.producers: each process of the producer tool writes one topic: 2 cannot fill 3 topics"}},
		{"fewer consumers than topics", func(c *experiment.Cell) { c.Bench.Topics, c.Bench.Consumers = count(2), count(1) },
			[]string{"bench.consumers: each process of the consumer tool reads one topic: 1 cannot read 2 topics"}},
		{"too few records", func(c *experiment.Cell) { c.Bench.Records = count(1) }, []string{"bench.records: 1 records are too few for 2 producers"}},
		{"fraction", func(c *experiment.Cell) { c.Kafka.Version, c.Bench.Rate = "3.9.1", experiment.SendRate{Value: 2.5} },
			[]string{"bench.rate: the producer tool of Kafka 3.9 takes no fraction"}},
		{"fraction from 4.0", func(c *experiment.Cell) { c.Kafka.Version, c.Bench.Rate = "4.0.0", experiment.SendRate{Value: 2.5} }, nil},
		{"less than a record a second", func(c *experiment.Cell) { c.Bench.Rate = experiment.SendRate{Value: 1} },
			[]string{"bench.rate: 1 records/s are too few for 2 producers"}},
		{"settings of the tool's own", func(c *experiment.Cell) {
			c.Bench.Producer = map[string]string{"bootstrap.servers": "x"}
			c.Bench.Consumer = map[string]string{"group.id": "x"}
		}, []string{"bench.producer.bootstrap.servers: krig knows the brokers", "bench.consumer.group.id: krig names the groups: one a topic"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := cell(func(c *experiment.Cell) { c.Kafka.Version = "4.4.0"; tt.change(c) })
			var got []string
			for _, p := range checkPerftest(c) {
				got = append(got, p.Path+": "+p.Reason)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestThroughputShares(t *testing.T) {
	for want, rate := range map[string]experiment.SendRate{
		"-1 -1 -1": {Max: true}, "34 33 33": {Value: 100}, "0.5 0.5 0.5": {Value: 1.5},
	} {
		if got := strings.Join(throughputs(rate, 3), " "); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

func TestPlanPerftest(t *testing.T) {
	second := experiment.Duration(time.Second)
	atMax, atRate := experiment.SendRate{Max: true}, experiment.SendRate{Value: 100}
	tests := []struct {
		name, version    string
		bench            experiment.Bench
		calibrate        time.Duration
		measured, warmup int64 // with a measured rate of 1000
	}{
		{"records, old", "3.9.1", experiment.Bench{Rate: atMax, Records: count(500)}, 0, 500, 0},
		{"records and warm-up, old", "3.9.1", experiment.Bench{Rate: atMax, Records: count(500), Warmup: 2 * second}, 2 * time.Second, 500, 0},
		{"time, old", "3.9.1", experiment.Bench{Rate: atMax, Duration: 10 * second, Warmup: 2 * second}, 5 * time.Second, 10000, 0},
		{"time, new", "4.4.0", experiment.Bench{Rate: atMax, Duration: 10 * second, Warmup: 2 * second}, 5 * time.Second, 10000, 2000},
		{"records and warm-up, new", "4.4.0", experiment.Bench{Rate: atMax, Records: count(500), Warmup: 2 * second}, 5 * time.Second, 500, 2000},
		{"time at a rate, new", "4.4.0", experiment.Bench{Rate: atRate, Duration: 10 * second, Warmup: 2 * second}, 0, 1000, 200},
		{"time at a rate, old", "2.8.2", experiment.Bench{Rate: atRate, Duration: 10 * second, Warmup: 2 * second}, 2 * time.Second, 1000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := parseToolVersion(tt.version)
			if err != nil {
				t.Fatal(err)
			}
			tt.bench.Producers, tt.bench.Topics = count(2), count(1)
			plan := planPerftest(tt.bench, v)
			measured, warmup := recordsOf(&experiment.Cell{Bench: tt.bench}, v, 1000)
			if plan.calibrate != tt.calibrate || measured != tt.measured || warmup != tt.warmup {
				t.Errorf("got %v, %d, %d; want %v, %d, %d", plan.calibrate, measured, warmup, tt.calibrate, tt.measured, tt.warmup)
			}
		})
	}
}

// printed is a process that prints lines at seconds after the epoch.
func printed(t *testing.T, lines ...string) *track {
	t.Helper()
	var r perftool.ProducerReader
	for _, line := range lines {
		var at float64
		if _, err := fmt.Sscanf(line, "%f", &at); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(line, " ")
		r.Line(moment(at), text)
	}
	out, ok := newTrack(r.Result(), func(at time.Time) time.Time { return at })
	if !ok {
		t.Fatal("no total")
	}
	return out
}

const end = " ms max latency, 1 ms 50th, 4 ms 95th, 22 ms 99th, 140 ms 99.9th."

func TestWindowOfAllProcesses(t *testing.T) {
	// One sends 100/s from 0 to 10, the other 200/s from 2 to 12.
	all := tracks{
		printed(t, "5 500 records sent, 100.0 records/sec (0.01 MB/sec), 2.0 ms avg latency, 10.0 ms max latency.",
			"10 1000 records sent, 100.0 records/sec (0.01 MB/sec), 3.00 ms avg latency, 163.00"+end),
		printed(t, "7 1000 records sent, 200.0 records/sec (0.02 MB/sec), 5.0 ms avg latency, 30.0 ms max latency.",
			"12 2000 records sent, 200.0 records/sec (0.02 MB/sec), 4.00 ms avg latency, 40.00"+end),
	}
	from, to := all.window()
	first, last := all.span()
	if from != 2 || to != 10 || first != 0 || last != 12 {
		t.Fatalf("window %v to %v, span %v to %v", from, to, first, last)
	}
	if got := all.rate(from, to); math.Abs(got-300) > 1e-6 {
		t.Errorf("window: %v records/s, want 300", got)
	}
	if got := all.rate(first, last); math.Abs(got-250) > 1e-6 {
		t.Errorf("span: %v records/s, want 250", got)
	}
	if _, ok := all.peak(10); ok {
		t.Error("a peak over 10 s in a window of 8 s")
	}
	series := all.series(10, 5*time.Second)
	sum := 0.0
	for i, v := range series[0].Values {
		before := first
		if i > 0 {
			before = series[0].Times[i-1]
		}
		sum += *v * (series[0].Times[i] - before)
	}
	if math.Abs(sum-30000) > 1e-6 {
		t.Errorf("the series carries %v bytes of 30000", sum)
	}
}

func TestTrackWithWarmup(t *testing.T) {
	// 100 warm-up records from 0 to 2, then 100/s from 2 to 6. The line of the
	// unfinished warm-up interval is never printed.
	tr := printed(t,
		"1 40 records sent, 40.0 records/sec (0.01 MB/sec), 2.0 ms avg latency, 10.0 ms max latency.",
		"2 In steady state.",
		"4 200 records sent, 100.0 records/sec (0.01 MB/sec), 2.0 ms avg latency, 10.0 ms max latency.",
		"6 500 records sent, 83.333333 records/sec (0.01 MB/sec), 2.00 ms avg latency, 10.00"+end,
		"6 400 steady state records sent, 100.000000 records/sec (0.01 MB/sec), 2.00 ms avg latency, 10.00"+end)
	if math.Abs(tr.start) > 1e-6 || math.Abs(tr.from-2) > 1e-6 || tr.to != 6 {
		t.Errorf("start %v, from %v, to %v", tr.start, tr.from, tr.to)
	}
	for at, want := range map[float64]float64{0.5: 20, 1: 40, 2: 100, 3: 200, 4: 300, 6: 500, 9: 500} {
		if got := tr.upTo(at); math.Abs(got-want) > 1e-3 {
			t.Errorf("up to %v: %v, want %v", at, got, want)
		}
	}
}

func TestPeak(t *testing.T) {
	tr := printed(t,
		"10 100 records sent, 10.0 records/sec (0.01 MB/sec), 2.0 ms avg latency, 10.0 ms max latency.",
		"20 900 records sent, 90.0 records/sec (0.01 MB/sec), 2.0 ms avg latency, 10.0 ms max latency.",
		"30 1100 records sent, 36.666667 records/sec (0.01 MB/sec), 2.00 ms avg latency, 10.00"+end)
	if got, ok := (tracks{tr}).peak(10); !ok || math.Abs(got-90) > 1e-3 {
		t.Errorf("peak %v, %v; want 90", got, ok)
	}
}
