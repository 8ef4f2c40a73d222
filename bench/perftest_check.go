package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"krig/internal/experiment"
)

// toolSettings are settings that the tools make themselves, whatever else is said.
func toolSettings() map[string]string {
	return map[string]string{
		"bootstrap.servers":  "krig knows the brokers",
		"key.serializer":     "the producer tool sets it",
		"value.serializer":   "the producer tool sets it",
		"key.deserializer":   "the consumer tool sets it",
		"value.deserializer": "the consumer tool sets it",
		"group.id":           "krig names the groups: one a topic",
		"auto.offset.reset":  "the consumer tool sets it, and krig commits where each group begins",
		"check.crcs":         "the consumer tool turns it off",
	}
}

// checkPerftest tells what Kafka's own tools cannot do.
func checkPerftest(c *experiment.Cell) []experiment.Problem {
	var out []experiment.Problem
	add := func(key, expected, reason string, args ...any) {
		out = append(out, experiment.Problem{Path: key, Reason: fmt.Sprintf(reason, args...), Expected: expected})
	}
	b := c.Bench
	v, err := parseToolVersion(c.Kafka.Version)
	if err != nil {
		add("kafka.version", "such as 4.4.0", "%v", err)
	}
	topics, producers, consumers := c.Resolve(b.Topics), c.Resolve(b.Producers), c.Resolve(b.Consumers)
	if producers < topics {
		add("bench.producers", "at least as many as topics", "each process of the producer tool writes one topic: %d cannot fill %d topics", producers, topics)
	}
	if consumers > 0 && consumers < topics {
		add("bench.consumers", "0, or at least as many as topics", "each process of the consumer tool reads one topic: %d cannot read %d topics", consumers, topics)
	}
	if b.Records.Set && c.Resolve(b.Records) < producers {
		add("bench.records", "at least one a producer", "%d records are too few for %d producers", c.Resolve(b.Records), producers)
	}
	if !b.Rate.Max {
		checkRate(b.Rate.Value, producers, v, add)
	}
	checkSettings("bench.producer", b.Producer, add)
	checkSettings("bench.consumer", b.Consumer, add)
	if id, ok := b.Producer["transactional.id"]; ok && id == "" {
		add("bench.producer.transactional.id", "a name", "it is empty")
	}
	return out
}

func checkRate(rate float64, producers int64, v toolVersion, add func(key, expected, reason string, args ...any)) {
	if !v.AtLeast(4, 0) && rate != math.Trunc(rate) {
		add("bench.rate", "a whole number", "the producer tool of Kafka %d.%d takes no fraction", v.Major, v.Minor)
	}
	if rate == math.Trunc(rate) && rate < float64(producers) {
		add("bench.rate", "at least one record a second for each producer", "%v records/s are too few for %d producers", rate, producers)
	}
}

func checkSettings(path string, config map[string]string, add func(key, expected, reason string, args ...any)) {
	settings := toolSettings()
	for _, key := range slices.Sorted(maps.Keys(config)) {
		why, taken := settings[key]
		if taken && !(strings.HasSuffix(path, "producer") && key == "group.id") {
			add(path+"."+key, "", "%s", why)
		}
		if strings.Contains(config[key], "\x00") {
			add(path+"."+key, "text", "it holds a zero byte")
		}
	}
}

// throughputs are each producer's --throughput.
func throughputs(rate experiment.SendRate, n int64) []string {
	out := make([]string, n)
	whole := !rate.Max && rate.Value == math.Trunc(rate.Value)
	for i := range out {
		switch {
		case rate.Max:
			out[i] = "-1"
		case whole:
			out[i] = fmt.Sprint(share(int64(rate.Value), i, int(n)))
		default:
			out[i] = fmt.Sprint(rate.Value / float64(n))
		}
	}
	return out
}

// perftestPlan is how long and how much the producers of one load send.
type perftestPlan struct {
	calibrate time.Duration // a discarded run, ended by time, whose rate is measured; 0 for none
	separate  bool          // that run is the warm-up
}

// planPerftest decides what comes before the measured run. The tool ends by
// records alone: where the load shall last a time at the highest rate, that rate
// must be measured first.
func planPerftest(b experiment.Bench, v toolVersion) perftestPlan {
	const shortest = 5 * time.Second // the rate of a shorter run is the JVM's start
	warmup := time.Duration(b.Warmup)
	var p perftestPlan
	if warmup > 0 && !v.newOptions() {
		p.calibrate, p.separate = warmup, true
	}
	if b.Rate.Max && (!b.Records.Set || warmup > 0 && v.newOptions()) {
		p.calibrate = max(p.calibrate, shortest)
	}
	return p
}

// recordsOf are the measured and the warm-up records of all producers; rate is
// the measured one where the cell gives none.
func recordsOf(c *experiment.Cell, v toolVersion, rate float64) (measured, warmup int64) {
	b := c.Bench
	if !b.Rate.Max {
		rate = b.Rate.Value
	}
	producers := c.Resolve(b.Producers)
	measured = int64(math.Round(rate * time.Duration(b.Duration).Seconds()))
	if b.Records.Set {
		measured = c.Resolve(b.Records)
	}
	if v.newOptions() {
		warmup = int64(math.Round(rate * time.Duration(b.Warmup).Seconds()))
	}
	return max(measured, producers), warmup
}
