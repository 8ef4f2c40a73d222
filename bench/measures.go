package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"krig/bench/loadgen"
	"krig/internal/result"
)

const (
	// errorShare is the share of records given up by the client above which a
	// repeat no longer measures what was asked.
	errorShare = 0.001
	// lateLeast is how late the scheduler may always be at its p99.
	lateLeast = time.Millisecond
)

// loaded turns what the workers said into the driver's answer.
func (c *conductor) loaded() *loaded {
	out := &loaded{measures: result.Measures{}, invalid: c.invalid}
	out.notes, out.changed = c.notes(), c.changed()
	m, err := c.merge()
	seconds, serr := c.seconds()
	for _, err := range []error{err, serr} {
		if err != nil && out.invalid == "" {
			out.invalid = err.Error()
		}
	}
	if m == nil || c.start.IsZero() {
		return out
	}
	out.series = c.series(seconds)
	steady := c.steady()
	out.phases = c.phases(steady)
	c.setRates(out, m, steady)
	c.setLatencies(out, m)
	c.setGenerator(out, m)
	c.setBacklog(out, seconds, steady)
	for _, s := range out.series {
		if s.Name == "produce.throughput" || s.Name == "produce.rate" || s.Name == "consume.throughput" || s.Name == "consume.rate" {
			setPeak(out.measures, s, steady)
		}
	}
	c.judge(out, m)
	return out
}

// steady is the measured window on this machine's clock. Where records end it, it
// ends with the last acknowledgement; without acknowledgements, with the last growth of the
// topics.
func (c *conductor) steady() result.Phase {
	warmup, length := c.window()
	p := result.Phase{Name: "steady", Start: c.start.Add(warmup)}
	p.End = p.Start.Add(length)
	if length > 0 {
		if last := c.lastWord(); c.invalid != "" && last.Before(p.End) {
			p.End = later(last, p.Start)
		}
		return p
	}
	if c.counter != nil {
		c.counter.mu.Lock()
		defer c.counter.mu.Unlock()
		p.End = c.counter.settled()
		return p
	}
	for _, w := range c.workers {
		if w.summary != nil && len(w.spec.Producers) > 0 {
			if end := c.s.clocks.local(w.host, w.summary.Window[1]); end.After(p.End) {
				p.End = end
			}
		}
	}
	return p
}

