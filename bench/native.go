package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"krig/bench/loadgen"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

const (
	primeWindow = 2 * time.Second
	awaitLimit  = 30 * time.Second // for acknowledgements, and for consumers to catch up
)

// checkNative tells what the native driver cannot do.
func checkNative(c *experiment.Cell) []experiment.Problem {
	var out []experiment.Problem
	add := func(key, reason, expected string) {
		out = append(out, experiment.Problem{Path: "bench." + key, Reason: reason, Expected: expected})
	}
	b := c.Bench
	producers := c.Resolve(b.Producers)
	if producers < 1 {
		add("producers", "the native driver needs a producer: the load's topics are new and empty", "at least 1")
	}
	if n := c.WorkerCount(); n > loadgen.MaxWorkers {
		add("producers", fmt.Sprintf("the native driver takes at most %d workers, not %d", loadgen.MaxWorkers, n), "")
	}
	if _, err := loadgen.ProducerSettings(b.Producer, int(b.RecordSize)); err != nil {
		add("producer", err.Error(), "values that Kafka's producer takes")
	}
	if _, err := loadgen.ConsumerSettings(b.Consumer); err != nil {
		add("consumer", err.Error(), "values that Kafka's consumer takes")
	}
	for key, why := range ownSettings() {
		for kind, settings := range map[string]map[string]string{"producer": b.Producer, "consumer": b.Consumer} {
			if _, ok := settings[key]; ok {
				add(kind+"."+key, why, "")
			}
		}
	}
	if b.Records.Set && c.Resolve(b.Records) < producers {
		add("records", fmt.Sprintf("%d records are fewer than the %d producers", c.Resolve(b.Records), producers), "at least one a producer")
	}
	slices.SortFunc(out, func(x, y experiment.Problem) int { return strings.Compare(x.Path+x.Reason, y.Path+y.Reason) })
	return out
}

// ownSettings are settings that krig itself makes.
func ownSettings() map[string]string {
	return map[string]string{
		"bootstrap.servers": "krig knows the brokers",
		"group.id":          "krig names the groups: one a topic, new for each load",
		"transactional.id":  "the native driver has no transactions",
	}
}

// loadNative runs one load of krig's own: franz-go clients inside the agents of the workers.
func loadNative(ctx context.Context, s *Session, l loadAsk) (*loaded, error) {
	specs, hosts := nativeSpecs(s, l)
	counter := appendCounterOf(l, specs[0])
	defer counter.stop()
	c := &conductor{s: s, l: l, counter: counter, size: float64(l.Cell.Bench.RecordSize)}
	for i, spec := range specs {
		c.workers = append(c.workers, &worker{host: hosts[i], spec: spec})
	}
	c.run(ctx)
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if l.prime {
		return &loaded{invalid: c.invalid}, nil
	}
	if err := s.clocks.measure(ctx, s); err != nil && c.invalid == "" {
		c.invalid = err.Error()
	}
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.loaded(), nil
}

// nativeSpecs deals producers and consumers to the workers, in turn.
func nativeSpecs(s *Session, l loadAsk) ([]*loadgen.Spec, []string) {
	b := l.Cell.Bench
	workers := s.hosts(rundir.Worker)
	producers, consumers := int(l.Cell.Resolve(b.Producers)), int(l.Cell.Resolve(b.Consumers))
	specs := make([]*loadgen.Spec, len(workers))
	hosts := make([]string, len(workers))
	for i, w := range workers {
		hosts[i] = w.Name
		specs[i] = &loadgen.Spec{
			Brokers: l.Cluster.Bootstrap(), Worker: i, Workers: len(workers), ProducersInAll: producers,
			RecordSize: int(b.RecordSize), Rate: b.Rate.Value, ByRecords: b.Records.Set && !l.prime,
			Warmup: time.Duration(b.Warmup), Window: time.Duration(b.Duration), Await: awaitLimit,
			ProducerSettings: b.Producer, ConsumerSettings: b.Consumer,
		}
		if specs[i].ByRecords {
			specs[i].Window = 0
		}
		if l.prime {
			specs[i].Warmup, specs[i].Window = 0, primeWindow
		}
	}
	records := l.Cell.Resolve(b.Records)
	for i := range producers {
		p := loadgen.Producer{Index: i, Topics: turn(l.topics, i, producers)}
		if b.Records.Set {
			p.Records = share(records, i, producers)
		}
		w := specs[i%len(specs)]
		w.Producers = append(w.Producers, p)
	}
	for i := range consumers {
		topics := turn(l.topics, i, consumers)
		w := specs[i%len(specs)]
		w.Consumers = append(w.Consumers, loadgen.Consumer{Index: i, Group: topics[0], Topics: topics})
	}
	return specs, hosts
}

// turn is the topics of the i-th of n clients: one each in turn, or where there
// are fewer clients than topics every n-th topic.
func turn(topics []string, i, n int) []string {
	if n >= len(topics) {
		return []string{topics[i%len(topics)]}
	}
	var out []string
	for t := i; t < len(topics); t += n {
		out = append(out, topics[t])
	}
	return out
}

// share is the i-th of n parts of a whole, remainders going to the first.
func share(whole int64, i, n int) int64 {
	part := whole / int64(n)
	if int64(i) < whole%int64(n) {
		part++
	}
	return part
}

// appendCounterOf counts what the brokers append of a load without acknowledgements; nil for others.
func appendCounterOf(l loadAsk, spec *loadgen.Spec) *appendCounter {
	settings, err := loadgen.ProducerSettings(spec.ProducerSettings, spec.RecordSize)
	if err != nil || !settings.Acks0 || l.prime {
		return nil
	}
	return &appendCounter{ends: l.made.ends}
}

// reason is an error as a repeat's reason.
func reason(host string, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer in time: %w", err)
	}
	return host + ": " + err.Error()
}
