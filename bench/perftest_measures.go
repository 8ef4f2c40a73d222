package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"krig/internal/perftool"
	"krig/internal/result"
)

// peakLength is the window of every .peak measure.
const peakLength = 10 * time.Second

// perftestMeasured is what the processes of one load said.
type perftestMeasured struct {
	r        *perftestRun
	procs    []*toolProcess
	counter  *appendCounter
	asked    int64 // records
	appended int64 // by the brokers; -1 when not known

	out *loaded
}

// loaded computes everything from what was said.
func (m *perftestMeasured) loaded() *loaded {
	m.out = &loaded{measures: result.Measures{}}
	var produced tracks
	var told int64
	for _, p := range m.of("producer") {
		o := p.producer.Result()
		if o.Total != nil {
			told += o.Total.Records
		}
		local := func(at time.Time) time.Time { return m.r.s.clocks.local(p.host, at.UnixNano()) }
		if t, ok := newTrack(o, local); ok {
			produced = append(produced, t)
		} else {
			m.invalidate("%s printed no total of any record%s", p.name(), complaint([]*toolProcess{p}))
		}
		m.warnOther(p, o.Other)
	}
	if len(produced) > 0 {
		m.phases(produced)
		m.throughput(produced)
		m.latencies()
		m.out.series = produced.series(m.size(), m.r.v.reporting())
	}
	m.counts(told)
	m.judge()
	if m.r.consumers > 0 {
		m.consumed()
	}
	m.notes()
	return m.out
}

func (m *perftestMeasured) size() float64 { return float64(m.r.l.Cell.Bench.RecordSize) }

func (m *perftestMeasured) of(kind string) []*toolProcess {
	var out []*toolProcess
	for _, p := range m.procs {
		if p.kind == kind {
			out = append(out, p)
		}
	}
	return out
}

func (m *perftestMeasured) invalidate(format string, args ...any) {
	if m.out.invalid == "" {
		m.out.invalid = fmt.Sprintf(format, args...)
	}
}

func (m *perftestMeasured) warn(format string, args ...any) {
	m.out.warnings = append(m.out.warnings, fmt.Sprintf(format, args...))
}

// warnOther passes on lines of the tool that are no result.
func (m *perftestMeasured) warnOther(p *toolProcess, lines []string) {
	const most = 3
	for i, line := range lines {
		if i == most {
			m.warn("%s printed %d more lines that are no result", p.name(), len(lines)-most)
			return
		}
		m.warn("%s: %s", p.name(), line)
	}
}

// acks0 tells whether nobody acknowledges.
func (m *perftestMeasured) acks0() bool { return m.r.l.Cell.Bench.Producer["acks"] == "0" }

func (m *perftestMeasured) transactional() bool {
	return m.r.l.Cell.Bench.Producer["transactional.id"] != ""
}

func moment(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)).UTC() }

// phases are the tool's own warm-up, and the time in which all processes ran;
// where there is none, from the first start to the last end.
func (m *perftestMeasured) phases(all tracks) {
	from, to := all.window()
	first, last := all.span()
	if to <= from {
		from, to = first, last
	}
	begun := from
	for _, t := range all {
		begun = min(begun, t.start)
	}
	if begun < from {
		m.out.phases = append(m.out.phases, result.Phase{Name: "warmup", Start: moment(begun), End: moment(from)})
	}
	m.out.phases = append(m.out.phases, result.Phase{Name: "steady", Start: moment(from), End: moment(to)})
	if overlap := (to - from) / (last - first); overlap < 0.9 {
		m.out.marks = append(m.out.marks, result.NotAligned)
	}
}

