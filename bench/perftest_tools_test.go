package bench

import (
	"context"
	"fmt"
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
	p.cluster = &rundir.Cluster{Version: "4.4.0", Brokers: []rundir.Node{{ID: 1, Host: "b1", Listener: addr, LogDirs: []string{filepath.Join(data, "log")}}}}
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
