package bench

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"krig/bench/loadgen"
	"krig/internal/result"
)

// peakWindow is the length of the window that .peak names.
const peakWindow = 10 * time.Second

// A second is one interval of a load over all workers, on this machine's clock.
type second struct {
	from, to time.Time
	whole    bool    // every worker told of it
	produced float64 // records acknowledged
	consumed float64 // records read
	bytes    float64 // of values read
	unacked  float64 // intended and neither acknowledged nor failed, at its end
	unread   float64 // acknowledged and not read, at its end
	latency  *hdrhistogram.Histogram
}

// seconds joins the workers' intervals: the k-th of each begins k seconds after the start.
func (c *conductor) seconds() ([]second, error) {
	n := 0
	for _, w := range c.workers {
		n = max(n, len(w.ticks))
	}
	out := make([]second, 0, n)
	for k := range n {
		s, err := c.second(k)
		if err != nil {
			return nil, err
		}
		if s.to.Sub(s.from) >= time.Second/2 { // the rest after the last whole second says nothing
			out = append(out, s)
		}
	}
	return out, nil
}

func (c *conductor) second(k int) (second, error) {
	out := second{whole: true, latency: loadgen.NewHistogram()}
	var sum loadgen.Counters
	for _, w := range c.workers {
		if k >= len(w.ticks) {
			out.whole = w.summary != nil && out.whole // it ended in good order a moment earlier
			if w.summary != nil {
				sum = plus(sum, w.summary.Counters)
			}
			continue
		}
		tick := w.ticks[k]
		var before loadgen.Counters
		if k > 0 {
			before = w.ticks[k-1].Counters
		}
		if to := c.s.clocks.local(w.host, tick.To); to.After(out.to) {
			out.from, out.to = c.s.clocks.local(w.host, tick.From), to
		}
		out.produced += float64(tick.Counters.Acked - before.Acked)
		out.consumed += float64(tick.Counters.Consumed - before.Consumed)
		out.bytes += float64(tick.Counters.Bytes - before.Bytes)
		sum = plus(sum, tick.Counters)
		for _, name := range []string{loadgen.Produce, loadgen.ProduceOutside} {
			if err := addHistogram(out.latency, tick.Histograms[name]); err != nil {
				return out, err
			}
		}
	}
	out.unacked = float64(max(sum.Intended-sum.Acked-sum.Failed, 0))
	out.unread = float64(max(sum.Acked-sum.Consumed, 0))
	return out, nil
}

func addHistogram(into *hdrhistogram.Histogram, text string) error {
	if text == "" {
		return nil
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err == nil {
		into.Merge(h)
	}
	return err
}

// line makes one series of the seconds; a hole where value says so.
func line(seconds []second, name, unit string, value func(second) (float64, bool)) result.Series {
	out := result.Series{Name: name, Unit: unit}
	for _, s := range seconds {
		out.Times = append(out.Times, float64(s.to.UnixNano())/1e9)
		v, ok := value(s)
		if !ok || !s.whole {
			out.Values = append(out.Values, nil)
			continue
		}
		out.Values = append(out.Values, &v)
	}
	return out
}

func (s second) rate(count float64) (float64, bool) { return count / s.to.Sub(s.from).Seconds(), true }

// series are the load's own.
func (c *conductor) series(seconds []second) []result.Series {
	quantile := func(q float64) func(second) (float64, bool) {
		return func(s second) (float64, bool) {
			return float64(s.latency.ValueAtQuantile(q)) / 1e9, s.latency.TotalCount() > 0
		}
	}
	out := []result.Series{
		line(seconds, "produce.latency.p50", result.Seconds, quantile(50)),
		line(seconds, "produce.latency.p99", result.Seconds, quantile(99)),
		line(seconds, "produce.backlog", result.Records, func(s second) (float64, bool) { return s.unacked, true }),
	}
	if c.counter != nil {
		out = append(out, c.counter.series(c.size)...)
	} else {
		out = append(out,
			line(seconds, "produce.throughput", result.BytesPerSecond, func(s second) (float64, bool) { return s.rate(s.produced * c.size) }),
			line(seconds, "produce.rate", result.RecordsPerSecond, func(s second) (float64, bool) { return s.rate(s.produced) }))
	}
	if c.consumers() > 0 {
		out = append(out,
			line(seconds, "consume.throughput", result.BytesPerSecond, func(s second) (float64, bool) { return s.rate(s.bytes) }),
			line(seconds, "consume.rate", result.RecordsPerSecond, func(s second) (float64, bool) { return s.rate(s.consumed) }))
		if c.counter == nil {
			out = append(out, line(seconds, "backlog", result.Records, func(s second) (float64, bool) { return s.unread, true }))
		}
	}
	return out
}

// series are rate and throughput second by second.
func (a *appendCounter) series(size float64) []result.Series {
	rate := result.Series{Name: "produce.rate", Unit: result.RecordsPerSecond}
	through := result.Series{Name: "produce.throughput", Unit: result.BytesPerSecond}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.samples) == 0 {
		return nil
	}
	last := a.samples[len(a.samples)-1].at
	start := a.samples[0].at
	before, _ := a.at(start)
	for t := start.Add(time.Second); !t.After(last); t = t.Add(time.Second) {
		now, _ := a.at(t)
		r, b := now-before, (now-before)*size
		before = now
		rate.Times = append(rate.Times, float64(t.UnixNano())/1e9)
		rate.Values = append(rate.Values, &r)
		through.Values = append(through.Values, &b)
	}
	through.Times = slices.Clone(rate.Times)
	return []result.Series{rate, through}
}

// setPeak stores the highest ten seconds of a series that lie inside the phase.
func setPeak(m result.Measures, s result.Series, phase result.Phase) {
	name := s.Name + ".peak"
	from, to := float64(phase.Start.UnixNano())/1e9, float64(phase.End.UnixNano())/1e9
	n := int(peakWindow / time.Second)
	best, sum, run := -1.0, 0.0, 0
	for i, v := range s.Values {
		inside := v != nil && s.Times[i]-1 >= from-0.05 && s.Times[i] <= to+0.05
		if !inside {
			sum, run = 0, 0
			continue
		}
		sum, run = sum+*v, run+1
		if run > n {
			sum, run = sum-*s.Values[i-n], n
		}
		if run == n {
			best = max(best, sum/float64(n))
		}
	}
	if best < 0 {
		why := "the steady phase has no ten seconds without a hole"
		if phase.End.Sub(phase.Start) < peakWindow {
			why = "the steady phase is shorter than ten seconds"
		}
		m.SetUnknown(name, s.Unit, why)
		return
	}
	m.Set(name, best, s.Unit)
}
