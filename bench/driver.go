package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"krig/internal/experiment"
	"krig/internal/result"
)

// driver produces the load of one repeat. There is one file for each, and a
// line in drivers.
type driver struct {
	// check tells what a cell asks that the driver cannot do, and contacts nothing.
	check func(c *experiment.Cell) []experiment.Problem
	// load runs the whole load: it connects, has one uncounted record of each
	// producer acknowledged (and read where consumers run), says that it is loading
	// unless it primes, loads, and stops. Raw files go below l.dir. A load that went
	// wrong is told in loaded.invalid; an error means that ctx ended or nothing could
	// be written.
	load func(ctx context.Context, s *Session, l loadAsk) (*loaded, error)
	// ownTopics is of a driver that makes its topics itself: none are made for it.
	// It adds the names of those that it made to l.made.names, so that they are
	// deleted and waited for.
	ownTopics bool
}

// drivers are all drivers by their name in an experiment.
func drivers() map[string]driver {
	return map[string]driver{
		"native":   {check: checkNative, load: loadNative},
		"perftest": {check: checkPerftest, load: loadPerftest},
	}
}

// driverOf is the cell's driver.
func driverOf(c *experiment.Cell) (driver, error) {
	all := drivers()
	d, ok := all[c.Bench.Driver]
	if !ok {
		return d, fmt.Errorf("no driver is called %q; there are %s", c.Bench.Driver, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return d, nil
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
	notes    []string            // Repeat.Load
	commands []result.Command    // Repeat.Commands
	changed  []result.NotApplied // Repeat.Client.NotApplied
	invalid  string              // why the repeat is invalid; "" when it is not
}
