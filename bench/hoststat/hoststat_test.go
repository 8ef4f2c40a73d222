package hoststat

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// value is what a series has at a time of day of 2024-05-01; NaN is a hole.
func value(t *testing.T, r *Reading, measure, of, clock string) float64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", "2024-05-01 "+clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Series {
		for i, have := range s.Times {
			if s.Measure == measure && s.Of == of && have == float64(at.Unix()) {
				if s.Values[i] == nil {
					return math.NaN()
				}
				return *s.Values[i]
			}
		}
	}
	t.Fatalf("no %s of %q at %s", measure, of, clock)
	return 0
}

// want is one value that a file must give.
type want struct {
	measure, of, clock string
	value              float64 // NaN is a hole
}

func check(t *testing.T, r *Reading, wants []want) {
	t.Helper()
	for _, w := range wants {
		got := value(t, r, w.measure, w.of, w.clock)
		if !(math.IsNaN(got) && math.IsNaN(w.value)) && math.Abs(got-w.value) > 1e-6*math.Max(1, w.value) {
			t.Errorf("%s of %q at %s: got %v, want %v", w.measure, w.of, w.clock, got, w.value)
		}
	}
}

func TestSar(t *testing.T) {
	tests := []struct {
		file    string
		samples int
		wants   []want
	}{
		{"20-sadf-10.2.json", 3, []want{
			{"cpu.busy", "", "10:00:00", 0.45}, {"cpu.busy", "", "10:00:10", 0.88}, {"cpu.busy", "", "10:00:20", 0.08},
		}},
		{"22-sadf-12.5-stray-comma.json", 2, []want{
			{"cpu.busy", "", "10:00:00", 0.45}, {"cpu.busy", "", "10:00:10", 0.88},
			{"network.receive", "ens5", "10:00:00", 1000 * 1024}, {"network.transmit", "ens5", "10:00:00", 50000 * 1024},
			{"network.receive", "ens5", "10:00:10", 2000 * 1024}, {"network.transmit", "ens5", "10:00:10", 100000 * 1024},
			{"network.transmit", "lo", "10:00:10", 0},
		}},
		{"24-sadf-short.json", 3, []want{{"cpu.busy", "", "10:00:00", 0.45}, {"cpu.busy", "", "10:00:20", 0.08}}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			r, err := ReadSar(strings.NewReader(open(t, tt.file)), SarOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Samples != tt.samples || r.Cut || len(r.Warnings) > 0 {
				t.Errorf("%d samples, cut %v, warnings %q; want %d samples alone", r.Samples, r.Cut, r.Warnings, tt.samples)
			}
			check(t, r, tt.wants)
		})
	}
}

// sample is one element of sadf's statistics at a time of 2024-05-01.
func sample(clock string, interval int, body string) string {
	return fmt.Sprintf(`{"timestamp": {"date": "2024-05-01", "time": "%s", "utc": 1, "interval": %d}, %s}`, clock, interval, body)
}

func sadf(samples ...string) string {
	return `{"sysstat": {"hosts": [{"nodename": "b", "statistics": [` + strings.Join(samples, ",") + `], "restarts": []}]}}`
}

