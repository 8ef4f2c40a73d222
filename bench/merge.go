package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"krig/bench/loadgen"
)

// merged is what all workers of a load recorded, together. Percentiles are
// taken from it and from nowhere else.
type merged struct {
	byName   map[string]*hdrhistogram.Histogram // over the window
	late     map[string]*hdrhistogram.Histogram // by worker
	endToEnd *hdrhistogram.Histogram
	below    int64         // end-to-end values below the clocks' bound
	bound    time.Duration // the largest of the pairs of clocks
	counters loadgen.Counters
	censored int64
}

// merge decodes and adds up every histogram of every interval.
func (c *conductor) merge() (*merged, error) {
	m := &merged{
		byName: map[string]*hdrhistogram.Histogram{}, late: map[string]*hdrhistogram.Histogram{},
		endToEnd: loadgen.NewHistogram(),
	}
	for _, name := range []string{loadgen.Produce, loadgen.Publish, loadgen.Delay, loadgen.Late} {
		m.byName[name] = loadgen.NewHistogram()
	}
	for _, w := range c.workers {
		m.late[w.host] = loadgen.NewHistogram()
		for _, tick := range w.ticks {
			if err := c.mergeTick(m, w, tick); err != nil {
				return nil, fmt.Errorf("%s: %w", w.host, err)
			}
		}
		if w.summary != nil {
			m.counters = plus(m.counters, w.summary.Counters)
			m.censored += w.summary.Censored
		} else {
			m.counters = plus(m.counters, w.latest)
		}
	}
	return m, nil
}

func (c *conductor) mergeTick(m *merged, w *worker, tick loadgen.Interval) error {
	for name, text := range tick.Histograms {
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return fmt.Errorf("histogram %s: %w", name, err)
		}
		if from, ok := strings.CutPrefix(name, loadgen.EndToEnd); ok {
			if err := c.mergeEndToEnd(m, w, from, tick, h); err != nil {
				return err
			}
		} else if into := m.byName[name]; into != nil {
			into.Merge(h)
		}
		if name == loadgen.Late {
			m.late[w.host].Merge(h)
		}
	}
	return nil
}

// mergeEndToEnd adds latencies between two clocks. They were taken with the
// clocks' difference at the start; by the moment of the interval it has drifted.
func (c *conductor) mergeEndToEnd(m *merged, w *worker, from string, tick loadgen.Interval, h *hdrhistogram.Histogram) error {
	i, err := strconv.Atoi(from)
	if err != nil || i < 0 || i >= len(c.workers) {
		return fmt.Errorf("end-to-end latencies from worker %q", from)
	}
	at := c.s.clocks.local(w.host, tick.To)
	ahead, bound := c.between(c.workers[i].host, w.host, at)
	shift := int64(ahead) - w.ahead[i]
	m.bound = max(m.bound, bound)
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		value := bar.From + shift
		if value < int64(bound) {
			m.below += bar.Count
		}
		value = min(max(value, loadgen.Lowest), loadgen.Highest)
		if err := m.endToEnd.RecordValues(value, bar.Count); err != nil {
			return err
		}
	}
	return nil
}

// between is by how much one host's clock is ahead of another's.
func (c *conductor) between(host, other string, at time.Time) (ahead, bound time.Duration) {
	a, ab := c.s.clocks.ahead(host, at)
	b, bb := c.s.clocks.ahead(other, at)
	return a - b, ab + bb
}

// plus adds two workers' counters.
func plus(a, b loadgen.Counters) loadgen.Counters {
	return loadgen.Counters{
		Sent: a.Sent + b.Sent, Acked: a.Acked + b.Acked, AckedW: a.AckedW + b.AckedW,
		Intended: a.Intended + b.Intended, IntendedW: a.IntendedW + b.IntendedW,
		Failed: a.Failed + b.Failed, FailedW: a.FailedW + b.FailedW,
		BlockedW: a.BlockedW + b.BlockedW, Full: a.Full + b.Full, Unsent: a.Unsent + b.Unsent,
		Consumed: a.Consumed + b.Consumed, ConsumedW: a.ConsumedW + b.ConsumedW,
		Bytes: a.Bytes + b.Bytes, BytesW: a.BytesW + b.BytesW,
		Early: a.Early + b.Early, Clipped: a.Clipped + b.Clipped,
	}
}
