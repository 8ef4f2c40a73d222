package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"krig/internal/kafka"
	"krig/internal/remote"
	"krig/internal/rundir"
)

const (
	toolStart   = 60 * time.Second // of a tool until its first record; scaled by the host's speed
	toolIdle    = 30 * time.Second // after which a consumer that gets no record gives up
	appendsIdle = time.Second      // after which brokers are taken to have appended all that was sent
	appendsMost = 30 * time.Second
	primeLength = 3 * time.Second
	manyRecords = 1_000_000_000_000 // of a run that is ended by time
	stopped     = "its time had come"
)

var errTimeUp = errors.New(stopped)

// perftestRun is one load.
type perftestRun struct {
	s       *Session
	l       loadAsk
	v       toolVersion
	workers []rundir.Host
	show    *speed

	producers, consumers int
	before               int64 // records in the topics before the measured run
}

// loadPerftest runs one load of Kafka's own producer and consumer performance
// tools, each a process on a worker host.
func loadPerftest(ctx context.Context, s *Session, l loadAsk) (*loaded, error) {
	v, err := parseToolVersion(l.Cell.Kafka.Version)
	if err != nil {
		return nil, err
	}
	r := &perftestRun{
		s: s, l: l, v: v, workers: s.hosts(rundir.Worker), show: newSpeed(l.progress),
		producers: int(l.Cell.Resolve(l.Cell.Bench.Producers)), consumers: int(l.Cell.Resolve(l.Cell.Bench.Consumers)),
	}
	if err := r.install(ctx); err != nil {
		return r.failed(ctx, err)
	}
	if l.prime {
		_, err := r.calibrate(ctx, primeLength)
		return r.failed(ctx, err)
	}
	rate, err := r.prelude(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	return r.measure(ctx, rate)
}

// failed is a load that went wrong, or ctx's end where krig itself was asked to end.
func (r *perftestRun) failed(ctx context.Context, err error) (*loaded, error) {
	if e := ended(ctx); e != nil {
		return nil, e
	}
	out := &loaded{}
	if err != nil {
		out.invalid = err.Error()
	}
	return out, nil
}

// install puts the tools' logging and settings on every worker.
func (r *perftestRun) install(ctx context.Context) error {
	files := map[string]string{}
	for name, text := range toolLogging() {
		files[name] = text
	}
	_, file := splitConfig(r.l.Cell.Bench.Producer)
	if len(file) > 0 {
		files[producerFile] = string(kafka.WriteProperties(file))
	}
	if len(r.l.Cell.Bench.Consumer) > 0 {
		files[consumerFile] = string(kafka.WriteProperties(r.l.Cell.Bench.Consumer))
	}
	names := make([]string, len(r.workers))
	for i, w := range r.workers {
		names[i] = w.Name
	}
	return r.s.fleet.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		for file, text := range files {
			if err := c.PutBytes(ctx, []byte(text), filepath.Join(r.dir(name), file), 0o600); err != nil {
				return fmt.Errorf("putting the tools' settings: %w", err)
			}
		}
		return nil
	})
}

const (
	producerFile = "producer.properties"
	consumerFile = "consumer.properties"
)

// dir is where a worker has the tools' settings.
func (r *perftestRun) dir(host string) string {
	return filepath.Join(r.s.prepared(host).Dir, "perftest")
}

func (r *perftestRun) jvm(host string) jvm {
	p := r.s.prepared(host)
	return jvm{java: p.Java, jars: p.Kafka, logging: r.dir(host)}
}