func TestSarLeavesOutWhatCannotBe(t *testing.T) {
	net := func(rxpck, txpck, rxkB, txkB float64) string {
		return fmt.Sprintf(`"network": {"net-dev": [{"iface": "ens5", "rxpck": %v, "txpck": %v, "rxkB": %v, "txkB": %v}]}`, rxpck, txpck, rxkB, txkB)
	}
	text := sadf(
		sample("10:01:00", 60, net(1000, 166.67, 1000, 1000)),
		sample("10:02:00", 60, net(18666.67, 500, 8.14, 3627.60)), // counters went back
		sample("10:03:00", 60, net(1000, 166.67, 1000, 1000)+`, "cpu-load": [{"cpu": "-1", "usr": 1.5, "sys": 0, "iowait": 0.5, "idle": 98}]`),
		sample("10:04:00", 60, net(1000, 166.67, 1000, 1000)+`, "cpu-load": [{"cpu": "all", "user": 0, "iowait": 0, "idle": 0}]`), // a processor went offline
	)
	r, err := ReadSar(strings.NewReader(text), SarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, []want{
		{"network.receive", "ens5", "10:01:00", 1024000}, {"network.receive", "ens5", "10:02:00", math.NaN()},
		{"network.transmit", "ens5", "10:02:00", math.NaN()}, {"network.receive", "ens5", "10:03:00", 1024000},
		{"cpu.busy", "", "10:03:00", 0.015}, {"cpu.busy", "", "10:04:00", math.NaN()},
	})
	if got := strings.Join(r.Warnings, "|"); !strings.Contains(got, "interface ens5: counters were reset") || !strings.Contains(got, "adds up to nothing") {
		t.Errorf("warnings %q", r.Warnings)
	}
	for _, s := range r.Series {
		if s.Measure == "network.receive" {
			if mean, ok := s.Mean(s.Times[0]-60, s.Times[3]+1); !ok || mean != 1024000 {
				t.Errorf("mean over good samples: %v, %v", mean, ok)
			}
		}
	}
}

func TestSarRestart(t *testing.T) {
	text := strings.Replace(sadf(sample("10:00:10", 10, `"memory": {"avail": 1000}`), sample("10:05:10", 10, `"memory": {"avail": 500}`)),
		`"restarts": []`, `"restarts": [{"boot": {"date": "2024-05-01", "time": "10:04:55", "utc": 1, "cpu_count": 4}}]`, 1)
	r, err := ReadSar(strings.NewReader(text), SarOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2024, 5, 1, 10, 4, 55, 0, time.UTC); len(r.Restarts) != 1 || !r.Restarts[0].Equal(want) {
		t.Errorf("restarts %v, want %v", r.Restarts, want)
	}
	check(t, r, []want{{"memory.available", "", "10:00:10", 1024000}, {"memory.available", "", "10:05:10", 512000}})
	s := r.Series[0]
	s.Fill()
	if len(s.Times) != 3 || s.Values[1] != nil {
		t.Errorf("a reboot is no hole: %v", s.Times)
	}
}

func TestIostat(t *testing.T) {
	at := time.Date(2024, 5, 1, 9, 59, 50, 0, time.UTC)
	tests := []struct {
		file     string
		opt      IostatOptions
		samples  int
		cut      bool
		warnings []string
		wants    []want
	}{
		{file: "06-iostat-y-12.1.json", opt: IostatOptions{Start: at, Interval: 10 * time.Second}, samples: 2,
			warnings: []string{"this release of iostat prints twice the true kB/s: halved (8 times)"},
			wants: []want{
				{"disk.write", "nvme0n1", "10:00:00", 25600 * 1024}, {"disk.read", "nvme0n1", "10:00:00", 800 * 1024}, {"disk.busy", "nvme0n1", "10:00:00", 0.45},
				{"disk.write", "dm-0", "10:00:10", 51200 * 1024}, {"disk.busy", "dm-0", "10:00:10", 0.9},
			}},
		{file: "08-iostat-sigterm-12.6.json", opt: IostatOptions{SinceBoot: true, Interval: 10 * time.Second}, samples: 2, cut: true,
			warnings: []string{"cut, 2 samples"},
			wants: []want{
				{"disk.write", "nvme0n1", "10:00:00", 25600 * 1024}, {"disk.read", "nvme0n1", "10:00:00", 800 * 1024}, {"disk.busy", "dm-0", "10:00:00", 0.45},
				{"disk.write", "nvme0n1", "10:00:10", 51200 * 1024}, {"disk.busy", "nvme0n1", "10:00:10", 0.9},
			}},
		{file: "95-duplicate-keys.json", opt: IostatOptions{Interval: 10 * time.Second}, samples: 1,
			warnings: []string{`the key "disk" was repeated: all its devices are kept`},
			wants:    []want{{"disk.busy", "nvme0n1", "10:00:00", 0.45}, {"disk.busy", "dm-0", "10:00:00", 0.44}}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			r, err := ReadIostat(strings.NewReader(open(t, tt.file)), tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			if r.Samples != tt.samples || r.Cut != tt.cut || strings.Join(r.Warnings, "|") != strings.Join(tt.warnings, "|") {
				t.Errorf("%d samples, cut %v, warnings %q; want %d, %v, %q", r.Samples, r.Cut, r.Warnings, tt.samples, tt.cut, tt.warnings)
			}
			check(t, r, tt.wants)
		})
	}
}

