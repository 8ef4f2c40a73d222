package perftool

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readProducer(t *testing.T, name string) *Producer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return producerOf(string(text))
}

// producerOf reads a whole output.
func producerOf(text string) *Producer {
	var r ProducerReader
	for line := range strings.Lines(text) {
		r.Line(time.Time{}, strings.TrimRight(line, "\r\n"))
	}
	return r.Result()
}

// none stands for "no value" in the tables of this package.
var none = math.NaN()

// same fails unless got is what the tool printed, in base units.
func same(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	switch {
	case math.IsNaN(want) && got == nil:
	case math.IsNaN(want) || got == nil:
		t.Errorf("%s: got %v, want %v (NaN is no value)", what, deref(got), want)
	case math.Abs(*got-want) > 1e-9*math.Max(1, math.Abs(want)):
		t.Errorf("%s: got %v, want %v", what, *got, want)
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// interval and total are in the tool's own units: records, records/s, MiB/s, ms.
type interval struct {
	records              int64
	rate, mib, mean, max float64
	steady               bool
}

type total struct {
	records                                   int64
	rate, mib, mean, max, p50, p95, p99, p999 float64
}

func TestProducer(t *testing.T) {
	tests := []struct {
		file      string
		intervals []interval
		total     *total
		steady    *total
		other     int
	}{
		{file: "29-producer-0.8.0.csv", total: &total{1000000, 50000, 4.7684, none, none, none, none, none, none}, other: 1},
		{file: "30-producer-1.0.txt", intervals: []interval{
			{50001, 10000.2, 9.77, 2.7, 163, false}, {50015, 10003, 9.77, 0.8, 21, false}, {49984, 9996.8, 9.76, 0.9, 38, false},
		}, total: &total{150000, 9997.334044, 9.76, 1.47, 163, 1, 4, 22, 140}},
		{file: "31-producer-de.txt", intervals: []interval{
			{1204060, 240235.4, 22.91, 900, 1502, false}, {2998140, 599628, 57.18, 529.7, 1377, false},
		}, total: &total{4202200, 419590.614079, 40.02, 635.78, 1502, 310, 1291, 1388, 1490}},
		{file: "34-producer-metrics.txt", intervals: []interval{{49986, 9997.2, 4.88, 0.6, 31, false}},
			total: &total{100000, 9989.012087, 4.88, 0.61, 31, 0, 2, 5, 18}},
		{file: "41-producer-prefixed.txt", intervals: []interval{{1, none, none, 7, 7, false}, {4012, 801.9, 50.12, 3.6, 187, false}}},
		{file: "producer-2.8.2.txt", intervals: []interval{{249952, 49990.4, 47.67, 38.6, 333, false}},
			total: &total{300000, 49883.604922, 47.57, 32.33, 333, 1, 249, 322, 330}},
		{file: "producer-3.9.1.txt", intervals: []interval{{249787, 49957.4, 47.64, 360.6, 728, false}},
			total: &total{300000, 49900.199601, 47.59, 300.51, 728, 255, 677, 710, 725}},
		{file: "producer-4.4.0-warmup.txt", intervals: []interval{
			{5681, 5675.3, 5.41, 340.7, 512, false}, {34368, 34333.7, 32.74, 898.5, 1170, false},
			{22641, 22573.3, 21.53, 561.1, 693, true}, {80256, 80256, 76.54, 425.2, 484, true},
		}, total: &total{300000, 52835.505460, 50.39, 534.59, 1170, 430, 957, 1042, 1157},
			steady: &total{200000, 67888.662593, 64.74, 390.02, 693, 390, 578, 676, 689}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			p := readProducer(t, tt.file)
			sameIntervals(t, p.Intervals, tt.intervals)
			sameTotal(t, "total", p.Total, tt.total)
			sameTotal(t, "steady", p.Steady, tt.steady)
			if len(p.Other) != tt.other {
				t.Errorf("other lines: %q, want %d", p.Other, tt.other)
			}
		})
	}
}

func sameIntervals(t *testing.T, got []Interval, want []interval) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d intervals, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Records != w.records || g.Steady != w.steady {
			t.Errorf("interval %d: %d records, steady %v; want %d, %v", i, g.Records, g.Steady, w.records, w.steady)
		}
		same(t, "rate", g.Rate, w.rate)
		same(t, "throughput", g.Throughput, w.mib*1024*1024)
		same(t, "mean", g.Mean, w.mean/1000)
		same(t, "max", g.Max, w.max/1000)
	}
}

