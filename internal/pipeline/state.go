package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"krig/bench"
	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/rundir"
	"krig/provision"
)

// clusterError says that a cell's cluster could not be had on a rig that stands.
type clusterError struct{ err error }

func (e *clusterError) Error() string { return e.err.Error() }
func (e *clusterError) Unwrap() error { return e.err }

// to brings rig and cluster to the state that a cell needs, making only the
// difference from the state they are in.
func (fl *flow) to(ctx context.Context, cell *experiment.Cell) error {
	t := experiment.Transition{Anew: true}
	if fl.rig != nil {
		t = experiment.Between(fl.rig.Cell, cell)
	}
	switch {
	case t.Anew:
		if err := fl.remove(ctx); err != nil {
			return err
		}
		return fl.anew(ctx, cell)
	case fl.rig.Cluster == nil:
		return fl.anew(ctx, cell)
	case t.Infra, t.Prepare, t.Cluster:
		if err := fl.clear(ctx); err != nil {
			return err
		}
		return fl.anew(ctx, cell)
	case t.Resize:
		return fl.resize(ctx, cell)
	}
	fl.rig.Cell = cell
	return fl.agents(ctx)
}

// anew makes hosts and a cluster where no cluster stands.
func (fl *flow) anew(ctx context.Context, cell *experiment.Cell) error {
	if err := fl.hosts(ctx, cell); err != nil {
		return err
	}
	return fl.cluster(ctx, cell)
}

// hosts converges the rig, prepares the hosts that are new, and starts agents.
func (fl *flow) hosts(ctx context.Context, cell *experiment.Cell) error {
	end := fl.clock.start("infra")
	hosts, err := infra.Apply(ctx, fl.owner, fl.want(cell))
	end()
	if err != nil {
		return fmt.Errorf("making the hosts of rig %s: %w", cell.RigName, err)
	}
	have, err := fl.replace(cell, hosts)
	if err == nil {
		err = fl.stand()
	}
	if err != nil {
		return err
	}
	defer fl.clock.start("prepare")()
	prepared, err := provision.Prepare(ctx, fl.owner, fl.fleet, hosts, cell, have)
	if err != nil {
		return fmt.Errorf("preparing the hosts of rig %s: %w", cell.RigName, err)
	}
	fl.rig.Prepared = prepared
	limits, err := bench.Probe(ctx, fl.owner, fl.fleet, hosts, prepared, fl.rig.Limits)
	if err != nil {
		return fmt.Errorf("probing the hosts of rig %s: %w", cell.RigName, err)
	}
	fl.rig.Limits = limits
	if err := fl.stand(); err != nil {
		return err
	}
	return fl.agents(ctx)
}

// replace takes the new hosts over: connections and agents of hosts that left
// or changed are closed, and what was prepared of them is forgotten. It
// returns what is still prepared.
func (fl *flow) replace(cell *experiment.Cell, hosts []rundir.Host) (*rundir.Prepared, error) {
	if fl.rig == nil {
		fl.rig = &rig{}
		fl.rig.Rig = cell.RigName
	}
	have := &rundir.Prepared{}
	var gone []string
	for _, old := range fl.rig.Hosts {
		if !slices.ContainsFunc(hosts, func(h rundir.Host) bool { return h.Same(old) }) {
			gone = append(gone, old.Name)
		}
	}
	if fl.rig.Prepared != nil {
		for _, p := range fl.rig.Prepared.Hosts {
			if !slices.Contains(gone, p.Name) {
				have.Hosts = append(have.Hosts, p)
			}
		}
	}
	if fl.rig.Limits != nil {
		for _, name := range gone {
			delete(fl.rig.Limits.Hosts, name)
		}
	}
	err := errors.Join(fl.quiet(), fl.fleet.Drop(gone...))
	fl.fleet.Add(hosts...)
	if len(gone) > 0 || len(hosts) != len(fl.rig.Hosts) {
		fl.states[cell.RigName]++
		fl.rig.N, fl.rig.M = fl.states[cell.RigName], 0
	}
	fl.rig.Hosts, fl.rig.Cell = hosts, cell
	return have, err
}

// agents starts the agents where none run.
func (fl *flow) agents(ctx context.Context) error {
	if fl.rig.session != nil {
		return nil
	}
	s, err := bench.Open(ctx, fl.run, fl.fleet, bench.Rig{
		Name: fl.rig.Rig, State: fl.rig.N, Hosts: fl.rig.Hosts, Prepared: fl.rig.Prepared, Limits: fl.rig.Limits,
	})
	if err != nil {
		return fmt.Errorf("starting agents: %w", err)
	}
	fl.rig.session = s
	return nil
}