// Whatever byte a file ends at, its complete samples count and none is made up.
func TestCutAnywhere(t *testing.T) {
	whole := open(t, "08-iostat-sigterm-12.6.json")
	last := 0
	for n := range len(whole) {
		r, err := ReadIostat(strings.NewReader(whole[:n]), IostatOptions{Interval: 10 * time.Second})
		if err != nil && !errors.Is(err, ErrNoSamples) {
			t.Fatalf("at byte %d: %v", n, err)
		}
		if r.Samples < last || r.Samples > 3 {
			t.Fatalf("at byte %d: %d samples after %d", n, r.Samples, last)
		}
		last = r.Samples
	}
	if last != 2 { // the third ends with the last byte
		t.Errorf("%d samples in all but the last byte, want 2", last)
	}
}

func TestRealFiles(t *testing.T) {
	sar, err := ReadSar(strings.NewReader(open(t, "sadf-12.6.1.json")), SarOptions{})
	if err != nil || sar.Cut || sar.Samples < 3 {
		t.Fatalf("sar: %+v, %v", sar, err)
	}
	iostat, err := ReadIostat(strings.NewReader(open(t, "iostat-12.6.1.json")), IostatOptions{SinceBoot: true, Interval: time.Second})
	if err != nil || iostat.Cut || iostat.Samples < 3 {
		t.Fatalf("iostat: %+v, %v", iostat, err)
	}
	pidstat, err := ReadPidstat(strings.NewReader(open(t, "pidstat-12.6.1.txt")))
	if err != nil || pidstat.Samples < 3 {
		t.Fatalf("pidstat: %+v, %v", pidstat, err)
	}
	has := map[string]bool{}
	for _, r := range []*Reading{sar, iostat, pidstat} {
		for _, s := range r.Series {
			has[s.Measure+" "+s.Of] = true
		}
	}
	for _, name := range []string{"cpu.busy ", "memory.available ", "network.receive eth0", "network.errors eth0", "disk.write vda", "process.cpu java", "process.memory java"} {
		if !has[name] {
			t.Errorf("there is no series %q", name)
		}
	}
}

