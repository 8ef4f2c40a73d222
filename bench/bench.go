// Package bench puts load on a cluster and measures it: the third stage. It
// knows nothing of how hosts were made or prepared.
package bench

import (
	"context"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
)

// Check tells what a cell asks that its driver cannot do, without contacting anything.
func Check(c *experiment.Cell) []experiment.Problem { panic("being built") }

// Session holds one agent on each host of a rig state. Its starter closes it.
type Session struct{}

// Rig is what a session measures on.
type Rig struct {
	Name     string
	State    int // n of rigs/<rig>/<n>
	Hosts    []rundir.Host
	Prepared *rundir.Prepared
	Limits   *rundir.Limits
}

// Open starts an agent on every host.
func Open(ctx context.Context, run *rundir.Run, f *remote.Fleet, rig Rig) (*Session, error) {
	panic("being built")
}

// Probe says what the hardware's limits are. Until probes are built these are the lab's
// own profiles.
func Probe(ctx context.Context, hosts []rundir.Host) (*rundir.Limits, error) { panic("being built") }

// Prime puts the discarded load on a cluster that has just started.
func (s *Session) Prime(ctx context.Context, cl *rundir.Cluster, c *experiment.Cell) error {
	panic("being built")
}

// Ask is one repeat to be measured.
type Ask struct {
	Cell      *experiment.Cell
	Cluster   *rundir.Cluster
	ClusterNo int // m of clusters/<m>.json
	Repeat    int
	Attempt   int
}

// Run measures one repeat: makes topics, starts collectors, loads, stops,
// brings everything home, deletes topics, settles, and writes
// cells/<cell>/<repeat>/result.json and series.json. What went wrong with the
// cluster or the load is in the result (invalid, failed) and not an error; an
// error means that nothing could be written or ctx ended.
func (s *Session) Run(ctx context.Context, a Ask) (*result.Repeat, error) { panic("being built") }

// Close ends all agents.
func (s *Session) Close() error { panic("being built") }
