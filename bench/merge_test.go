package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"krig/bench/loadgen"
	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

// recorded is a histogram as it travels, of n values each.
func recorded(t *testing.T, values map[time.Duration]int64) string {
	t.Helper()
	h := loadgen.NewHistogram()
	for v, n := range values {
		if err := h.RecordValues(int64(v), n); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.EncodeV2()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// script is a conductor whose workers have said what a test says they did: one
// tick of a second each, and a summary.
func script(t *testing.T, rate float64, window time.Duration, said ...loadgen.Interval) *conductor {
	t.Helper()
	run, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	start := time.Unix(1_800_000_000, 0)
	c := &conductor{
		s:    &Session{run: run, rig: Rig{Prepared: &rundir.Prepared{}}, clocks: &clocks{own: map[string]bool{}, samples: map[string][]offset{}}},
		l:    loadAsk{dir: filepath.Join("cells", "c", "1", "load")},
		size: 100, start: start,
	}
	for i, tick := range said {
		tick.From, tick.To = start.UnixNano(), start.Add(time.Second).UnixNano()
		w := &worker{
			host: fmt.Sprint("w", i+1), ticks: []loadgen.Interval{tick}, ahead: map[int]int64{},
			spec: &loadgen.Spec{Rate: rate, Window: window, ProducersInAll: len(said), Producers: []loadgen.Producer{{Index: i}}},
		}
		w.summary = &loadgen.Summary{Counters: tick.Counters, Window: [2]int64{tick.From, tick.To}}
		c.workers = append(c.workers, w)
	}
	return c
}

func TestPercentilesAreMergedNeverAveraged(t *testing.T) {
	// 99,000 records at 5 ms on one worker, 1,000 at 900 ms on the other: the mean of
	// their p99 would be 452.5 ms, the weighted one 13.95 ms.
	out := script(t, 0, time.Second,
		loadgen.Interval{Counters: loadgen.Counters{Acked: 99_000, AckedW: 99_000, IntendedW: 99_000, Full: 1}, Histograms: map[string]string{loadgen.Produce: recorded(t, map[time.Duration]int64{5 * time.Millisecond: 99_000})}},
		loadgen.Interval{Counters: loadgen.Counters{Acked: 1_000, AckedW: 1_000, IntendedW: 1_000}, Histograms: map[string]string{loadgen.Produce: recorded(t, map[time.Duration]int64{900 * time.Millisecond: 1_000})}},
	).loaded()
	for name, want := range map[string]float64{"p50": 0.005, "p99": 0.005, "p999": 0.9, "max": 0.9, "mean": 0.01395} {
		got, _ := out.measures.Get("produce.latency." + name)
		if math.Abs(got-want) > want/500 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got, _ := out.measures.Get("produce.throughput"); got != 10e6 {
		t.Errorf("produce.throughput = %v, want 10000000", got)
	}
	if out.invalid != "" || !slices.Equal(out.marks, []string{result.AtSaturation}) {
		t.Errorf("invalid %q, marks %v", out.invalid, out.marks)
	}
}

func TestJudgement(t *testing.T) {
	ms := time.Millisecond
	for _, tc := range []struct {
		name    string
		rate    float64
		c       loadgen.Counters
		produce map[time.Duration]int64
		late    map[time.Duration]int64
		invalid string
		marks   []string
	}{
		{name: "a rate that was kept", rate: 100, c: loadgen.Counters{IntendedW: 100, Intended: 100, Acked: 100, AckedW: 100}, produce: map[time.Duration]int64{ms: 100}, late: map[time.Duration]int64{ms / 2: 100}},
		{name: "the scheduler woke late", rate: 100, c: loadgen.Counters{IntendedW: 100, Intended: 100, Acked: 100, AckedW: 100}, produce: map[time.Duration]int64{3 * ms: 100}, late: map[time.Duration]int64{2 * ms: 100}, invalid: "w1: the generator's scheduler woke late: 2ms at its p99, above 1ms; run fewer other programs on the machine, take more workers, or ask for a lower rate"},
		{name: "late, but a tenth of what is reported", rate: 100, c: loadgen.Counters{IntendedW: 100, Intended: 100, Acked: 100, AckedW: 100}, produce: map[time.Duration]int64{30 * ms: 100}, late: map[time.Duration]int64{2 * ms: 100}},
		{name: "held back by a full buffer", rate: 100, c: loadgen.Counters{IntendedW: 100, Intended: 100, Acked: 60, AckedW: 60, BlockedW: 40, Full: 1}, produce: map[time.Duration]int64{ms: 60}, marks: []string{result.NotSustained}},
		{name: "acknowledgements fell behind", rate: 100, c: loadgen.Counters{IntendedW: 1000, Intended: 1000, Acked: 600, AckedW: 600}, produce: map[time.Duration]int64{ms: 1000}, marks: []string{result.NotSustained}},
		{name: "a ceiling of the cluster", c: loadgen.Counters{IntendedW: 100, Acked: 100, AckedW: 100, Full: 7}, produce: map[time.Duration]int64{ms: 100}, marks: []string{result.AtSaturation}},
		{name: "a ceiling of the generator", c: loadgen.Counters{IntendedW: 100, Acked: 100, AckedW: 100}, produce: map[time.Duration]int64{ms: 100}, marks: []string{result.AtSaturation, result.LimitedByGenerator}},
		{name: "records failed", rate: 100, c: loadgen.Counters{IntendedW: 100, Intended: 100, Acked: 90, AckedW: 90, Failed: 10, FailedW: 10}, produce: map[time.Duration]int64{ms: 90}, invalid: "10 of 100 records failed"},
	} {
		h := map[string]string{loadgen.Produce: recorded(t, tc.produce)}
		if tc.late != nil {
			h[loadgen.Late] = recorded(t, tc.late)
		}
		out := script(t, tc.rate, time.Second, loadgen.Interval{Counters: tc.c, Histograms: h}).loaded()
		if !strings.HasPrefix(out.invalid, tc.invalid) || (tc.invalid == "") != (out.invalid == "") || !slices.Equal(out.marks, tc.marks) {
			t.Errorf("%s: invalid %q marks %v, want %q %v", tc.name, out.invalid, out.marks, tc.invalid, tc.marks)
		}
	}
}

func TestEndToEndFollowsTheClocks(t *testing.T) {
	c := script(t, 100, time.Second,
		loadgen.Interval{Histograms: map[string]string{loadgen.EndToEnd + "1": recorded(t, map[time.Duration]int64{20 * time.Millisecond: 10, 2 * time.Millisecond: 5})}},
		loadgen.Interval{},
	)
	// At the start both clocks agreed; a second later w2, which produced, is 10 ms ahead.
	c.s.clocks.add("w2", offset{at: c.start, bound: 3 * time.Millisecond})
	c.s.clocks.add("w2", offset{at: c.start.Add(2 * time.Second), ahead: 20 * time.Millisecond, bound: time.Millisecond})
	c.workers[0].spec.Consumers = []loadgen.Consumer{{}}
	c.workers[0].ahead[1] = int64(-time.Millisecond) // as told at the start: corrected by 11 ms now
	m, err := c.merge()
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(m.endToEnd.Max()).Round(100 * time.Microsecond); got != 31*time.Millisecond {
		t.Errorf("20 ms become %v, want 31ms", got)
	}
	if m.bound != 3*time.Millisecond || m.below != 0 {
		t.Errorf("bound %v, %d below", m.bound, m.below)
	}
	c.workers[0].ahead[1] = int64(20 * time.Millisecond) // corrected by -10 ms
	if m, err = c.merge(); err != nil || m.below != 5 {
		t.Errorf("%d below the bound (%v), want 5", m.below, err)
	}
}

func TestClocksInterpolate(t *testing.T) {
	c := &clocks{own: map[string]bool{"same": true}, samples: map[string][]offset{}}
	at := time.Unix(1_800_000_000, 0)
	c.add("other", offset{at: at, ahead: time.Second, bound: time.Millisecond})
	c.add("other", offset{at: at.Add(10 * time.Second), ahead: 2 * time.Second, bound: 3 * time.Millisecond})
	c.add("same", offset{at: at, ahead: time.Hour, bound: time.Hour})
	for _, tc := range []struct {
		host         string
		when         time.Duration
		ahead, bound time.Duration
	}{
		{"other", -time.Second, time.Second, time.Millisecond},
		{"other", 5 * time.Second, 1500 * time.Millisecond, 3 * time.Millisecond},
		{"other", time.Minute, 2 * time.Second, 3 * time.Millisecond},
		{"same", 0, 0, 0},
		{"unknown", 0, 0, 0},
	} {
		if a, b := c.ahead(tc.host, at.Add(tc.when)); a != tc.ahead || b != tc.bound {
			t.Errorf("%s at %v: %v ± %v, want %v ± %v", tc.host, tc.when, a, b, tc.ahead, tc.bound)
		}
	}
	if got := c.local("other", at.Add(time.Second).UnixNano()); got.Sub(at) > 0 || got.Sub(at) < -200*time.Millisecond {
		t.Errorf("local time %v", got)
	}
}

func TestPeakIsTheHighestTenSeconds(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	phase := result.Phase{Start: time.Unix(100, 0), End: time.Unix(120, 0)}
	s := result.Series{Name: "produce.rate", Unit: result.RecordsPerSecond}
	for i := range 25 {
		s.Times = append(s.Times, float64(101+i))
		s.Values = append(s.Values, v(float64(i)))
	}
	m := result.Measures{}
	setPeak(m, s, phase)
	if got, _ := m.Get("produce.rate.peak"); got != 14.5 { // seconds 11 to 20 of the phase
		t.Errorf("peak %v, want 14.5", got)
	}
	s.Values[15] = nil // a hole: 0 to 9, or 5 to 14
	setPeak(m, s, phase)
	if got, _ := m.Get("produce.rate.peak"); got != 9.5 {
		t.Errorf("peak %v, want 9.5", got)
	}
	phase.End = time.Unix(109, 0)
	setPeak(m, s, phase)
	if got := m["produce.rate.peak"]; got.Value != nil || got.Reason == "" {
		t.Errorf("peak of nine seconds: %+v", got)
	}
}

func TestHistogramLog(t *testing.T) {
	c := script(t, 0, time.Second, loadgen.Interval{Histograms: map[string]string{loadgen.Produce: recorded(t, map[time.Duration]int64{5 * time.Millisecond: 3}), loadgen.Late: ""}})
	delete(c.workers[0].ticks[0].Histograms, loadgen.Late)
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.s.run.Path(c.l.dir, "w1.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 4 || lines[1] != "#[StartTime: 1800000000.000 (seconds since epoch)]" || !strings.HasPrefix(lines[3], "Tag=produce,0.000,1.000,5.00") {
		t.Errorf("log:\n%s", data)
	}
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(string(data)))
	h, err := reader.NextIntervalHistogram()
	if err != nil || h.TotalCount() != 3 || h.Tag() != "produce" {
		t.Errorf("read back: %v %v", h, err)
	}
}

func TestSpread(t *testing.T) {
	for _, tc := range []struct{ brokers, topics, partitions, replicas int }{
		{1, 3, 4, 1}, {3, 1, 3, 1}, {3, 7, 5, 2}, {4, 4, 100, 3}, {5, 2, 1, 5},
	} {
		var ids []int32
		for i := range tc.brokers {
			ids = append(ids, int32(10+i))
		}
		leads, holds := map[int32]int{}, map[int32]int{}
		for _, topic := range spread(ids, tc.topics, tc.partitions, tc.replicas) {
			for _, replicas := range topic {
				leads[replicas[0]]++
				seen := map[int32]bool{}
				for _, b := range replicas {
					holds[b]++
					seen[b] = true
				}
				if len(seen) != tc.replicas {
					t.Fatalf("%+v: replicas %v", tc, replicas)
				}
			}
		}
		if !even(leads, 1) || !even(holds, tc.replicas) {
			t.Errorf("%+v: leaders %v, replicas %v", tc, leads, holds)
		}
	}
}

func even(n map[int32]int, by int) bool {
	low, high := math.MaxInt, 0
	for _, v := range n {
		low, high = min(low, v), max(high, v)
	}
	return high-low <= by
}

func TestSharesAreExact(t *testing.T) {
	for _, tc := range []struct{ whole, n int64 }{{10, 3}, {2_000_000, 7}, {5, 5}, {3, 4}} {
		var sum int64
		for i := range tc.n {
			sum += share(tc.whole, int(i), int(tc.n))
		}
		if sum != tc.whole {
			t.Errorf("%d parts of %d make %d", tc.n, tc.whole, sum)
		}
	}
	if got := turn([]string{"a", "b", "c", "d", "e"}, 1, 2); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("the second of two clients gets %v", got)
	}
	if got := turn([]string{"a", "b"}, 4, 5); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the fifth of five clients gets %v", got)
	}
}