// lastWord is the end of the newest interval that any worker told of.
func (c *conductor) lastWord() time.Time {
	var last time.Time
	for _, w := range c.workers {
		if n := len(w.ticks); n > 0 {
			last = later(last, c.s.clocks.local(w.host, w.ticks[n-1].To))
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (c *conductor) phases(steady result.Phase) []result.Phase {
	steady.Start, steady.End = steady.Start.UTC(), steady.End.UTC()
	if steady.Start.After(c.start) {
		return []result.Phase{{Name: "warmup", Start: c.start, End: steady.Start}, steady}
	}
	return []result.Phase{steady}
}

// setRates sets what went through in the window, and what did not.
func (c *conductor) setRates(out *loaded, m *merged, steady result.Phase) {
	length := steady.End.Sub(steady.Start).Seconds()
	produced := float64(m.counters.AckedW)
	if c.counter != nil {
		appended, err := c.setAppended(out, m, steady)
		if err != nil {
			out.invalid = first(out.invalid, err.Error())
			return
		}
		produced = appended
	}
	if length <= 0 {
		for name, unit := range map[string]string{"produce.rate": result.RecordsPerSecond, "produce.throughput": result.BytesPerSecond} {
			out.measures.SetUnknown(name, unit, "nothing was stored")
		}
		out.invalid = first(out.invalid, "the brokers stored nothing")
		return
	}
	out.measures.Set("produce.rate", produced/length, result.RecordsPerSecond)
	out.measures.Set("produce.throughput", produced/length*c.size, result.BytesPerSecond)
	out.measures.Set("produce.errors", float64(m.counters.FailedW), result.Records)
	out.measures.Set("produce.censored", float64(m.censored), result.Records)
	asked := m.counters.IntendedW
	if c.rate() == 0 {
		asked -= m.censored // at a ceiling the buffers are full of them: nothing was promised
	}
	if asked > 0 && c.counter == nil {
		good := m.counters.IntendedW - m.counters.FailedW - m.censored
		out.measures.Set("availability", float64(good)/float64(asked), result.Ratio)
	}
	if c.consumers() > 0 {
		c.setConsumed(out, m, steady)
	}
}

// setConsumed sets what was read in the window. Where records end it, reading ends with the last
// record read.
func (c *conductor) setConsumed(out *loaded, m *merged, steady result.Phase) {
	end := steady.End
	if c.workers[0].spec.ByRecords {
		for _, w := range c.workers {
			if w.summary != nil && w.summary.LastRead > 0 {
				if last := c.s.clocks.local(w.host, w.summary.LastRead); last.After(end) {
					end = last
				}
			}
		}
	}
	length := end.Sub(steady.Start).Seconds()
	out.measures.Set("consume.rate", float64(m.counters.ConsumedW)/length, result.RecordsPerSecond)
	out.measures.Set("consume.throughput", float64(m.counters.BytesW)/length, result.BytesPerSecond)
}

// setAppended sets what only the brokers know of a load without acknowledgements, and
// returns the records that they appended in the window.
func (c *conductor) setAppended(out *loaded, m *merged, steady result.Phase) (float64, error) {
	a := c.counter
	a.mu.Lock()
	defer a.mu.Unlock()
	from, ok := a.at(steady.Start)
	to, _ := a.at(steady.End)
	if !ok {
		return 0, fmt.Errorf("the brokers did not say what they appended: %w", a.err)
	}
	appended := a.samples[len(a.samples)-1].total - a.samples[0].total
	out.measures.Set("produce.lost", float64(max(m.counters.Sent-appended, 0)), result.Records)
	return to - from, nil
}

func first(have, next string) string {
	if have != "" {
		return have
	}
	return next
}

// quantiles are those that every latency is told by.
func quantiles() []quantile {
	return []quantile{{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p999", 99.9}, {"max", 100}}
}

type quantile struct {
	name string
	at   float64
}

// setLatency sets mean, percentiles and maximum of a histogram, in seconds.
func setLatency(m result.Measures, name string, h *hdrhistogram.Histogram, empty string) {
	if h.TotalCount() == 0 {
		m.SetUnknown(name+".mean", result.Seconds, empty)
		for _, q := range quantiles() {
			m.SetUnknown(name+"."+q.name, result.Seconds, empty)
		}
		return
	}
	m.Set(name+".mean", h.Mean()/1e9, result.Seconds)
	for _, q := range quantiles() {
		m.Set(name+"."+q.name, float64(h.ValueAtQuantile(q.at))/1e9, result.Seconds)
	}
}

func (c *conductor) setLatencies(out *loaded, m *merged) {
	produce := m.byName[loadgen.Produce]
	if c.counter != nil {
		produce = loadgen.NewHistogram()
		setLatency(out.measures, "produce.latency", produce, "with acks=0 nothing is acknowledged")
	} else {
		setLatency(out.measures, "produce.latency", produce, "no record intended inside the window was acknowledged")
	}
	if c.rate() > 0 && c.counter == nil {
		setLatency(out.measures, "produce.publish_latency", m.byName[loadgen.Publish], "no record was acknowledged")
		setLatency(out.measures, "produce.publish_delay", m.byName[loadgen.Delay], "no record was acknowledged")
	}
	if c.consumers() > 0 {
		setLatency(out.measures, "end_to_end.latency", m.endToEnd, "no record with a time in it was read")
		if m.below > 0 || m.counters.Early > 0 {
			out.warnings = append(out.warnings, fmt.Sprintf("%d end-to-end latencies are below %v, what the hosts' clocks are known to; %d were read before they were sent, by those clocks", m.below, m.bound, m.counters.Early))
		}
	}
	if m.counters.Clipped > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("%d latencies lie outside 1 µs to 1 h and are counted as the nearest of these", m.counters.Clipped))
	}
	if m.censored > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("%d records intended inside the window were neither acknowledged nor refused %v after it: they are in no latency", m.censored, c.workers[0].spec.Await))
	}
}

// rate is the asked one; 0 is as fast as possible.
func (c *conductor) rate() float64 { return c.workers[0].spec.Rate }

// setGenerator sets what the generator says of itself.
func (c *conductor) setGenerator(out *loaded, m *merged) {
	if late := m.byName[loadgen.Late]; late.TotalCount() > 0 {
		for _, q := range quantiles() {
			out.measures.Set("generator.late."+q.name, float64(late.ValueAtQuantile(q.at))/1e9, result.Seconds)
		}
	}
	var cpu, longest float64
	for _, w := range c.workers {
		if w.summary != nil {
			cpu += w.summary.CPU
			longest = max(longest, w.summary.GCLongest)
		}
	}
	out.measures.Set("generator.cpu", cpu, result.Seconds)
	out.measures.Set("generator.gc_pause.max", longest, result.Seconds)
	out.measures.Set("generator.blocked", float64(m.counters.BlockedW), result.Records)
}

// setBacklog sets by how much the records grew, over the window, that were due and not acknowledged.
func (c *conductor) setBacklog(out *loaded, seconds []second, steady result.Phase) {
	if c.rate() == 0 || c.counter != nil {
		return
	}
	var from, to float64
	for _, s := range seconds {
		if !s.to.After(steady.Start.Add(50 * time.Millisecond)) {
			from = s.unacked
		}
		if !s.to.After(steady.End.Add(50 * time.Millisecond)) {
			to = s.unacked
		}
	}
	out.measures.Set("produce.backlog.growth", to-from, result.Records)
}

// judge says whether the repeat measured what was asked, and what marks it has.
func (c *conductor) judge(out *loaded, m *merged) {
	if c.rate() > 0 {
		c.judgeRate(out, m)
	} else {
		out.marks = append(out.marks, result.AtSaturation)
		if m.counters.Full == 0 && c.invalid == "" {
			out.marks = append(out.marks, result.LimitedByGenerator)
		}
	}
	failed, intended := m.counters.FailedW, m.counters.IntendedW
	errors := strings.Join(c.errors(), "; ")
	switch {
	case failed > 0 && float64(failed) > errorShare*float64(intended):
		out.invalid = first(out.invalid, fmt.Sprintf("%d of %d records failed: %s", failed, intended, errors))
	case errors != "":
		out.warnings = append(out.warnings, fmt.Sprintf("%d records failed: %s", m.counters.Failed, errors))
	}
	if intended > 0 && m.censored >= intended {
		out.invalid = first(out.invalid, "no record intended inside the window was acknowledged")
	}
}

// judgeRate applies the generator's own rule and tells whether the rate was kept.
func (c *conductor) judgeRate(out *loaded, m *merged) {
	allowed := lateLeast
	if c.counter == nil {
		allowed = max(allowed, time.Duration(m.byName[loadgen.Produce].ValueAtQuantile(99))/10)
	}
	for _, w := range c.workers {
		late := m.late[w.host]
		if p99 := time.Duration(late.ValueAtQuantile(99)); late.TotalCount() > 0 && p99 > allowed {
			out.invalid = first(out.invalid, fmt.Sprintf("%s: the generator's scheduler woke late: %v at its p99, above %v; "+
				"run fewer other programs on the machine, take more workers, or ask for a lower rate",
				w.host, p99.Round(10*time.Microsecond), allowed.Round(10*time.Microsecond)))
		}
	}
	growth, _ := out.measures.Get("produce.backlog.growth")
	asked := float64(m.counters.IntendedW)
	if m.counters.BlockedW > 0 || growth > max(asked/100, c.rate()) {
		out.marks = append(out.marks, result.NotSustained)
	}
}

func (c *conductor) errors() []string {
	var out []string
	for _, w := range c.workers {
		if w.summary != nil {
			out = append(out, w.summary.Errors...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// notes says how the load was produced.
func (c *conductor) notes() []string {
	spec := c.workers[0].spec
	out := []string{fmt.Sprintf("native: %d producers and %d consumers on %d workers", c.producers(), c.consumers(), len(c.workers))}
	if c.rate() > 0 {
		out[0] += fmt.Sprintf(", %v records/s in all", c.rate())
	} else {
		out[0] += ", as fast as the cluster takes them"
	}
	if spec.RecordSize < 8 && c.consumers() > 0 {
		out = append(out, "records below 8 bytes have no room for a time: end-to-end latency is not known")
	}
	for _, w := range c.workers {
		out = union(out, w.about.Notes)
	}
	return out
}

// changed are the settings that the clients did not take as Kafka's own would.
func (c *conductor) changed() []result.NotApplied {
	var out []result.NotApplied
	for _, w := range c.workers {
		out = union(out, w.about.NotApplied)
	}
	return out
}

// union adds what is not there yet.
func union[T comparable](to, more []T) []T {
	for _, m := range more {
		if !slices.Contains(to, m) {
			to = append(to, m)
		}
	}
	return to
}
