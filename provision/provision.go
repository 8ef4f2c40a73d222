// Package provision turns bare hosts into Kafka brokers, controllers and load
// workers, and gives them back: the second stage. It knows nothing of where
// hosts come from, nor of what is measured.
package provision

import (
	"context"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Check tells what a cell asks that this stage cannot do, without contacting
// anything.
func Check(c *experiment.Cell) []experiment.Problem { panic("being built") }

// Distribution resolves the cell's Kafka on this machine: a directory in
// krig's cache with all jars, checked. It is what Prepare puts on hosts.
func Distribution(ctx context.Context, run *rundir.Run, k experiment.Kafka) (string, error) {
	panic("being built")
}

// Prepare checks all facts of the hosts first, then makes each one ready, side by side: packages, data
// disk, agent, Kafka. Hosts prepared earlier (in have) are left alone.
func Prepare(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, c *experiment.Cell, have *rundir.Prepared) (*rundir.Prepared, error) {
	panic("being built")
}

// Start formats and starts a new cluster on prepared hosts and returns when
// the admin API says that every broker is registered, unfenced and able to lead, with the
// effective configuration read back.
func Start(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*rundir.Cluster, error) {
	panic("being built")
}

// Resize adds brokers on hosts that joined and unregisters those of hosts that
// leave, in a cluster that stands. Leaving brokers first hand on their partitions of
// internal topics, and are stopped. It returns the new value.
func Resize(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	panic("being built")
}

// Mend restarts what died of a cluster and waits until it is whole again; an
// error says that it cannot be.
func Mend(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	panic("being built")
}

// Stop ends the cluster's processes and brings their logs home to logs/<host>/.
func Stop(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	panic("being built")
}

// Wipe removes what a stopped cluster left on the data disks, only inside
// directories that krig made.
func Wipe(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	panic("being built")
}

// Restore gives the hosts back as found, in reverse, and checks.
func Restore(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host) error {
	panic("being built")
}
