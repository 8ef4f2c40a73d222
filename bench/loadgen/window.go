package loadgen

import "sync/atomic"

// A window is the measured part of the load, on the clock. Its end moves only
// where the load ends by records: then it is far away until all are acknowledged.
type window struct {
	start int64 // of the load
	begin int64
	end   atomic.Int64
}

func (w *window) holds(at int64) bool { return at >= w.begin && at < w.end.Load() }

// far is later than any moment of a load.
const far = int64(1) << 62
