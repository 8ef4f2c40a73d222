package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"krig/internal/result"
)

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1234567: "1,234,567", 99.96: "100", 99.94: "99.9", 9.996: "10.0", 1: "1.00", 0.9994: "0.999", 0.0123: "0.012", 0.00012345: "0.000123", -1234: "-1,234",
	} {
		if got := figures(v); got != want {
			t.Errorf("figures(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestShow(t *testing.T) {
	tests := []struct {
		u    units
		v    float64
		unit string
		want string
	}{
		{units{}, 31457280, result.BytesPerSecond, "31.5 MB/s"},
		{units{binary: true}, 31457280, result.BytesPerSecond, "30.0 MiB/s"},
		{units{}, 0, result.BytesPerSecond, "0 MB/s"},
		{units{}, 3.4e9, result.BytesPerSecond, "3.40 GB/s"},
		{units{}, 0.0123, result.Seconds, "12.3 ms"},
		{units{}, 0.00085, result.Seconds, "850 µs"},
		{units{}, 81200, result.RecordsPerSecond, "81,200 records/s"},
		{units{}, 0.963, result.Ratio, "96.3 %"},
		{units{}, 2 << 30, result.Bytes, "2.00 GiB"},
		{units{}, 3, result.Records, "3.00 records"},
	}
	for _, tt := range tests {
		if got := tt.u.show(tt.v, tt.unit); got != tt.want {
			t.Errorf("show(%v %s) = %s, want %s", tt.v, tt.unit, got, tt.want)
		}
	}
	for v, want := range map[float64]string{31457280: "30 MiB/s", 125e6: "125 MB/s", 12345678: "12.3 MB/s"} {
		if got := (units{}).configured(v, result.BytesPerSecond); got != want {
			t.Errorf("configured(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	mb := scale{1e6, "MB/s"}
	tests := []struct {
		top  float64
		n    int
		want string
	}{
		{92.4e6, 5, "[0 2e+07 4e+07 6e+07 8e+07 1e+08]"},
		{31.5e6, 3, "[0 2e+07 4e+07]"},
		{0.3e6, 3, "[0 100000 200000 300000]"},
		{0, 3, "[0 500000 1e+06]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(ticksTo(tt.top, mb, tt.n)); got != tt.want {
			t.Errorf("ticksTo(%v) = %s, want %s", tt.top, got, tt.want)
		}
	}
	if got := fmt.Sprint(logTicks(3, 180)); got != "[2 5 10 20 50 100 200]" {
		t.Errorf("logTicks = %s", got)
	}
}

func TestSpread(t *testing.T) {
	tests := []struct{ at, want []vg.Length }{
		{[]vg.Length{10, 50}, []vg.Length{10, 50}},
		{[]vg.Length{50, 50}, []vg.Length{45, 55}},
		{[]vg.Length{52, 48, 50}, []vg.Length{60, 40, 50}},
		{[]vg.Length{0, 0, 0}, []vg.Length{0, 10, 20}},
		{[]vg.Length{100, 100}, []vg.Length{90, 100}},
		{nil, []vg.Length{}},
	}
	for _, tt := range tests {
		if got := spread(tt.at, 10, 0, 100); !slices.Equal(got, tt.want) {
			t.Errorf("spread(%v) = %v, want %v", tt.at, got, tt.want)
		}
	}
}

// seriesOf is a series of one sample a second; NaN stands for a hole.
func seriesOf(times []float64, values ...any) *result.Series {
	s := &result.Series{Times: times}
	for _, v := range values {
		if f, ok := v.(float64); ok {
			s.Values = append(s.Values, &f)
		} else {
			s.Values = append(s.Values, nil)
		}
	}
	return s
}

func TestStretches(t *testing.T) {
	s := seriesOf([]float64{101, 102, 103, 104, 105, 109, 110}, 1.0, 2.0, nil, 4.0, 5.0, 9.0, 10.0)
	got := fmt.Sprint(stretches(s, 100))
	// Each sample stands in the middle of its second; the third and what lies between 105 and 109 are holes.
	if want := "[[{0.5 1} {1.5 2}] [{3.5 4} {4.5 5}] [{8.5 9} {9.5 10}]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestThinKeepsPeaksAndDips(t *testing.T) {
	var pts []sampled
	for i := range 10_000 {
		pts = append(pts, sampled{float64(i), 50})
	}
	pts[1234].v, pts[1235].v, pts[7777].v = 99, 1, 75
	got := thin(pts, span{low: 0, high: 10_000}, 100)
	if len(got) > 200 {
		t.Fatalf("%d points", len(got))
	}
	for _, want := range []sampled{{1234, 99}, {1235, 1}, {7777, 75}} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is lost", want)
		}
	}
	if !slices.IsSortedFunc(got, func(a, b sampled) int { return int(a.t - b.t) }) {
		t.Error("not in the order of time")
	}
}

func TestCoarser(t *testing.T) {
	s := coarser(seriesOf([]float64{1, 2, 3, 4, 5}, 1.0, 3.0, nil, nil, 5.0), 3)
	if fmt.Sprint(s.Times) != "[2 4 5]" || *s.Values[0] != 2 || s.Values[1] != nil || *s.Values[2] != 5 {
		t.Errorf("times %v, values %v", s.Times, s.Values)
	}
}

func TestFinishLeavesNoColourAndNoFont(t *testing.T) {
	c := newChart(100, 50)
	c.label(inkMuted, vg.Point{X: 10, Y: 10}, leftOf, "<b> & 3")
	c.stroke(inkSeries0+2, 1, nil, vg.Point{X: 0.123456, Y: 1}, vg.Point{X: 9.87654, Y: 2})
	c.ring(inkMachine, vg.Point{X: 20, Y: 20}, 3)
	got := string(c.finish("x", `a "title"`, "what <it> shows"))
	for _, want := range []string{`viewBox="0 0 100 50"`, `role="img"`, `<title id="x-t">a &#34;title&#34;</title>`, "what &lt;it&gt; shows", "&lt;b&gt; &amp; 3",
		"fill:var(--muted)", `text-anchor="end"`, "stroke:var(--series-2)", "var(--machine)", "M0.1,1L9.9,2"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	for _, bad := range []string{"#01", "font-family", "<?xml"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in %s", bad, got)
		}
	}
}
