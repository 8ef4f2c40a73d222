package provision

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Mend restarts what died of a cluster and waits until it is whole again; an
// error says that it cannot be.
func Mend(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, cl *rundir.Cluster) (*rundir.Cluster, error) {
	s, err := newSite(ctx, run, f, hosts, p, c)
	if err != nil {
		return nil, err
	}
	out := clone(cl)
	nodes, err := s.nodesOf(out, p)
	if err != nil {
		return nil, err
	}
	dead, err := s.dead(ctx, nodes)
	if err != nil {
		return nil, err
	}
	for _, n := range dead {
		s.say(n.host.Name, "%s is dead: starting it again", n.name())
	}
	pids, err := s.bringUp(ctx, out, dead, nil)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]rundir.Node{out.Brokers, out.Controllers} {
		for i := range list {
			for _, n := range dead {
				if n.id == list[i].ID {
					list[i].PID = pids[n.name()]
				}
			}
		}
	}
	return out, s.readBack(ctx, out)
}

// nodesOf turns a cluster's value back into nodes on the present hosts.
func (s *site) nodesOf(cl *rundir.Cluster, p *rundir.Prepared) ([]*node, error) {
	find := func(v rundir.Node, broker bool) (*node, error) {
		if len(v.LogDirs) != 1 {
			return nil, fmt.Errorf("node %d on %s has %d log directories, not one", v.ID, v.Host, len(v.LogDirs))
		}
		n := &node{id: v.ID, broker: broker, controller: !broker || cl.Mode == "combined", dir: v.LogDirs[0], logFile: v.LogFile, asked: v.Asked}
		for _, h := range s.hosts {
			if h.Name == v.Host {
				n.host = h
			}
		}
		for _, h := range p.Hosts {
			if h.Name == v.Host {
				n.prepared = h
			}
		}
		if n.host.Name == "" || n.prepared.Name == "" {
			return nil, fmt.Errorf("%s is gone, and %s with it", v.Host, n.name())
		}
		return n, nil
	}
	var out []*node
	var errs []error
	for i, v := range append(cl.Controllers[:len(cl.Controllers):len(cl.Controllers)], cl.Brokers...) {
		n, err := find(v, i >= len(cl.Controllers))
		out, errs = append(out, n), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// dead are the nodes without a process. A host on which a node's log directory
// is no longer there was made anew: such a node cannot be mended.
func (s *site) dead(ctx context.Context, nodes []*node) ([]*node, error) {
	on := byHost(nodes)
	var mu sync.Mutex
	var out []*node
	err := s.f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var configs, dirs []string
		for _, n := range on[name] {
			configs, dirs = append(configs, s.l.config(n.name())), append(dirs, n.dir)
		}
		pids, err := alive(ctx, c, configs)
		if err != nil {
			return err
		}
		found, err := inspect(ctx, c, dirs)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range on[name] {
			if pids[configs[i]] != 0 {
				continue
			}
			if found[n.dir].meta == nil {
				return fmt.Errorf("%s is gone with its log directory %s", n.name(), n.dir)
			}
			out = append(out, n)
		}
		return nil
	})
	return out, err
}
