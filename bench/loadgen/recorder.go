package loadgen

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of every histogram.
const (
	Lowest  = int64(time.Microsecond)
	Highest = int64(time.Hour)
	Digits  = 3
)

// NewHistogram makes the histogram that all of krig's are: ns, 1 µs to 1 h, three digits.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(Lowest, Highest, Digits)
}

// The layout of HdrHistogram for this range: values in units of 2^9 ns, 2^11
// steps in the first bucket and half as many in each of the following.
const (
	unitBits = 9
	stepBits = 11
	half     = 1 << (stepBits - 1)
)

// A recorder counts durations, cheaply and from any goroutine, and lets one
// reader take what was added since its last look. It is a histogram without
// sums: recording is one atomic addition, no lock and no swap.
type recorder struct {
	counts  []atomic.Uint32
	seen    []uint32 // reader's; counts wrap around, differences do not mind
	clipped atomic.Int64
}

func newRecorder() *recorder {
	n := index(Highest) + 1
	return &recorder{counts: make([]atomic.Uint32, n), seen: make([]uint32, n)}
}

// record counts one duration in ns.
func (r *recorder) record(ns int64) {
	if ns < Lowest || ns > Highest {
		ns = min(max(ns, Lowest), Highest)
		r.clipped.Add(1)
	}
	r.counts[index(ns)].Add(1)
}

// drain adds what was recorded since the last drain to h.
func (r *recorder) drain(h *hdrhistogram.Histogram) {
	for i := range r.counts {
		now := r.counts[i].Load()
		if n := now - r.seen[i]; n != 0 {
			r.seen[i] = now
			_ = h.RecordValues(lowestAt(i), int64(n)) // inside the range by construction
		}
	}
}

func index(ns int64) int {
	u := uint64(ns) >> unitBits
	if u < 2*half {
		return int(u)
	}
	shift := bits.Len64(u) - stepBits
	return shift*half + int(u>>shift)
}

// lowestAt is the lowest value that index maps to i.
func lowestAt(i int) int64 {
	if i < 2*half {
		return int64(i) << unitBits
	}
	shift := i/half - 1
	return int64(i-shift*half) << shift << unitBits
}

// encode is h as it travels; "" for an empty one.
func encode(h *hdrhistogram.Histogram) string {
	if h.TotalCount() == 0 {
		return ""
	}
	text, err := h.EncodeV2()
	if err != nil {
		panic("loadgen: encoding a histogram: " + err.Error()) // writes to memory only
	}
	return string(text)
}
