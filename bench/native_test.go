package bench

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
)

// agentDir builds krig-agent once for all tests of the package.
var agentDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "krig-agent")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "krig-agent-linux-"+runtime.GOARCH), "krig/cmd/krig-agent")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building krig-agent: %w: %s", err, out)
	}
	return dir, os.Setenv("KRIG_AGENT_DIR", dir) // of the whole process: tests run side by side
})

func TestMain(m *testing.M) {
	code := m.Run()
	if begun != nil {
		begun.stop()
	}
	if dir, _ := agentDir(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// place is a rig of hosts that all are this machine, with a broker in this
// process: everything of a load is real but Kafka and the distance.
type place struct {
	t       testing.TB
	run     *rundir.Run
	session *Session
	cluster *rundir.Cluster
	kafka   *kfake.Cluster
	doors   *doors
	agents  string // each host's own name of the agent is below
	events  []rundir.Event
	mu      sync.Mutex
}

func newPlace(t *testing.T, brokers, workers int) *place {
	t.Helper()
	doors := &doors{}
	k, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.ListenFn(doors.listen))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	var nodes []rundir.Node
	for i, addr := range k.ListenAddrs() {
		nodes = append(nodes, rundir.Node{ID: int32(i), Host: "b" + strconv.Itoa(i+1), Listener: addr, LogDirs: []string{t.TempDir()}})
	}
	p := placeWith(t, workers, nodes)
	p.kafka, p.doors = k, doors
	return p
}

// doors are the brokers' listeners, in order. A broker whose door and
// connections are closed is as good as dead.
type doors struct {
	mu   sync.Mutex
	list []*door
}

type door struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (d *doors) listen(network, addr string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, &door{Listener: l})
	return d.list[len(d.list)-1], nil
}

func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, c)
	return c, err
}

// kill ends a broker.
func (d *doors) kill(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dead := d.list[i]
	dead.Listener.Close()
	dead.mu.Lock()
	defer dead.mu.Unlock()
	for _, c := range dead.conns {
		if c != nil {
			c.Close()
		}
	}
}

func placeWith(t testing.TB, workers int, brokers []rundir.Node) *place {
	t.Helper()
	dir, err := agentDir()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, agents: t.TempDir()}
	p.run, err = rundir.Create(t.TempDir(), "bench", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.run.Close() })
	p.run.Listen(func(e rundir.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	})
	boot, err := rundir.BootID()
	if err != nil {
		t.Fatal(err)
	}
	rig := Rig{Name: "r", State: 1, Prepared: &rundir.Prepared{}, Limits: &rundir.Limits{}}
	p.cluster = &rundir.Cluster{Version: "4.4.0", Brokers: brokers}
	for _, b := range brokers {
		roles := []rundir.Role{rundir.Broker}
		if workers == 0 { // they are on the brokers' hosts
			roles = append(roles, rundir.Worker)
		}
		rig.Hosts = append(rig.Hosts, rundir.Host{Name: b.Host, Roles: roles, Kernel: boot})
	}
	for i := range workers {
		rig.Hosts = append(rig.Hosts, rundir.Host{Name: "w" + strconv.Itoa(i+1), Roles: []rundir.Role{rundir.Worker}, Kernel: boot})
	}
	for _, h := range rig.Hosts {
		rig.Prepared.Hosts = append(rig.Prepared.Hosts, rundir.PreparedHost{Name: h.Name, Dir: t.TempDir(), Agent: p.agent(dir, h.Name)})
	}
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

// agent gives a host a name of its own for the agent's program, so that its
// process can be found.
func (p *place) agent(dir, host string) string {
	path := filepath.Join(p.agents, host, "krig-agent")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "krig-agent-linux-"+runtime.GOARCH), path); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// cell is a cell without collectors, changed by change.
func cell(change func(*experiment.Cell)) *experiment.Cell {
	c := &experiment.Cell{ID: "c1", RigName: "r"}
	c.Rig.Brokers.Count, c.Rig.Workers.Count = 1, 1
	c.Bench = experiment.Bench{
		Driver: "native", Topics: count(1), Partitions: count(2), ReplicationFactor: 1,
		Producers: count(2), Consumers: count(0), RecordSize: 100,
		Rate:     experiment.SendRate{Max: true},
		Duration: experiment.Duration(2 * time.Second),
		Producer: map[string]string{"acks": "1"},
	}
	c.Collect.Interval = experiment.Duration(time.Second)
	change(c)
	return c
}

func count(n int64) experiment.Count { return experiment.Count{N: n, Set: true} }

func (p *place) measure(c *experiment.Cell) *result.Repeat {
	p.t.Helper()
	r, err := p.session.Run(p.t.Context(), Ask{Cell: c, Cluster: p.cluster, ClusterNo: 1, Repeat: 1, Attempt: 1})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("%s %s marks=%v warnings=%v settle=%+v", r.Status, r.Reason, r.Marks, r.Warnings, r.Settle)
	for name, m := range r.Measures {
		if m.Value != nil {
			p.t.Logf("  %s = %v %s", name, *m.Value, m.Unit)
		} else {
			p.t.Logf("  %s unknown: %s", name, m.Reason)
		}
	}
	return r
}

// sound fails a test whose repeat is not valid. A machine that is too busy for the
// generator says so in the repeat; its figures are still right.
func sound(t *testing.T, r *result.Repeat) {
	t.Helper()
	if r.Status != result.Valid && !strings.Contains(r.Reason, "the generator's scheduler woke late") {
		t.Fatalf("%s: %s", r.Status, r.Reason)
	}
}