// throughput is that of the window in which all processes ran, with the one
// from the first start to the last end beside it.
func (m *perftestMeasured) throughput(all tracks) {
	first, last := all.span()
	span := all.rate(first, last)
	m.setRate("produce", ".span", span)
	from, to := all.window()
	if to <= from {
		m.unknownRate("produce", "", "the processes never ran all at once")
		return
	}
	rate := all.rate(from, to)
	if m.acks0() {
		// The tool counts what went into its socket; the brokers know what arrived.
		a, ok1 := m.counter.at(moment(from))
		b, ok2 := m.counter.at(moment(to))
		if !ok1 || !ok2 {
			m.unknownRate("produce", "", "the brokers' end offsets could not be read")
			return
		}
		rate = (b - a) / (to - from)
	}
	m.setRate("produce", "", rate)
	if peak, ok := all.peak(peakLength.Seconds()); ok && !m.acks0() {
		m.setRate("produce", ".peak", peak)
	} else if ok {
		m.unknownRate("produce", ".peak", "with acks=0 only the brokers know, over the whole window")
	} else {
		m.unknownRate("produce", ".peak", fmt.Sprintf("the window was shorter than %v", peakLength))
	}
}

func (m *perftestMeasured) setRate(what, suffix string, records float64) {
	m.out.measures.Set(what+".rate"+suffix, records, result.RecordsPerSecond)
	m.out.measures.Set(what+".throughput"+suffix, records*m.size(), result.BytesPerSecond)
}

func (m *perftestMeasured) unknownRate(what, suffix, why string) {
	m.out.measures.SetUnknown(what+".rate"+suffix, result.RecordsPerSecond, why)
	m.out.measures.SetUnknown(what+".throughput"+suffix, result.BytesPerSecond, why)
}

// percentileOf is a total's percentile by the name that its measure ends in.
func percentileOf(t *perftool.Total, name string) *float64 {
	return map[string]*float64{"p50": t.P50, "p95": t.P95, "p99": t.P99, "p999": t.P999}[name]
}

// latencies merge what can be merged: the highest is the highest, the mean is
// weighted by records. Percentiles are not: that of all lies between the lowest and
// the highest of the processes, and both are told.
func (m *perftestMeasured) latencies() {
	const name = "produce.latency."
	var totals []*perftool.Total
	var sum, weight float64
	highest := math.Inf(-1)
	for _, p := range m.of("producer") {
		o := p.producer.Result()
		t := o.Total
		if o.Steady != nil {
			t = o.Steady
		}
		if t == nil || t.Mean == nil || t.Max == nil {
			continue
		}
		totals = append(totals, t)
		sum, weight = sum+*t.Mean*float64(t.Records), weight+float64(t.Records)
		highest = max(highest, *t.Max)
	}
	ms := m.out.measures
	if weight == 0 {
		for _, q := range []string{"mean", "p50", "p95", "p99", "p999", "max"} {
			ms.SetUnknown(name+q, result.Seconds, "the tool measured none")
		}
		return
	}
	ms.Set(name+"mean", sum/weight, result.Seconds)
	ms.Set(name+"max", highest, result.Seconds)
	for _, q := range []string{"p50", "p95", "p99", "p999"} {
		m.percentile(name, q, totals)
	}
}

// keptRate is the share of the asked rate below which it was not sustained: the
// tool's own throttle stays a few per cent below in a short run.
const keptRate = 0.95

// judge marks what the load's figures do not say of themselves.
func (m *perftestMeasured) judge() {
	rate := m.r.l.Cell.Bench.Rate
	if rate.Max {
		m.out.marks = append(m.out.marks, result.AtSaturation)
		m.judgeCeiling()
	} else if got, ok := m.out.measures.Get("produce.rate"); ok && got < keptRate*rate.Value {
		m.out.marks = append(m.out.marks, result.NotSustained)
	}
	for _, p := range m.of("producer") {
		if ms, ok := p.producer.Result().Metric("produce-throttle-time-max"); ok && ms > 0 {
			m.warn("%s was throttled by a quota of the brokers, at most %g ms a request", p.name(), ms)
		}
	}
}

// judgeCeiling tells a ceiling of the tool from one of the cluster: the buffer of
// a producer that could send more was full.
func (m *perftestMeasured) judgeCeiling() {
	waited, known := 0.0, true
	for _, p := range m.of("producer") {
		s, ok := p.producer.Result().BufferWait()
		waited, known = waited+s, known && ok
	}
	if !known {
		return
	}
	m.out.measures.Set("generator.blocked_time", waited, result.Seconds)
	if waited == 0 {
		m.out.marks = append(m.out.marks, result.LimitedByGenerator)
	}
}

