package bench

import (
	"math"
	"slices"
	"time"

	"krig/internal/perftool"
	"krig/internal/result"
)

// track is one producer process over time: how many records it had sent at
// each of its lines, in between as if it had been even.
type track struct {
	at    []float64 // s since the epoch, ascending
	sent  []float64 // records, not descending
	from  float64   // its first record that counts
	to    float64   // the end of its close
	start float64   // its first record, the tool's own warm-up included

	intervals []perftool.Interval // with At on this machine's clock
}

// newTrack reads a process' stamped lines; false without a total.
func newTrack(p *perftool.Producer, local func(time.Time) time.Time) (*track, bool) {
	if p.Total == nil || p.Total.At.IsZero() || p.Total.Records == 0 {
		return nil, false
	}
	t := &track{to: unix(local(p.Total.At))}
	t.start = t.to - p.Total.Length().Seconds()
	t.from = t.start
	warm := 0.0
	if p.Steady != nil && p.Steady.Records > 0 {
		t.from = t.to - p.Steady.Length().Seconds()
		warm = float64(p.Total.Records - p.Steady.Records)
	}
	t.add(t.start, 0)
	sent, steady := 0.0, false
	for _, i := range p.Intervals {
		if i.Steady && !steady {
			// The tool drops the records of its unfinished last warm-up interval.
			steady, sent = true, warm
			t.add(t.from, warm)
		}
		sent += float64(i.Records)
		i.At = local(i.At)
		t.add(unix(i.At), sent)
		t.intervals = append(t.intervals, i)
	}
	if p.Steady != nil && !steady {
		t.add(t.from, warm)
	}
	t.add(t.to, float64(p.Total.Records))
	return t, true
}

// add appends a point; one that goes back in time or number is left out.
func (t *track) add(at, sent float64) {
	if n := len(t.at); n > 0 && (at <= t.at[n-1] || sent < t.sent[n-1]) {
		if at < t.at[n-1] || sent < t.sent[n-1] {
			return
		}
		t.sent[n-1] = sent
		return
	}
	t.at, t.sent = append(t.at, at), append(t.sent, sent)
}

// upTo is how many records were sent until a moment.
func (t *track) upTo(at float64) float64 {
	n := len(t.at)
	i, _ := slices.BinarySearch(t.at, at)
	switch {
	case i == 0:
		return 0
	case i == n:
		return t.sent[n-1]
	}
	part := (at - t.at[i-1]) / (t.at[i] - t.at[i-1])
	return t.sent[i-1] + part*(t.sent[i]-t.sent[i-1])
}

// tracks are all producer processes of a load.
type tracks []*track

// upTo is how many records all had sent until a moment.
func (all tracks) upTo(at float64) (sum float64) {
	for _, t := range all {
		sum += t.upTo(at)
	}
	return sum
}

// window is the time in which all ran; empty (to <= from) where there is none.
func (all tracks) window() (from, to float64) {
	from, to = math.Inf(-1), math.Inf(1)
	for _, t := range all {
		from, to = max(from, t.from), min(to, t.to)
	}
	return from, to
}

// span is from the first start to the last end, warm-up left out.
func (all tracks) span() (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for _, t := range all {
		from, to = min(from, t.from), max(to, t.to)
	}
	return from, to
}

// rate is the records/s of all between two moments.
func (all tracks) rate(from, to float64) float64 {
	return (all.upTo(to) - all.upTo(from)) / (to - from)
}

// peak is the highest rate over any stretch of that length inside the window;
// false where the window is shorter.
func (all tracks) peak(length float64) (float64, bool) {
	from, to := all.window()
	if to-from < length {
		return 0, false
	}
	best := all.rate(from, from+length)
	for _, t := range all {
		for _, at := range t.at { // the highest begins or ends at some line
			for _, begin := range []float64{at, at - length} {
				if begin >= from && begin+length <= to {
					best = max(best, all.rate(begin, begin+length))
				}
			}
		}
	}
	return best, true
}

// steps are the moments at which the rate may change, thinned to at least
// 0.9 × apart, from the first start to the last end.
func (all tracks) steps(apart float64) []float64 {
	var at []float64
	for _, t := range all {
		at = append(at, t.at...)
	}
	slices.Sort(at)
	var out []float64
	for i, a := range at {
		if len(out) == 0 || a-out[len(out)-1] >= 0.9*apart || i == len(at)-1 && a > out[len(out)-1] {
			out = append(out, a)
		}
	}
	return out
}

// series are the load over time: throughput, and the latency of each interval.
func (all tracks) series(size float64, apart time.Duration) []result.Series {
	steps := all.steps(apart.Seconds())
	rate := result.Series{Name: "produce.throughput", Unit: result.BytesPerSecond}
	mean := result.Series{Name: "produce.latency.mean", Unit: result.Seconds}
	highest := result.Series{Name: "produce.latency.max", Unit: result.Seconds}
	for i := 1; i < len(steps); i++ {
		from, to := steps[i-1], steps[i]
		v := all.rate(from, to) * size
		m, h := all.latency(from, to)
		for _, add := range []struct {
			s *result.Series
			v *float64
		}{{&rate, &v}, {&mean, m}, {&highest, h}} {
			add.s.Times, add.s.Values = append(add.s.Times, to), append(add.s.Values, add.v)
		}
	}
	return []result.Series{rate, mean, highest}
}

// latency is the mean, weighted by records, and the highest of the intervals
// that ended in (from, to]; nil where none did.
func (all tracks) latency(from, to float64) (mean, highest *float64) {
	var sum, weight float64
	for _, t := range all {
		for _, i := range t.intervals {
			if at := unix(i.At); at <= from || at > to || i.Mean == nil || i.Max == nil {
				continue
			}
			sum, weight = sum+*i.Mean*float64(i.Records), weight+float64(i.Records)
			if highest == nil || *i.Max > *highest {
				v := *i.Max
				highest = &v
			}
		}
	}
	if weight == 0 {
		return nil, highest
	}
	sum /= weight
	return &sum, highest
}
