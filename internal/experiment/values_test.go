package experiment_test

import (
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
)

func TestQuantities(t *testing.T) {
	const fits = "kafka.broker.message.max.bytes=9000000000000"
	for text, want := range map[string]int64{"1B": 1, "800B": 800, "1kB": 1000, "1KiB": 1024, "16 KiB": 16384, "1.5KiB": 1536, "2_000MB": 2e9, "1MiB": 1 << 20,
		"0.5GB": 5e8, "8GiB": 8 << 30, "1TB": 1e12, "1TiB": 1 << 40, "0.1MB": 1e5} {
		_, plan := good(t, minimal, "bench.record_size="+text, "brokers.disk.write="+text+"/s", "brokers.disk.size=4TiB", fits)
		c := plan.Cells[0]
		if int64(c.Bench.RecordSize) != want || int64(c.Rig.Brokers.Disk.Write) != want {
			t.Errorf("%s: got %d and %d, want %d", text, c.Bench.RecordSize, c.Rig.Brokers.Disk.Write, want)
		}
		again := c.Bench.RecordSize.String()
		if _, plan := good(t, minimal, "bench.record_size="+again, fits); int64(plan.Cells[0].Bench.RecordSize) != want {
			t.Errorf("%s is written %s, which is another size", text, again)
		}
	}
	for text, want := range map[string]int64{"1kbit": 1000, "100mbit": 1e8, "2.5gbit": 25e8} {
		_, plan := good(t, minimal, "workers.network.rate="+text)
		rate := plan.Cells[0].Rig.Workers.Network.Rate
		if _, again := good(t, minimal, "workers.network.rate="+rate.String()); int64(rate) != want || again.Cells[0].Rig.Workers.Network.Rate != rate {
			t.Errorf("%s: got %d, written %s", text, rate, rate)
		}
	}
	for text, want := range map[string]time.Duration{"1500ms": 1500 * time.Millisecond, "90s": 90 * time.Second, "5 s": 5 * time.Second, "1h": time.Hour, "1h30m": 90 * time.Minute, "0.5h": 30 * time.Minute, "2m5s": 125 * time.Second} {
		_, plan := good(t, minimal, "bench.duration="+text)
		d := plan.Cells[0].Bench.Duration
		if _, again := good(t, minimal, "bench.duration="+d.String()); time.Duration(d) != want || again.Cells[0].Bench.Duration != d {
			t.Errorf("%s: got %v, written %s", text, time.Duration(d), d)
		}
	}
	for text, want := range map[string]experiment.SendRate{"max": {Max: true}, "5000": {Value: 5000}, "2_000": {Value: 2000}, "0.5": {Value: 0.5}} {
		_, plan := good(t, minimal, "bench.rate="+text)
		rate := plan.Cells[0].Bench.Rate
		if _, again := good(t, minimal, "bench.rate="+rate.String()); rate != want || again.Cells[0].Bench.Rate != rate {
			t.Errorf("%s: got %+v, written %s", text, rate, rate)
		}
	}
}

func TestQuantitiesRefused(t *testing.T) {
	for set, want := range map[string]string{
		"bench.record_size=0B":         `"0B" is below 1B; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=0.3B":       `"0.3B" is below 1B; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=1.0001kB":   `"1.0001kB" is not a whole number; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=9e9GB":      `"9e9GB" has the unknown unit "e9GB"; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=9999999TiB": `"9999999TiB" is too large; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=-1B":        `"-1B" is not a quantity; expected a size with its unit, such as 800B, 16KiB or 8GiB`,
		"bench.record_size=1GIB":       `"1GIB" has the unknown unit "GIB"; expected a size with its unit, such as 800B, 16KiB or 8GiB; did you mean 1GiB?`,
		"brokers.disk.write=30MiB":     `"30MiB" has the unknown unit "MiB"; expected a size a second with its unit, such as 30MiB/s; did you mean 30MiB/s?`,
		"bench.duration=0s":            `"0s" is no length of time; expected more than 0s`,
		"bench.duration=-5s":           `"-5s" is not a length of time; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m`,
		"bench.duration=1000000000h":   `"1000000000h" is too long; expected a length of time with its unit, such as 500ms, 30s, 5m or 1h30m`,
		"bench.rate=0":                 `0 is out of range; expected more than 0 and at most 1e12 records a second, or max`,
		"bench.rate=maxx":              `"maxx" is not a rate; expected records a second, such as 5000, or max; did you mean max?`,
		"brokers.cpus=0":               `"0" is not a number above 0; expected a number above 0, such as 2 or 0.5`,
		"seed=-1":                      `"-1" is not a whole number from 0 to 18446744073709551615; expected a whole number, such as 42`,
	} {
		_, got := load(t, minimal, set)
		path, _, _ := strings.Cut(set, "=")
		full := path
		if strings.HasPrefix(path, "brokers") {
			full = "rigs.lab." + path
		}
		compare(t, got, []string{"--set " + set + ": " + full + ": " + want})
	}
}