// quiet ends the agents.
func (fl *flow) quiet() error {
	if fl.rig == nil || fl.rig.session == nil {
		return nil
	}
	err := fl.rig.session.Close()
	fl.rig.session = nil
	return err
}

// cluster starts a new cluster on the prepared hosts and primes it. One that
// is known is stopped and wiped first.
func (fl *flow) cluster(ctx context.Context, cell *experiment.Cell) error {
	if fl.rig.Cluster != nil {
		if err := fl.clear(ctx); err != nil {
			return err
		}
	}
	end := fl.clock.start("cluster")
	cl, err := provision.Start(ctx, fl.owner, fl.fleet, fl.rig.Hosts, fl.rig.Prepared, cell)
	end()
	if err != nil {
		return &clusterError{fmt.Errorf("starting Kafka for %s: %w", cell.ID, err)}
	}
	return fl.primed(ctx, cell, cl)
}

// primed takes a cluster over and gives it its discarded load.
func (fl *flow) primed(ctx context.Context, cell *experiment.Cell, cl *rundir.Cluster) error {
	fl.rig.Cluster, fl.rig.Cell = cl, cell
	fl.rig.M++
	if err := fl.stand(); err != nil {
		return err
	}
	if err := fl.agents(ctx); err != nil {
		return err
	}
	defer fl.clock.start("prime")()
	if err := fl.rig.session.Prime(ctx, cl, cell); err != nil {
		return &clusterError{fmt.Errorf("priming the cluster for %s: %w", cell.ID, err)}
	}
	return nil
}

// resize grows or shrinks rig and cluster; the cluster stands.
func (fl *flow) resize(ctx context.Context, cell *experiment.Cell) error {
	stay := fl.staying(cell)
	if len(stay) < len(fl.rig.Hosts) { // leaving brokers hand on before their hosts go
		if err := fl.resizeCluster(ctx, cell, stay); err != nil {
			return err
		}
		if err := provision.Restore(ctx, fl.owner, fl.fleet, without(fl.rig.Hosts, stay)); err != nil {
			return fmt.Errorf("giving back the hosts that leave: %w", err)
		}
	}
	if err := fl.hosts(ctx, cell); err != nil {
		return err
	}
	if err := fl.resizeCluster(ctx, cell, fl.rig.Hosts); err != nil {
		return err
	}
	return fl.primed(ctx, cell, fl.rig.Cluster)
}

func (fl *flow) resizeCluster(ctx context.Context, cell *experiment.Cell, hosts []rundir.Host) error {
	defer fl.clock.start("resize")()
	cl, err := provision.Resize(ctx, fl.owner, fl.fleet, hosts, fl.rig.Prepared, cell, fl.rig.Cluster)
	if err != nil {
		return &clusterError{fmt.Errorf("resizing the cluster for %s: %w", cell.ID, err)}
	}
	fl.rig.Cluster = cl
	return nil
}

// staying are the present hosts that a cell still wants: infra removes the
// highest numbers of each pool first.
func (fl *flow) staying(cell *experiment.Cell) []rundir.Host {
	want := cell.Placement()
	var stay []rundir.Host
	for _, h := range fl.rig.Hosts {
		if slices.ContainsFunc(want, func(p experiment.Place) bool { return p.Name == h.Name }) {
			stay = append(stay, h)
		}
	}
	return stay
}

// without are the hosts that are not among others.
func without(hosts, others []rundir.Host) []rundir.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h rundir.Host) bool { return slices.ContainsFunc(others, h.Same) })
}

// clear stops and wipes the cluster; the hosts stand.
func (fl *flow) clear(ctx context.Context) error {
	if fl.rig == nil || fl.rig.Cluster == nil {
		return nil
	}
	cl := fl.rig.Cluster
	if err := provision.Stop(ctx, fl.owner, fl.fleet, cl); err != nil {
		return fmt.Errorf("stopping Kafka: %w", err)
	}
	if err := provision.Wipe(ctx, fl.owner, fl.fleet, cl); err != nil {
		return fmt.Errorf("wiping Kafka's data: %w", err)
	}
	fl.rig.Cluster = nil
	return fl.stand()
}