func TestCheckNative(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*experiment.Cell)
		want   []string
	}{
		{"good", func(*experiment.Cell) {}, nil},
		{"no producers", func(c *experiment.Cell) { c.Bench.Producers = count(0) }, []string{"bench.producers"}},
		{"misspelt", func(c *experiment.Cell) { c.Bench.Producer["ackz"] = "1" }, []string{"bench.producer.ackz"}},
		{"security", func(c *experiment.Cell) { c.Bench.Producer["security.protocol"] = "SSL" }, []string{"bench.producer.security.protocol"}},
		{"own", func(c *experiment.Cell) {
			c.Bench.Producer["transactional.id"] = "x"
			c.Bench.Consumer = map[string]string{"bootstrap.servers": "x"}
		}, []string{"bench.consumer.bootstrap.servers", "bench.producer.transactional.id"}},
		{"value", func(c *experiment.Cell) { c.Bench.Producer["acks"] = "most" }, []string{"bench.producer"}},
		{"records", func(c *experiment.Cell) { c.Bench.Records = count(1) }, []string{"bench.records"}},
	} {
		var got []string
		for _, p := range Check(cell(tc.change)) {
			if p.Reason == "" {
				t.Errorf("%s: no reason at %s", tc.name, p.Path)
			}
			got = append(got, p.Path)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: problems at %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestKeepEarlier(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1")
	for i := range 3 {
		if err := keepEarlier(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "n"), []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"1.1": "0", "1.2": "1", "1": "2"} {
		if got, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name, "n")); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v), want %s", name, got, err, want)
		}
	}
}