func value(t *testing.T, r *result.Repeat, name string) float64 {
	t.Helper()
	v, ok := r.Measures.Get(name)
	if !ok {
		t.Errorf("%s is not known: %s", name, r.Measures[name].Reason)
	}
	return v
}

func TestNativeAtRate(t *testing.T) {
	p := newPlace(t, 2, 2)
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Topics, c.Bench.Producers, c.Bench.Consumers = count(2), count(3), count(2)
		c.Bench.Rate = experiment.SendRate{Value: 2000}
		c.Bench.Warmup = experiment.Duration(time.Second)
		c.Bench.Duration = experiment.Duration(3 * time.Second)
	}))
	sound(t, r)
	if got := value(t, r, "produce.rate"); math.Abs(got-2000) > 200 {
		t.Errorf("produce.rate = %v, want 2000", got)
	}
	if got := value(t, r, "consume.throughput"); math.Abs(got-200e3) > 20e3 {
		t.Errorf("consume.throughput = %v, want 200000", got)
	}
	if got := value(t, r, "availability"); got != 1 {
		t.Errorf("availability = %v", got)
	}
	if p99, e2e := value(t, r, "produce.latency.p99"), value(t, r, "end_to_end.latency.p99"); p99 <= 0 || p99 > 1 || e2e <= 0 || e2e > 2 {
		t.Errorf("latencies: produce %v, end to end %v", p99, e2e)
	}
	h := p.log(r, "w1", "produce")
	h.Merge(p.log(r, "w2", "produce"))
	if h.TotalCount() != 6000 {
		t.Errorf("%d latencies of records intended in the window, want 6000", h.TotalCount())
	}
	if got, want := float64(h.ValueAtQuantile(99))/1e9, value(t, r, "produce.latency.p99"); got != want {
		t.Errorf("p99 of the logs is %v, of the result %v", got, want)
	}
	var series result.SeriesFile
	if err := p.run.ReadJSON(&series, "cells", "c1", "1", "series.json"); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range series.Series {
		if s.Name == "produce.throughput" {
			found = true
			for _, v := range s.Values {
				if v == nil || *v < 0 || *v > 1e6 {
					t.Errorf("produce.throughput over time: %v", s.Values)
				}
			}
		}
	}
	if !found {
		t.Error("no series of the throughput")
	}
}

// log merges one worker's histograms of a name from its .hlog file.
func (p *place) log(r *result.Repeat, worker, name string) *hdrhistogram.Histogram {
	p.t.Helper()
	data, err := os.ReadFile(p.run.Path("cells", r.Cell, "1", "load", worker+".hlog"))
	if err != nil {
		p.t.Fatal(err)
	}
	out := hdrhistogram.New(1000, 3600e9, 3)
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "Tag="+name+",") {
			continue
		}
		h, err := hdrhistogram.Decode([]byte(strings.TrimSpace(line[strings.LastIndex(line, ",")+1:])))
		if err != nil {
			p.t.Fatal(err)
		}
		out.Merge(h)
	}
	return out
}

func TestNativeByRecords(t *testing.T) {
	p := newPlace(t, 1, 2)
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Records, c.Bench.Duration = count(10_001), 0
		c.Bench.Producers, c.Bench.Consumers = count(3), count(1)
	}))
	sound(t, r)
	h := p.log(r, "w1", "produce")
	h.Merge(p.log(r, "w2", "produce"))
	if h.TotalCount() != 10_001 {
		t.Errorf("%d records, want 10001", h.TotalCount())
	}
	if got := value(t, r, "consume.rate"); got <= 0 {
		t.Errorf("consume.rate = %v", got)
	}
	length := r.Phases[0].End.Sub(r.Phases[0].Start).Seconds()
	if got := value(t, r, "produce.rate") * length; math.Abs(got-10_001) > 0.5 {
		t.Errorf("rate × length = %v, want 10001", got)
	}
}

func TestNativeWithoutAcks(t *testing.T) {
	p := newPlace(t, 1, 1)
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Producer["acks"] = "0"
		c.Bench.Rate = experiment.SendRate{Value: 1000}
		c.Bench.Duration = experiment.Duration(3 * time.Second)
	}))
	sound(t, r)
	if got := value(t, r, "produce.rate"); math.Abs(got-1000) > 100 {
		t.Errorf("produce.rate = %v, want 1000", got)
	}
	if got := value(t, r, "produce.lost"); got != 0 {
		t.Errorf("produce.lost = %v", got)
	}
	if _, known := r.Measures.Get("produce.latency.p99"); known {
		t.Error("without acknowledgements there is a latency")
	}
}

func TestLostWithoutAcks(t *testing.T) {
	p := newPlace(t, 1, 1)
	p.kafka.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		p.kafka.KeepControl()
		return nil, nil, true // what comes is thrown away, without a word
	})
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Producer["acks"] = "0"
		c.Bench.Records, c.Bench.Duration = count(500), 0
	}))
	if lost := value(t, r, "produce.lost"); lost != 500 {
		t.Errorf("produce.lost = %v, want all 500", lost)
	}
}

func TestRecordsTooSmallForATime(t *testing.T) {
	p := newPlace(t, 1, 1)
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.RecordSize, c.Bench.Consumers = 5, count(1)
		c.Bench.Records, c.Bench.Duration = count(1000), 0
	}))
	sound(t, r)
	if got := r.Measures["end_to_end.latency.p99"]; got.Value != nil || got.Reason == "" {
		t.Errorf("%s (%s): end-to-end %+v", r.Status, r.Reason, got)
	}
	if value(t, r, "consume.rate") <= 0 || len(r.Load) != 2 || r.Client.Producer["acks"] != "1" {
		t.Errorf("consume.rate %v, notes %v", r.Measures["consume.rate"], r.Load)
	}
}