func sameTotal(t *testing.T, what string, got *Total, want *total) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	if got == nil {
		return
	}
	if got.Records != want.records {
		t.Errorf("%s: %d records, want %d", what, got.Records, want.records)
	}
	same(t, what+" rate", got.Rate, want.rate)
	same(t, what+" throughput", got.Throughput, want.mib*1024*1024)
	same(t, what+" mean", got.Mean, want.mean/1000)
	same(t, what+" max", got.Max, want.max/1000)
	same(t, what+" p50", got.P50, want.p50/1000)
	same(t, what+" p95", got.P95, want.p95/1000)
	same(t, what+" p99", got.P99, want.p99/1000)
	same(t, what+" p99.9", got.P999, want.p999/1000)
}

func TestProducerOfZeroEight(t *testing.T) {
	old := readProducer(t, "29-producer-0.8.0.csv").Old
	want := OldHeader{
		Start: time.Date(2013, 11, 6, 10, 15, 0, 123e6, time.UTC), End: time.Date(2013, 11, 6, 10, 15, 20, 123e6, time.UTC),
		RecordSize: 100, BatchSize: 200, Bytes: 95.37 * 1024 * 1024,
	}
	if old == nil || *old != want {
		t.Errorf("got %+v, want %+v", old, want)
	}
}

func TestProducerMetrics(t *testing.T) {
	p := readProducer(t, "34-producer-metrics.txt")
	if p.Payloads != 3 || len(p.Metrics) != 12 {
		t.Fatalf("%d payloads and %d metrics, want 3 and 12", p.Payloads, len(p.Metrics))
	}
	want := map[string]float64{
		"batch-size-avg": 15873.412, "records-per-request-avg": 30.117, "record-error-total": 0,
		"produce-throttle-time-avg": none, "request-latency-max": none, "request-latency-avg": 1.873,
		"version": none, "start-time-ms": 1714557600012,
	}
	for _, m := range p.Metrics {
		if w, ok := want[m.Name]; ok {
			same(t, m.Name, m.Value, w)
			delete(want, m.Name)
		}
		switch {
		case m.Name == "version" && m.Text != "3.7.0":
			t.Errorf("version is %q", m.Text)
		case m.Name == "request-latency-avg" && (m.Tags["node-id"] != "node-1" || m.Tags["client-id"] != "perf-producer-client"):
			t.Errorf("tags are %v", m.Tags)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

func TestBufferWait(t *testing.T) {
	for file, want := range map[string]float64{
		"producer-2.8.2-metrics.txt": 6.351464426, "producer-3.9.1-metrics.txt": 5.94963713, "producer-4.4.0-metrics.txt": 3.726581353,
		"30-producer-1.0.txt": none,
	} {
		got, ok := readProducer(t, file).BufferWait()
		if ok != !math.IsNaN(want) || ok && math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, %v; want %v", file, got, ok, want)
		}
	}
}

func TestProducerCutShort(t *testing.T) {
	p := readProducer(t, "41-producer-prefixed.txt")
	n, fromIntervals := p.Records()
	if n != 4013 || !fromIntervals {
		t.Errorf("%d records, from intervals %v; want 4013, true", n, fromIntervals)
	}
	if want := time.Date(2024, 5, 3, 9, 15, 25, 107e6, time.UTC); !p.Intervals[1].At.Equal(want) {
		t.Errorf("second interval at %v, want %v", p.Intervals[1].At, want)
	}
}

func TestProducerWithNothingSent(t *testing.T) {
	const line = "0 records sent, 0.0 records/sec (0.00 MB/sec), NaN ms avg latency, 0.00 ms max latency, 0 ms 50th, 0 ms 95th, 0 ms 99th, 0 ms 99.9th."
	p := producerOf(line)
	if p.Total == nil || p.Total.Records != 0 || p.Total.Mean != nil || p.Total.P99 != nil {
		t.Errorf("got %+v, want a total of 0 records with no latency", p.Total)
	}
}

func TestStampBeatsPrefix(t *testing.T) {
	var r ProducerReader
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := r.Line(at, "[2024-05-03 09:15:25,107] 10 records sent, 5.0 records/sec (0.01 MB/sec), 3.6 ms avg latency, 187.0 max latency.")
	if got == nil || !got.At.Equal(at) || got.Length() != 2*time.Second {
		t.Errorf("got %+v", got)
	}
}

func FuzzProducer(f *testing.F) {
	fuzzFiles(f, "*producer*", func(s string) { producerOf(s) })
}
func FuzzConsumer(f *testing.F) {
	fuzzFiles(f, "*consumer*", func(s string) { consumerOf(s) })
}

// fuzzFiles seeds with the captured outputs; a reader must not fail on any text.
func fuzzFiles(f *testing.F, pattern string, read func(string)) {
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(_ *testing.T, s string) { read(s) })
}