func TestLimitsOfTheLab(t *testing.T) {
	known := 7.0
	have := &rundir.Limits{Hosts: map[string]rundir.HostLimits{"b2": {DiskWrite: &known, DiskSource: "probe"}, "b3": {}}}
	got, err := Probe(t.Context(), nil, nil, []rundir.Host{
		{Name: "b1", Disks: []rundir.Disk{{Write: 30 << 20, Read: 60 << 20}}, LinkRate: 1e9},
		{Name: "b2", Disks: []rundir.Disk{{Write: 30 << 20, Read: 60 << 20}}},
		{Name: "b4", Disks: []rundir.Disk{{Write: 30 << 20, Read: 60 << 20}, {Write: 12 << 20}}},
		{Name: "w1"},
	}, nil, have)
	if err != nil {
		t.Fatal(err)
	}
	b, w := got.Hosts["b1"], got.Hosts["w1"]
	if *b.DiskWrite != 30<<20 || *b.DiskRead != 60<<20 || *b.Network != 125e6 || b.DiskSource != "profile" || b.NetSource != "shaped" {
		t.Errorf("b1: %+v", b)
	}
	if two := got.Hosts["b2"]; two.DiskWrite == nil || *two.DiskWrite != known || two.DiskSource != "probe" {
		t.Errorf("b2 was looked at again: %+v", two)
	}
	if _, gone := got.Hosts["b3"]; gone || len(got.Hosts) != 4 {
		t.Errorf("limits of %v, want those of the hosts asked for", got.Hosts)
	}
	if both := got.Hosts["b4"]; *both.DiskWrite != 42<<20 || both.DiskRead != nil {
		t.Errorf("b4, of whose disks one reads without a limit: %+v", both)
	}
	if w.DiskWrite != nil || w.Network != nil || w.DiskSource != "" {
		t.Errorf("w1: %+v", w)
	}
}
