package bench

import (
	"fmt"
	"math"
	"slices"

	"krig/internal/perftool"
	"krig/internal/result"
)

// consumed measures the consumers by fetch rate: without the group's rebalance
// and without the wait of one that gave up.
func (m *perftestMeasured) consumed() {
	var records int64
	var size, common, span float64
	from, to := math.Inf(-1), math.Inf(1)
	first, last := math.Inf(1), math.Inf(-1)
	rate, rateBytes := 0.0, 0.0
	for _, p := range m.of("consumer") {
		row, ok := m.consumerRow(p)
		if !ok {
			continue
		}
		fetch, end := fetchTime(row, p.consumer.Result().Idle)
		records += row.Records
		size += *row.Bytes
		begin := end - fetch
		from, to, first, last = max(from, begin), min(to, end), min(first, begin), max(last, end)
		rate, rateBytes = rate+float64(row.Records)/fetch, rateBytes+*row.Bytes/fetch
		m.out.notes = append(m.out.notes, fmt.Sprintf("%s: %d records in %.3f s of fetching, %.0f B/s", p.name(), row.Records, fetch, *row.Bytes/fetch))
	}
	common, span = to-from, last-first
	if records == 0 || span <= 0 {
		m.unknownRate("consume", "", "no consumer printed a result")
		return
	}
	// Without a line a second nobody knows what several consumers read in the
	// time that they shared: while they overlap well the sum of their rates is that.
	if common < 0.9*span {
		rate, rateBytes = float64(records)/span, size/span
		m.warn("the consumers overlapped by %.0f %%: their rate is what they read from the first fetch to the last", 100*max(0, common)/span)
		if !slices.Contains(m.out.marks, result.NotAligned) {
			m.out.marks = append(m.out.marks, result.NotAligned)
		}
	}
	if produced, ok := m.out.measures.Get("produce.rate"); ok && rate > produced*1.01 {
		m.warn("consume.rate is above produce.rate: the consumers' tool counts from its first fetch, which found records waiting")
	}
	m.out.measures.Set("consume.rate", rate, result.RecordsPerSecond)
	m.out.measures.Set("consume.throughput", rateBytes, result.BytesPerSecond)
}

// consumerRow is a consumer's one row; what is wrong with it makes the repeat
// invalid or a warning.
func (m *perftestMeasured) consumerRow(p *toolProcess) (perftool.ConsumerRow, bool) {
	o := p.consumer.Result()
	m.warnOther(p, o.Other)
	for _, w := range o.Warnings {
		m.warn("%s: %s", p.name(), w)
	}
	if len(o.Rows) == 0 || o.Rows[0].Records == 0 || o.Rows[0].Bytes == nil {
		m.invalidate("%s read no record%s", p.name(), complaint([]*toolProcess{p}))
		return perftool.ConsumerRow{}, false
	}
	row := o.Rows[0]
	if o.Idle != nil {
		m.warn("%s gave up after %g s without a record, with %d of %d read: that wait is left out of its rate", p.name(), *o.Idle, row.Records, p.asked)
	}
	if fetch, _ := fetchTime(row, o.Idle); fetch <= 0 {
		m.invalidate("%s: its time cannot be", p.name())
		return row, false
	}
	return row, true
}

// fetchTime is how long a consumer fetched, in s, and when that ended (s since
// the epoch): the group's rebalance comes before, the wait of one that gave up after.
func fetchTime(row perftool.ConsumerRow, idle *float64) (length, end float64) {
	end = unix(row.End)
	length = row.End.Sub(row.Start).Seconds()
	if row.Fetch != nil {
		length = *row.Fetch
	}
	if idle != nil {
		length, end = length-*idle, end-*idle
	}
	return length, end
}