func (m *perftestMeasured) percentile(name, q string, totals []*perftool.Total) {
	var values []float64
	for _, t := range totals {
		if v := percentileOf(t, q); v != nil {
			values = append(values, *v)
		}
	}
	ms := m.out.measures
	name += q
	switch {
	case len(values) == 0:
		ms.SetUnknown(name, result.Seconds, "the tool measured none")
	case len(totals) == 1:
		ms.Set(name, values[0], result.Seconds)
	default:
		low, high := slices.Min(values), slices.Max(values)
		ms.SetUnknown(name, result.Seconds, fmt.Sprintf("%d processes' percentiles cannot be merged; it lies between %g s and %g s", len(values), low, high))
		ms.Set(name+".min_of_processes", low, result.Seconds)
		ms.Set(name+".max_of_processes", high, result.Seconds)
	}
}

// counts compares what was asked for, what the tools told and what the brokers
// appended. told leaves failed sends out from Kafka 3.5 on, and counts them before.
func (m *perftestMeasured) counts(told int64) {
	ms := m.out.measures
	if m.appended < 0 || m.transactional() {
		why := "the brokers' end offsets could not be read"
		if m.transactional() {
			why = "end offsets count transactions' markers too"
		}
		ms.SetUnknown("produce.lost", result.Records, why)
		ms.Set("produce.errors", float64(max(0, m.asked-told)), result.Records)
		return
	}
	if m.appended == 0 {
		m.invalidate("no record reached the brokers, although the tool ended well%s", complaint(m.of("producer")))
	}
	if m.acks0() {
		ms.Set("produce.lost", float64(max(0, told-m.appended)), result.Records)
		ms.SetUnknown("produce.errors", result.Records, "with acks=0 nobody acknowledges")
		return
	}
	failed := max(0, m.asked-min(told, m.appended), m.errors())
	ms.Set("produce.lost", 0, result.Records)
	ms.Set("produce.errors", float64(failed), result.Records)
	if float64(failed) > errorShare*float64(m.asked) {
		m.invalidate("%d of %d sends failed, although the tool ended well%s", failed, m.asked, complaint(m.of("producer")))
	} else if failed > 0 {
		m.warn("%d of %d sends failed%s", failed, m.asked, complaint(m.of("producer")))
	}
	if m.appended > m.asked {
		m.warn("the brokers appended %d records more than were sent: retries without idempotence", m.appended-m.asked)
	}
}

// errors are the sends that the producers' own metrics count as failed.
func (m *perftestMeasured) errors() int64 {
	sum := 0.0
	for _, p := range m.of("producer") {
		n, _ := p.producer.Result().Metric("record-error-total")
		sum += n
	}
	return int64(sum)
}

// notes say how the load was made and what its figures mean.
func (m *perftestMeasured) notes() {
	note := func(format string, args ...any) { m.out.notes = append(m.out.notes, fmt.Sprintf(format, args...)) }
	note("latency: from the send call to the acknowledgement, whole milliseconds, percentiles over at most 500,000 sampled records of each process")
	if m.acks0() {
		note("acks=0: latency ends when a record has left for the socket; rates are by the brokers' end offsets")
	}
	if m.transactional() {
		note("transactional: each transaction lasts %v", transactionLength)
	}
	for _, p := range m.procs {
		m.out.commands = append(m.out.commands, result.Command{Process: fmt.Sprintf("%s %d", p.kind, p.no), Host: p.host, Argv: p.argv})
		if t := p.producer.Result().Total; t != nil && t.P99 != nil && len(m.of("producer")) > 1 {
			note("%s: p50 %g s, p99 %g s, p99.9 %g s, max %g s", p.name(), *t.P50, *t.P99, *t.P999, *t.Max)
		}
	}
}
