package bench

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/perftool"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
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
		"2.8.2": scala + old, "3.4": scala + old, "3.5.0": java + old, "3.9.1": java + old, "4.0.0": java + old, "4.1.0": java + old,
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
	if got, want := properties(file), "client.id=\nsasl.jaas.config=a\\ b\\=\"c\";\n"; got != want {
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

// toolPlace is a rig of hosts that all are this machine, with a real broker.
func toolPlace(t *testing.T, workers int) *place {
	t.Helper()
	jars := kafkaJars(t)
	java, err := exec.LookPath("java")
	if err != nil {
		missing(t, "java is not installed")
	}
	dir, err := agentDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KRIG_AGENT_DIR", dir)
	data := t.TempDir()
	addr := startBroker(t, java, jars, data)
	p := &place{t: t}
	p.run, err = rundir.Create(t.TempDir(), "tools", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.run.Close() })
	boot, err := rundir.BootID()
	if err != nil {
		t.Fatal(err)
	}
	rig := Rig{Name: "r", State: 1, Prepared: &rundir.Prepared{}, Limits: &rundir.Limits{}}
	rig.Hosts = append(rig.Hosts, rundir.Host{Name: "b1", Roles: []rundir.Role{rundir.Broker}, Kernel: boot})
	for i := range workers {
		rig.Hosts = append(rig.Hosts, rundir.Host{Name: fmt.Sprintf("w%d", i+1), Roles: []rundir.Role{rundir.Worker}, Kernel: boot})
	}
	for _, h := range rig.Hosts {
		rig.Prepared.Hosts = append(rig.Prepared.Hosts, rundir.PreparedHost{
			Name: h.Name, Dir: t.TempDir(), Agent: filepath.Join(dir, "krig-agent-linux-"+runtime.GOARCH), Java: java, Kafka: jars,
		})
	}
	p.cluster = &rundir.Cluster{Version: "4.4.0", Brokers: []rundir.Node{{ID: 1, Host: "b1", Listener: addr, LogDir: filepath.Join(data, "log")}}}
	fleet := remote.NewFleet(p.run.Dir)
	t.Cleanup(func() { fleet.Close() })
	fleet.Add(rig.Hosts...)
	p.session, err = Open(t.Context(), p.run, fleet, rig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.session.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// missing skips for want of a real part; on CI that is a failure.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// kafkaJars is the distribution of 4.4.0 in krig's cache.
func kafkaJars(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "krig", "kafka", "*4.4.0*", "*", "kafka-tools-4.4.0.jar"))
	if err == nil && len(found) == 0 {
		found, err = filepath.Glob(filepath.Join(cache, "krig", "kafka", "*4.4.0*", "kafka-tools-4.4.0.jar"))
	}
	if err != nil || len(found) == 0 {
		missing(t, "Kafka 4.4.0 is not in krig's cache: make setup")
	}
	return filepath.Dir(found[0])
}

// startBroker starts one process that is controller and broker, and ends it with the test.
func startBroker(t *testing.T, java, jars, dir string) (addr string) {
	t.Helper()
	ports := make([]int, 2)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		defer l.Close()
		l.Close()
	}
	addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
	config := filepath.Join(dir, "server.properties")
	text := fmt.Sprintf("process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:%d\n"+
		"listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d\ncontroller.listener.names=CONTROLLER\nlog.dirs=%s\n"+
		"offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\ntransaction.state.log.replication.factor=1\n"+
		"transaction.state.log.min.isr=1\ntransaction.state.log.num.partitions=1\ngroup.initial.rebalance.delay.ms=0\nauto.create.topics.enable=false\nlog.segment.delete.delay.ms=1000\n",
		ports[1], addr, ports[1], filepath.Join(dir, "log"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cp := jars + "/*"
	format := exec.Command(java, "-cp", cp, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config)
	if out, err := format.CombinedOutput(); err != nil {
		t.Fatalf("formatting: %v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	broker := exec.CommandContext(ctx, java, "-Xmx512m", "-cp", cp, "kafka.Kafka", config)
	log, err := os.Create(filepath.Join(dir, "broker.log"))
	if err != nil {
		t.Fatal(err)
	}
	broker.Stdout, broker.Stderr = log, log
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		broker.Wait()
		log.Close()
	})
	for limit := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		}
		if time.Now().After(limit) {
			data, _ := os.ReadFile(log.Name())
			t.Fatalf("the broker does not answer: %s", data[max(0, len(data)-2000):])
		}
	}
}

var brokerOnce sync.Mutex // one JVM broker at a time

func TestPerftest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	brokerOnce.Lock()
	defer brokerOnce.Unlock()
	p := toolPlace(t, 2)
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
			c.Bench.Records, c.Bench.Rate = count(9000), experiment.SendRate{Value: 3000}
			c.Bench.Warmup = experiment.Duration(time.Second)
		}))
		if r.Status != result.Valid {
			t.Fatalf("%s: %s", r.Status, r.Reason)
		}
		if got := value(t, r, "produce.rate"); got > 3300 || got < 1000 {
			t.Errorf("produce.rate = %v, want at most 3000", got)
		}
		if got := value(t, r, "produce.throughput"); got != 1000*value(t, r, "produce.rate") {
			t.Errorf("produce.throughput = %v", got)
		}
		if got := value(t, r, "produce.errors"); got != 0 {
			t.Errorf("produce.errors = %v", got)
		}
		value(t, r, "produce.latency.p99")
		value(t, r, "consume.throughput")
		names := []string{}
		for _, ph := range r.Phases {
			names = append(names, ph.Name)
		}
		if !slices.Equal(names, []string{"warmup", "steady"}) {
			t.Errorf("phases %v", names)
		}
		kept, err := perftoolFile(p.run.Path("cells", "c1", "1", "load", "w1", "producer-1.txt"))
		if err != nil || kept.Total == nil || kept.Total.Records != 12000 || kept.Steady.Records != 9000 {
			t.Errorf("kept output: %+v, %v", kept, err)
		}
	})
	t.Run("two producers without acknowledgements", func(t *testing.T) {
		p.t = t
		r := p.measure(perf(func(c *experiment.Cell) {
			c.ID, c.Bench.Records = "c2", count(20001)
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
		if took := steady.End.Sub(steady.Start); took < time.Second || took > 8*time.Second {
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
		if err := p.session.Prime(t.Context(), p.cluster, perf(func(c *experiment.Cell) { c.ID = "c5" })); err != nil {
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
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return perftool.ReadProducer(f)
}
