package bench

import (
	"context"

	"krig/internal/result"
)

// driver produces the load of one repeat. There is one file for each.
type driver interface {
	// load runs the whole load: it connects, has one uncounted record of each
	// producer acknowledged (and read where consumers run), loads, and stops.
	// Raw files go below l.dir. A load that went wrong is told in loaded.invalid; an
	// error means that ctx ended or nothing could be written.
	load(ctx context.Context, s *Session, l loadAsk) (*loaded, error)
}

// loadAsk is one load.
type loadAsk struct {
	Ask
	topics   []string // made, with partitions and leaders ready
	made     *topics  // the same, with an admin client
	dir      string   // cells/<cell>/<repeat>/load, below the run directory
	prime    bool     // a discarded load: short, no files
	progress func(bytesPerSecond float64)
}

// loaded is what a driver measured.
type loaded struct {
	phases   []result.Phase
	measures result.Measures
	series   []result.Series // of the load: produce.throughput, produce.latency.p99, ...
	marks    []string
	warnings []string
	notes    []string // Repeat.Load
	invalid  string   // why the repeat is invalid; "" when it is not
}