func TestPidstat(t *testing.T) {
	r, err := ReadPidstat(strings.NewReader(open(t, "pidstat-12.6.1.txt")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Series {
		if s.Of != "compile" || s.Measure != "process.cpu" {
			continue
		}
		if got, want := *s.Values[0], 0.4118+0.2745+0.0882+0.0588; s.Times[0] != 1796074558 || math.Abs(got-want) > 1e-9 {
			t.Errorf("all compile processes: %v at %v, want %v", got, s.Times[0], want)
		}
	}
}

func TestOwn(t *testing.T) {
	at := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	line := func(second float64, cpu, used, pressure int64) string {
		return fmt.Sprintf(`{"at":%q,"cpu":%d,"processors":2,"used":%d,"limit":1000,"pressure":%d,"free":77}`,
			at.Add(time.Duration(second*float64(time.Second))).Format(time.RFC3339Nano), cpu, used, pressure)
	}
	text := strings.Join([]string{
		line(0, 0, 100, 0), line(1, 500e6, 400, 250e3), line(3, 4500e6, 2000, 250e3),
		line(4, 100e6, 100, 0), // counters went back: the host was made again
		`{"at":"2024-05-01T10:00:05Z","cp`,
	}, "\n")
	r, err := ReadOwn(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, []want{
		{"cpu.busy", "", "10:00:01", 0.25}, {"cpu.busy", "", "10:00:03", 1},
		{"cpu.pressure", "", "10:00:01", 0.25}, {"memory.available", "", "10:00:01", 600}, {"memory.available", "", "10:00:03", 0},
		{"disk.free", "", "10:00:04", 77},
	})
	if r.Samples != 3 || len(r.Warnings) != 1 || r.Warnings[0] != "1 lines cannot be read" {
		t.Errorf("%d samples, %q", r.Samples, r.Warnings)
	}
	half, err := ReadOwn(strings.NewReader(text), 0.5)
	if err != nil {
		t.Fatal(err)
	}
	check(t, half, []want{{"cpu.busy", "", "10:00:01", 1}})
}

func series(grain float64, pairs ...float64) *Series {
	s := &Series{Measure: "m", Unit: "1", Grain: grain}
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		s.Times, s.Lengths, s.Values = append(s.Times, pairs[i]), append(s.Lengths, 1), append(s.Values, &v)
	}
	return s
}

func TestPhaseTakesWholeSamplesOnly(t *testing.T) {
	s := series(0, 10, 1, 11, 2, 12, 3, 13, 4)
	tests := []struct {
		start, end, mean float64
		ok               bool
	}{
		{9, 13, 2.5, true}, {9.5, 13, 3, true}, {9, 12.9, 2, true}, {10.1, 11.9, 0, false}, {20, 30, 0, false},
	}
	for _, tt := range tests {
		if mean, ok := s.Mean(tt.start, tt.end); mean != tt.mean || ok != tt.ok {
			t.Errorf("from %v to %v: %v, %v; want %v, %v", tt.start, tt.end, mean, ok, tt.mean, tt.ok)
		}
	}
	coarse := series(1, 10, 1, 11, 2, 12, 3) // 12 may be up to 13
	if mean, _ := coarse.Mean(9, 12.5); mean != 1.5 {
		t.Errorf("coarse times: mean %v, want 1.5", mean)
	}
	if lowest, ok := s.Lowest(9, 13); lowest != 1 || !ok {
		t.Errorf("lowest %v, %v", lowest, ok)
	}
}

func TestHoleStaysAHole(t *testing.T) {
	s := series(1, 10, 1, 11, 1)
	s.Append(series(1, 16, 2, 17, 2))
	if len(s.Times) != 5 || s.Values[2] != nil || s.Times[2] != 15 {
		t.Errorf("times %v", s.Times)
	}
	s.Fill() // changes nothing more
	if len(s.Times) != 5 {
		t.Errorf("filled twice: %v", s.Times)
	}
	if mean, ok := s.Mean(9, 18); mean != 1.5 || !ok {
		t.Errorf("mean around a hole: %v, %v", mean, ok)
	}
	sum := Combine("sum", []*Series{series(1, 10, 1, 11, 2), series(1, 10, 5)}, Sum)
	if *sum.Values[0] != 6 || sum.Values[1] != nil {
		t.Errorf("combined: %v", sum)
	}
}

func TestNotSysstat(t *testing.T) {
	for _, text := range []string{"", "Average: CPU", "[1,2]", `{"a":1}`} {
		r, err := ReadSar(strings.NewReader(text), SarOptions{})
		if err == nil || r.Samples != 0 {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

// long is a JSON document of any number of samples that is never held whole.
type long struct {
	sample string
	left   int
	buf    string
}

func (l *long) Read(p []byte) (int, error) {
	if l.buf == "" {
		if l.left == 0 {
			return 0, io.EOF
		}
		l.left--
		l.buf = l.sample
	}
	n := copy(p, l.buf)
	l.buf = l.buf[n:]
	return n, nil
}

// A sample of sadf -A has 10 KB; ten hours of them must not be held in memory.
func TestMemoryStaysFlat(t *testing.T) {
	body := open(t, "sadf-12.6.1.json")
	start := strings.Index(body, `"statistics": [`) + len(`"statistics": [`)
	r := &long{buf: body[:start], sample: sample("10:00:00", 1, `"cpu-load": [{"cpu": "all", "usr": 1, "idle": 99}], "x": "`+strings.Repeat("y", 9000)+`"`) + ",", left: 5000}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got, err := ReadSar(r, SarOptions{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || got.Samples != 5000 || !got.Cut {
		t.Fatalf("%d samples, cut %v, %v", got.Samples, got.Cut, err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes over 45 MB of JSON", grown)
	}
	runtime.KeepAlive(got)
}
