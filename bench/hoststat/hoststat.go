// Package hoststat reads what the collectors wrote: sar (as sadf's JSON),
// iostat (JSON), pidstat (text) and krig-agent's own samples, into series in
// base units. It starts nothing and draws no conclusions.
//
// Files are read as a stream, sample by sample, and may be cut short at any
// byte: all complete samples before the cut count. The JSON reader forgives
// the separators that releases of sysstat have put in the wrong place.
package hoststat

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"krig/internal/result"
)

// Series is one measure of one device, interface or process group over time.
type Series struct {
	Measure string  // such as "disk.write"
	Of      string  // device, interface or command; "" for the host as a whole
	Unit    string  // of package result
	Grain   float64 // how coarse Times are, s: the true time is in [t, t+Grain)

	Times   []float64  // s since the epoch, ascending: the end of what each value covers
	Lengths []float64  // s: the value covers the time from Times[i]-Lengths[i]
	Values  []*float64 // nil is a hole, or a value that cannot be true
}

// Reading is what one file gave.
type Reading struct {
	Series   []*Series
	Samples  int
	Cut      bool        // the file ends in the middle
	Restarts []time.Time // the host was booted in between
	Warnings []string
}

// ErrNoSamples says that a file holds no sample at all.
var ErrNoSamples = errors.New("no samples")

// table gathers values by measure.
type table struct {
	grain  float64
	series map[[2]string]*Series
	order  []*Series
	warned map[string]int
	words  []string
}

func newTable(grain float64) *table {
	return &table{grain: grain, series: map[[2]string]*Series{}, warned: map[string]int{}}
}

// add appends a value; a time that is not after the last one is left out.
func (t *table) add(measure, of, unit string, at, length float64, v *float64) {
	key := [2]string{measure, of}
	s := t.series[key]
	if s == nil {
		s = &Series{Measure: measure, Of: of, Unit: unit, Grain: t.grain}
		t.series[key] = s
		t.order = append(t.order, s)
	}
	if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0) {
		v = nil
	}
	s.push(at, length, v)
}

// warn counts a warning; it is told once with its count.
func (t *table) warn(text string) {
	if t.warned[text] == 0 {
		t.words = append(t.words, text)
	}
	t.warned[text]++
}

func (t *table) warnings() []string {
	var out []string
	for _, w := range t.words {
		if n := t.warned[w]; n > 1 {
			w = fmt.Sprintf("%s (%d times)", w, n)
		}
		out = append(out, w)
	}
	return out
}

// Append joins what a tool measured after it was started again, with a hole
// between the two: however short it was, nobody watched.
func (s *Series) Append(later *Series) {
	if len(s.Times) > 0 && len(later.Times) > 0 {
		last, next := s.Times[len(s.Times)-1], later.Times[0]
		s.push(max(next-later.Lengths[0], (last+next)/2), 0, nil)
	}
	for i, at := range later.Times {
		s.push(at, later.Lengths[i], later.Values[i])
	}
}

// push appends a value; one that is not after the last is left out.
func (s *Series) push(at, length float64, v *float64) {
	if n := len(s.Times); n > 0 && at <= s.Times[n-1] {
		return
	}
	s.Times, s.Lengths, s.Values = append(s.Times, at), append(s.Lengths, length), append(s.Values, v)
}

// Fill puts a hole wherever samples are missing inside the series. Times that
// are coarse may leave out a second with no sample missing.
func (s *Series) Fill() {
	out := &Series{}
	for i, at := range s.Times {
		if i > 0 {
			last, begin := s.Times[i-1], at-s.Lengths[i]
			if begin-last > 0.5*s.Lengths[i]+s.Grain && s.Values[i-1] != nil && s.Values[i] != nil {
				out.push(begin, begin-last, nil)
			}
		}
		out.push(at, s.Lengths[i], s.Values[i])
	}
	s.Times, s.Lengths, s.Values = out.Times, out.Lengths, out.Values
}

// Inside are the values, with the lengths that they cover, of samples that lie
// wholly inside a phase, holes left out.
func (s *Series) Inside(start, end float64) (values, lengths []float64) {
	for i, at := range s.Times {
		if s.Values[i] != nil && at-s.Lengths[i] >= start && at+s.Grain <= end {
			values, lengths = append(values, *s.Values[i]), append(lengths, s.Lengths[i])
		}
	}
	return values, lengths
}

// Mean is the mean over a phase, weighted by what each sample covers; false
// when no sample lies wholly inside.
func (s *Series) Mean(start, end float64) (float64, bool) {
	values, lengths := s.Inside(start, end)
	var sum, weight float64
	for i, v := range values {
		sum, weight = sum+v*lengths[i], weight+lengths[i]
	}
	if weight == 0 {
		return 0, false
	}
	return sum / weight, true
}

// Lowest is the lowest value in a phase; false when no sample lies wholly inside.
func (s *Series) Lowest(start, end float64) (float64, bool) {
	values, _ := s.Inside(start, end)
	if len(values) == 0 {
		return 0, false
	}
	return slices.Min(values), true
}

// Result is the series as the result schema has it.
func (s *Series) Result(host string) result.Series {
	return result.Series{Name: s.Measure, Host: host, Unit: s.Unit, Times: s.Times, Values: s.Values}
}

// Combine makes one series of a measure out of several devices': at each time
// of the first the values are put together by f; a hole in one is a hole in all.
func Combine(measure string, parts []*Series, f func(a, b float64) float64) *Series {
	if len(parts) == 0 {
		return nil
	}
	out := &Series{Measure: measure, Unit: parts[0].Unit, Grain: parts[0].Grain}
	for i, at := range parts[0].Times {
		v := parts[0].Values[i]
		for _, p := range parts[1:] {
			j, ok := slices.BinarySearch(p.Times, at)
			if v == nil || !ok || p.Values[j] == nil {
				v = nil
				break
			}
			sum := f(*v, *p.Values[j])
			v = &sum
		}
		out.Times, out.Lengths, out.Values = append(out.Times, at), append(out.Lengths, parts[0].Lengths[i]), append(out.Values, v)
	}
	return out
}

// Sum and Max are what [Combine] is used with.
func Sum(a, b float64) float64 { return a + b }

// Max is the larger of two.
func Max(a, b float64) float64 { return max(a, b) }

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func ptr(v float64) *float64 { return &v }

// finish closes a reading of a JSON document.
func finish(t *table, r *Reading, cut bool, err error) (*Reading, error) {
	r.Series, r.Cut, r.Warnings = t.order, cut, append(t.warnings(), r.Warnings...)
	if cut {
		r.Warnings = append(r.Warnings, fmt.Sprintf("cut, %d samples", r.Samples))
	}
	if err != nil && r.Samples > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("unreadable after %d samples: %v", r.Samples, err))
		r.Cut, err = true, nil
	}
	if err == nil && r.Samples == 0 {
		err = ErrNoSamples
	}
	return r, err
}

// Scaled is the series under another name and unit, each value multiplied.
func (s *Series) Scaled(measure, unit string, by float64) *Series {
	out := &Series{Measure: measure, Unit: unit, Grain: s.Grain, Times: slices.Clone(s.Times), Lengths: slices.Clone(s.Lengths)}
	out.Values = make([]*float64, len(s.Values))
	for i, v := range s.Values {
		if v != nil {
			out.Values[i] = ptr(*v * by)
		}
	}
	return out
}