// prelude is what comes before the measured run: a discarded run, or one
// record of each producer; then the groups are told where to begin. It returns the
// measured rate where that was asked for, in records/s.
func (r *perftestRun) prelude(ctx context.Context) (rate float64, err error) {
	plan := planPerftest(r.l.Cell.Bench, r.v)
	if plan.calibrate > 0 {
		r.s.report("warming up for %v, not counted", plan.calibrate)
		rate, err = r.calibrate(ctx, plan.calibrate)
	} else {
		err = r.probe(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("before the load: %w", err)
	}
	if r.before, err = r.quiet(ctx); err != nil {
		return 0, err
	}
	if r.consumers > 0 {
		err = r.probeReading(ctx)
	}
	return rate, err
}

// probe has one uncounted record of each producer acknowledged.
func (r *perftestRun) probe(ctx context.Context) error {
	n := make([]int64, r.producers)
	for i := range n {
		n[i] = 1
	}
	procs := r.producing(n, 0, "-1")
	if err := r.runAll(ctx, procs); err != nil {
		return err
	}
	total, err := r.quiet(ctx)
	if err == nil && total < int64(r.producers) {
		err = fmt.Errorf("%d of the producers' %d first records reached the brokers%s", total, r.producers, complaint(procs))
	}
	return err
}

// probeReading has one record read by each consumer in a group of its own, and
// commits where the measured groups begin: behind what does not count.
func (r *perftestRun) probeReading(ctx context.Context) error {
	n := make([]int64, r.consumers)
	for i := range n {
		n[i] = 1
	}
	procs := r.consuming(n, "-probe")
	groups := make([]string, len(procs))
	for i, p := range procs {
		groups[i] = p.group
	}
	if err := r.runAll(ctx, procs); err != nil {
		return fmt.Errorf("reading a first record: %w", err)
	}
	if _, err := r.l.made.admin.DeleteGroups(ctx, groups...); err != nil {
		return fmt.Errorf("reading a first record: removing its groups: %w", err)
	}
	ends, err := r.l.made.admin.ListEndOffsets(ctx, r.l.topics...)
	if err == nil {
		err = ends.Error()
	}
	for _, topic := range r.l.topics {
		if err != nil {
			break
		}
		at := kadm.Offsets{}
		for p, o := range ends[topic] {
			at.AddOffset(topic, p, o.Offset, -1)
		}
		err = r.l.made.admin.CommitAllOffsets(ctx, topic, at)
	}
	if err != nil {
		return fmt.Errorf("telling the groups where to begin: %w", err)
	}
	return nil
}

// quiet waits until the brokers append no more and returns how many records
// the topics hold.
func (r *perftestRun) quiet(ctx context.Context) (int64, error) {
	limit := time.Now().Add(appendsMost)
	last, since := int64(-1), time.Now()
	for {
		total, err := r.l.made.ends(ctx)
		if err != nil {
			return 0, err
		}
		if total != last {
			last, since = total, time.Now()
		}
		if time.Since(since) >= appendsIdle || time.Now().After(limit) {
			return total, nil
		}
		select {
		case <-time.After(appendLook):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// calibrate loads for a time from the first record that the brokers append,
// then ends the producers, and returns the rate of the second half.
func (r *perftestRun) calibrate(ctx context.Context, length time.Duration) (float64, error) {
	before, err := r.l.made.ends(ctx)
	if err != nil {
		return 0, err
	}
	n := make([]int64, r.producers)
	for i := range n {
		n[i] = manyRecords
	}
	procs := r.producing(n, 0, throughputs(r.l.Cell.Bench.Rate, int64(r.producers))...)
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	result := make(chan error, 1)
	go func() { result <- r.runAll(running, procs) }()
	counter := countAppends(ctx, r.l.made.ends)
	early, err := r.awaitAppends(ctx, counter, before, length, result)
	counter.stop()
	end(errTimeUp)
	if !early {
		if e := <-result; err == nil && !errors.Is(e, errTimeUp) {
			err = e
		}
	}
	if err != nil {
		return 0, err
	}
	return lateRate(counter.samples, length/2)
}

// awaitAppends waits until the load has run its length; early tells that the
// processes ended before.
func (r *perftestRun) awaitAppends(ctx context.Context, counter *appendCounter, before int64, length time.Duration, result <-chan error) (early bool, err error) {
	slow := 1.0
	for _, w := range r.workers {
		slow = max(slow, r.s.slowness(w.Name))
	}
	limit := time.After(time.Duration(float64(toolStart) * slow))
	var over <-chan time.Time
	for {
		if over == nil && counter.latest() > before {
			over = time.After(length)
			limit = nil
		}
		select {
		case <-over:
			return false, nil
		case err := <-result:
			if err == nil {
				err = errors.New("the producers ended by themselves")
			}
			return true, err
		case <-limit:
			return false, fmt.Errorf("no record reached the brokers within %v", toolStart)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(appendLook):
		}
	}
}

// lateRate is the records/s that were appended in the last stretch of that length.
func lateRate(samples []appends, length time.Duration) (float64, error) {
	if len(samples) > 1 {
		last := samples[len(samples)-1]
		for i := len(samples) - 2; i >= 0; i-- {
			took := last.at.Sub(samples[i].at)
			if took < length && i > 0 {
				continue
			}
			if n := last.total - samples[i].total; n > 0 && took > 0 {
				return float64(n) / took.Seconds(), nil
			}
			break
		}
	}
	return 0, errors.New("the warm-up's rate could not be measured")
}

// measure runs the load that counts.
func (r *perftestRun) measure(ctx context.Context, rate float64) (*loaded, error) {
	measured, warmup := recordsOf(r.l.Cell, r.v, rate)
	if warmup > 0 {
		warmup = max(warmup, int64(r.producers))
	}
	n := make([]int64, r.producers)
	for i := range n {
		n[i] = share(measured, i, r.producers) + share(warmup, i, r.producers)
	}
	procs := r.producing(n, warmup, throughputs(r.l.Cell.Bench.Rate, int64(r.producers))...)
	procs = append(procs, r.consuming(r.consumed(n), "")...)
	r.s.report("loading: %d records from %d producers", measured+warmup, r.producers)
	counter := countAppends(ctx, r.l.made.ends)
	runErr := r.runAll(ctx, procs)
	after, quietErr := r.quiet(context.WithoutCancel(ctx))
	counter.stop()
	if err := r.keep(procs); err != nil {
		return nil, err
	}
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if err := r.s.clocks.measure(ctx, r.s); err != nil && runErr == nil {
		runErr = err
	}
	m := &perftestMeasured{r: r, procs: procs, counter: counter, asked: measured + warmup, appended: after - r.before}
	if quietErr != nil {
		m.appended = -1
	}
	out := m.loaded()
	if runErr != nil {
		out.invalid = runErr.Error()
	}
	return out, nil
}

// consumed is how many records each consumer is asked for. Several in one
// group read whole polls and may take more than their share, which the others then lack:
// each is asked for a poll less.
func (r *perftestRun) consumed(sent []int64) []int64 {
	const poll = 500
	topics := len(r.l.topics)
	inTopic, readers := make([]int64, topics), make([]int, topics)
	for i, n := range sent {
		inTopic[i%topics] += n
	}
	for i := range r.consumers {
		readers[i%topics]++
	}
	out := make([]int64, r.consumers)
	for i := range out {
		t := i % topics
		out[i] = share(inTopic[t], i/topics, readers[t])
		if readers[t] > 1 {
			out[i] = max(1, out[i]-poll)
		}
	}
	return out
}

// complaint is what the tools said on standard error, for a sentence.
func complaint(procs []*toolProcess) string {
	for _, p := range procs {
		if text := strings.Join(p.stderr, " | "); text != "" {
			return fmt.Sprintf("; %s said: %s", p.name(), text)
		}
	}
	return ""
}
