// Package provision turns bare hosts into Kafka brokers, controllers and load
// workers, and gives them back: the second stage. It knows nothing of where
// hosts come from, nor of what is measured.
//
// All that it does to a host is in the run's ledger, with the host's name as
// scope, before it is done. On hosts everything lies below /opt/krig/<short id>
// and /var/lib/krig/<short id>.
package provision

import (
	"context"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Distribution resolves the cell's Kafka on this machine: a directory in
// krig's cache with all jars, checked. It is what Prepare puts on hosts. A
// version that Maven does not know gives ErrNoVersion.
func Distribution(ctx context.Context, run *rundir.Run, k experiment.Kafka) (string, error) {
	d, err := resolve(ctx, run, k)
	if err != nil {
		return "", err
	}
	return d.libs, nil
}

// Prepare checks all facts of the hosts first, then makes each one ready, side by side: packages, data
// disk, agent, Kafka. Hosts prepared earlier (in have) are left alone. When
// facts stand against it the error is a *FactsError with all of them, and no
// host was changed.
func Prepare(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, c *experiment.Cell, have *rundir.Prepared) (*rundir.Prepared, error) {
	return prepareHosts(ctx, run, f, hosts, c, have)
}

// Start formats and starts a new cluster on prepared hosts and returns when
// the admin API says that every broker is registered, unfenced and able to lead, with the
// effective configuration read back. When it fails, what it started is stopped
// and wiped, and the logs are home.
func Start(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*rundir.Cluster, error) {
	return startCluster(ctx, run, f, hosts, p, c)
}

// Resize adds brokers on hosts that joined and unregisters those of hosts that
// leave, in a cluster that stands. Leaving brokers first hand on their partitions of
// internal topics, and are stopped and wiped; their hosts must still be reached. It returns
// the new value. A change that would touch the quorum is refused.
func Resize(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	return resizeCluster(ctx, run, f, hosts, p, c, cl)
}

// Mend restarts what died of a cluster and waits until it is whole again; an
// error says that it cannot be.
func Mend(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	return mendCluster(ctx, run, f, hosts, p, c, cl)
}

// Stop ends the cluster's processes and brings their logs home to logs/<host>/.
// It does what it can on every host, and may be called again.
func Stop(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	return stopCluster(ctx, run, f, cl)
}

// Wipe removes what a stopped cluster left on the data disks, only inside
// directories that krig made.
func Wipe(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	return wipeCluster(ctx, run, f, cl)
}

// Restore gives the hosts back as found, in reverse, and checks. Packages that
// were installed stay, and are told.
func Restore(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host) error {
	return restoreHosts(ctx, run, f, hosts)
}