func TestDefaults(t *testing.T) {
	_, plan := good(t, "version: 1\nname: t\nrigs: {lab: {provider: lab, brokers: {count: 2}, workers: {count: 3}}}\nbench: {}\n")
	c := plan.Cells[0]
	if c.ID != "cell" || len(c.Axes) != 0 || c.RigName != "lab" {
		t.Errorf("got cell %q of rig %q with axes %v", c.ID, c.RigName, c.Axes)
	}
	checks := map[string][2]any{
		"engine":       {c.Rig.Engine, "direct"},
		"broker disk":  {c.Rig.Brokers.Disk, experiment.Disk{Size: 8 << 30, Profile: "none"}},
		"worker disk":  {c.Rig.Workers.Disk, experiment.Disk{}},
		"memory":       {c.Rig.Workers.Memory, experiment.Bytes(2 << 30)},
		"controllers":  {c.Rig.Controllers, experiment.Pool{}},
		"version":      {c.Kafka.Version, "4.4.0"},
		"mode":         {c.Kafka.Mode, "kraft"},
		"source":       {c.Kafka.Source, experiment.Source{}},
		"heap":         {c.Kafka.JVM.Heap, experiment.Bytes(1 << 30)},
		"driver":       {c.Bench.Driver, "native"},
		"topics":       {c.Bench.Topics, experiment.Count{N: 1, Set: true}},
		"producers":    {c.Bench.Producers, experiment.Count{N: 1, Per: "worker", Set: true}},
		"consumers":    {c.Bench.Consumers, experiment.Count{Set: true}},
		"records":      {c.Bench.Records, experiment.Count{}},
		"rate":         {c.Bench.Rate, experiment.SendRate{Max: true}},
		"warmup":       {c.Bench.Warmup.String(), "5s"},
		"duration":     {c.Bench.Duration.String(), "30s"},
		"record size":  {c.Bench.RecordSize, experiment.Bytes(1024)},
		"replicas":     {c.Bench.ReplicationFactor, 1},
		"collect":      {c.Collect, experiment.Collect{Interval: 1e9, Sar: true, Iostat: true}},
		"visits":       {len(plan.Visits), 1},
		"order":        {plan.Order, "blocked"},
		"quorum":       {c.Quorum(), experiment.Quorum{Pool: "brokers", Count: 1}},
		"retries":      {mustExperiment(t).Retries, 1},
		"resolved":     {c.Resolve(c.Bench.Producers), int64(3)},
		"worker count": {c.WorkerCount(), 3},
	}
	for name, pair := range checks {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
}

func mustExperiment(t *testing.T) *experiment.Experiment {
	f, _ := good(t, minimal)
	return f.Experiment
}

func TestDefaultsThatDepend(t *testing.T) {
	tests := []struct{ name, bench, warmup, duration, consumers string }{
		{"records", "{records: 1000}", "0s", "0s", "0"},
		{"records and warm-up", "{records: 1000, warmup: 2s}", "2s", "0s", "0"},
		{"no warm-up", "{warmup: 0s}", "0s", "30s", "0"},
		{"consumer settings", "{consumer: {fetch.min.bytes: 1}}", "5s", "30s", "1 per worker"},
		{"no consumers all the same", "{consumer: {fetch.min.bytes: 1}, consumers: 0}", "5s", "30s", "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, plan := good(t, edit(t, minimal, "bench:\n  duration: 10s\n", "bench: "+tt.bench+"\n"))
			b := plan.Cells[0].Bench
			got := []string{b.Warmup.String(), b.Duration.String(), b.Consumers.String()}
			compare(t, got, []string{tt.warmup, tt.duration, tt.consumers})
		})
	}
}

func TestScalarsAsWritten(t *testing.T) {
	_, plan := good(t, minimal+`kafka:
  broker: {compression.type: zstd, a: 3.10, b: 2_000_000, c: 0x1F, d: yes, e: "true", f: '', g: 1e3, h: ~x}
  jvm: {flags: [-XX:+UseG1GC, -Da=1]}
`)
	want := map[string]string{"compression.type": "zstd", "a": "3.10", "b": "2_000_000", "c": "0x1F", "d": "yes", "e": "true", "f": "", "g": "1e3", "h": "~x"}
	got := plan.Cells[0].Kafka.Broker
	if len(got) != len(want) {
		t.Errorf("got %d settings, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %q, want %q", k, got[k], v)
		}
	}
	compare(t, plan.Cells[0].Kafka.JVM.Flags, []string{"-XX:+UseG1GC", "-Da=1"})
}
