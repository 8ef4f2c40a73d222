package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Resize adds brokers on hosts that joined and unregisters those of hosts that
// leave, in a cluster that stands. Leaving brokers first hand on their partitions of
// internal topics, and are stopped and wiped; their hosts must still be reached. It returns
// the new value. A change that would touch the quorum is refused.
func Resize(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	leaving, err := leavers(hosts, cl)
	if err != nil {
		return nil, err
	}
	s, err := newSite(ctx, run, f, hosts, p, c)
	if err != nil {
		return nil, err
	}
	out := clone(cl)
	if len(leaving) > 0 {
		if err := s.shrink(ctx, out, leaving); err != nil {
			return nil, err
		}
	}
	joined, err := s.grow(ctx, out, p)
	if err != nil {
		return nil, err
	}
	err = s.reach(ctx, out) // workers may have joined too
	if err == nil {
		err = s.readBack(ctx, out)
	}
	if err != nil {
		return nil, s.abandon(ctx, joined, err)
	}
	return out, nil
}

// clone copies what a resize changes of a cluster's value.
func clone(cl *rundir.Cluster) *rundir.Cluster {
	out := *cl
	out.Brokers = slices.Clone(cl.Brokers)
	out.Controllers = slices.Clone(cl.Controllers)
	out.Warnings = []string{}
	return &out
}

// leavers are the brokers whose hosts leave. A quorum does not change while
// its cluster stands.
func leavers(hosts []rundir.Host, cl *rundir.Cluster) ([]rundir.Node, error) {
	stays := func(host string, r rundir.Role) bool {
		return slices.ContainsFunc(hosts, func(h rundir.Host) bool { return h.Name == host && (r == "" || h.Has(r)) })
	}
	var out []rundir.Node
	for _, b := range cl.Brokers {
		if !stays(b.Host, rundir.Broker) {
			out = append(out, b)
		}
	}
	for _, n := range cl.Controllers {
		if !stays(n.Host, "") {
			return nil, fmt.Errorf("%s leaves with controller %d on it: the cluster must be started anew", n.Host, n.ID)
		}
	}
	if len(out) > 0 && cl.Mode == "combined" {
		return nil, fmt.Errorf("broker %d leaves and is a controller too: the cluster must be started anew", out[0].ID)
	}
	if len(out) == len(cl.Brokers) && len(out) > 0 {
		return nil, errors.New("every broker leaves: the cluster must be started anew")
	}
	return out, nil
}

// grow starts brokers on the hosts that joined. They are asked what the first
// broker was asked, so that all are alike. It returns the new ones.
func (s *site) grow(ctx context.Context, cl *rundir.Cluster, p *rundir.Prepared) ([]*node, error) {
	ids := map[string]int32{}
	for _, b := range cl.Brokers {
		ids[b.Host] = b.ID
	}
	all, _, err := placed(s.hosts, p, s.cell, ids)
	if err != nil {
		return nil, err
	}
	joining := slices.DeleteFunc(all, func(n *node) bool { _, have := ids[n.host.Name]; return have })
	if len(joining) == 0 {
		return nil, nil
	}
	if cl.Mode == "combined" {
		return nil, fmt.Errorf("%s joins and would be a controller too: the cluster must be started anew", joining[0].host.Name)
	}
	first := cl.Brokers[0].Asked
	configure(s.l, s.cell, cl.ID, first["controller.quorum.voters"], len(all), joining)
	for _, n := range joining {
		own := n.asked
		n.asked = maps.Clone(first)
		for k := range owned {
			if v, set := own[k]; set {
				n.asked[k] = v
			}
		}
	}
	return joining, s.join(ctx, cl, joining)
}

// join starts brokers into a cluster that stands.
func (s *site) join(ctx context.Context, cl *rundir.Cluster, joining []*node) error {
	at := len(cl.Brokers)
	for _, n := range joining {
		cl.Brokers = append(cl.Brokers, n.value(0))
		s.say(n.host.Name, "broker %d joins", n.id)
	}
	format, err := s.settle(ctx, cl.ID, joining)
	if err != nil {
		return err
	}
	pids, err := s.bringUp(ctx, cl, joining, format)
	if err != nil {
		return s.abandon(ctx, joining, err)
	}
	for i, n := range joining {
		cl.Brokers[at+i].PID = pids[n.name()]
	}
	return nil
}

// shrink hands on what the leaving brokers hold, stops them, has the cluster
// forget them, and empties their log directories.
func (s *site) shrink(ctx context.Context, cl *rundir.Cluster, leaving []rundir.Node) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("not done after %s", s.limit))
	defer cancel()
	gone := map[int32]bool{}
	for _, b := range leaving {
		gone[b.ID] = true
		s.say(b.Host, "broker %d leaves", b.ID)
	}
	stay := clone(cl)
	stay.Brokers = slices.DeleteFunc(stay.Brokers, func(b rundir.Node) bool { return gone[b.ID] })
	if err := s.handOn(ctx, stay, gone); err != nil {
		return fmt.Errorf("moving partitions off the leaving brokers: %w", err)
	}
	left := &rundir.Cluster{Brokers: leaving}
	if err := endNodes(ctx, s.run, s.f, leaving, politely); err != nil {
		return err
	}
	if err := s.forget(ctx, stay, gone); err != nil {
		return fmt.Errorf("unregistering the brokers that left: %w", err)
	}
	cl.Brokers = stay.Brokers
	return Wipe(ctx, s.run, s.f, left)
}
