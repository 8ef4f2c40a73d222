package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// site is what every step on one cluster needs.
type site struct {
	run   *rundir.Run
	f     *remote.Fleet
	l     layout
	cell  *experiment.Cell
	hosts []rundir.Host
	dist  *distribution
	jars  []string      // names of the distribution's
	limit time.Duration // how long Kafka may take to become ready
}

// newSite finds the distribution and refuses settings and hosts that do not fit it.
func newSite(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*site, error) {
	s := &site{run: run, f: f, l: layoutOf(run), cell: c, hosts: hosts, limit: readyLimit(p)}
	var err error
	if s.dist, err = resolve(ctx, run, c.Kafka); err != nil {
		return nil, err
	}
	if s.jars, err = jarNames(s.dist.libs); err != nil {
		return nil, err
	}
	v, _ := parseVersion(s.dist.version)
	for _, h := range p.Hosts {
		if h.Facts.JavaMajor < v.java() {
			return nil, fmt.Errorf("%s: its Java is %d, Kafka %s needs %d", h.Name, h.Facts.JavaMajor, s.dist.version, v.java())
		}
	}
	return s, s.bring(ctx, p)
}

// bring puts the distribution on every host where another is in use.
func (s *site) bring(ctx context.Context, p *rundir.Prepared) error {
	var names []string
	for _, h := range p.Hosts {
		if slices.ContainsFunc(s.hosts, func(o rundir.Host) bool { return o.Name == h.Name }) {
			names = append(names, h.Name)
		}
	}
	return s.f.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		at, err := c.Output(ctx, "readlink", s.l.kafka())
		if err == nil && path.Base(trimmed(at)) == s.dist.id {
			return nil
		}
		return putKafka(ctx, c, s.l, s.dist)
	})
}

// readyLimit is how long a cluster may take to start: three minutes on a machine
// that starts a bare JVM in a tenth of a second, more on slower ones. It is
// well above one session time-out (9 s), after which alone an old registration ends.
func readyLimit(p *rundir.Prepared) time.Duration {
	slowest := 0.0
	for _, h := range p.Hosts {
		slowest = max(slowest, h.Facts.JVMStart)
	}
	return time.Duration(min(max(slowest/0.1, 1), 10) * float64(3*time.Minute))
}

// say reports a line of progress.
func (s *site) say(host, format string, args ...any) {
	s.run.Report(rundir.Event{Stage: "cluster", Host: host, Message: fmt.Sprintf(format, args...)})
}

// byHost groups nodes by the name of their host.
func byHost(nodes []*node) map[string][]*node {
	out := map[string][]*node{}
	for _, n := range nodes {
		out[n.host.Name] = append(out[n.host.Name], n)
	}
	return out
}

// settle writes every node's configuration and judges what its log directory
// holds. It returns the nodes that must be formatted. When a directory is
// somebody else's it returns a table of all, and nothing was formatted.
func (s *site) settle(ctx context.Context, cluster string, nodes []*node) (map[string]bool, error) {
	on := byHost(nodes)
	found := make([]map[string]logDir, len(on))
	names := sortedKeys(on)
	err := s.f.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) (err error) {
		found[slices.Index(names, name)], err = s.settleHost(ctx, c, on[name])
		return err
	})
	if err != nil {
		return nil, err
	}
	format := map[string]bool{}
	var problems []HostProblem
	for i, name := range names {
		for _, n := range on[name] {
			d := found[i][n.dir]
			v, wrong := judgeMeta(d.meta, cluster, n.id)
			if odd := strangers(d.names); len(odd) > 0 {
				wrong = fmt.Sprintf("it holds %s, over which Kafka would die", odd)
			}
			if wrong != "" {
				problems = append(problems, HostProblem{name, fmt.Sprintf("%s cannot use %s: %s", n.name(), n.dir, wrong), "look whose it is, and empty it"})
			}
			format[n.name()] = v == fresh
		}
	}
	return format, factsError(problems)
}

func (s *site) settleHost(ctx context.Context, c *remote.Conn, nodes []*node) (map[string]logDir, error) {
	var dirs []string
	if err := c.PutBytes(ctx, []byte(logConfig(s.jars)), s.l.logging(), 0o644); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		dirs = append(dirs, n.dir)
		if err := c.PutBytes(ctx, writeProperties(n.asked), s.l.config(n.name()), 0o644); err != nil {
			return nil, err
		}
	}
	return inspect(ctx, c, dirs)
}

// bringUp starts nodes side by side and waits until the whole cluster cl, of
// which they are a part, is ready. It returns their process ids by name. A node
// that dies ends the waiting at once.
func (s *site) bringUp(ctx context.Context, cl *rundir.Cluster, nodes []*node, format map[string]bool) (map[string]int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("Kafka was not ready after %s", s.limit))
	defer cancel()
	begun := time.Now()
	pids, err := s.launch(ctx, cl.ID, nodes, format)
	if err != nil {
		return nil, err
	}
	s.say("", "%d processes run: waiting for brokers to register", len(pids))
	g, gctx := errgroup.WithContext(ctx)
	waiting, done := context.WithCancel(gctx)
	g.Go(func() error { return s.watch(waiting, nodes, pids) })
	g.Go(func() error {
		defer done()
		return s.ready(waiting, cl)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	s.say("", "Kafka %s is ready: %d brokers after %.1f s", s.dist.version, len(cl.Brokers), time.Since(begun).Seconds())
	return pids, nil
}

// undoLimit bounds the removal of a cluster that could not be started.
const undoLimit = 2 * time.Minute

// abandon ends and wipes nodes that were started in vain; cause is why.
func (s *site) abandon(ctx context.Context, nodes []*node, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	vain := &rundir.Cluster{}
	for _, n := range nodes {
		vain.Brokers = append(vain.Brokers, n.value(0))
	}
	return errors.Join(cause, stopNodes(ctx, s.run, s.f, vain.Brokers, 0), bringLogs(ctx, s.run, s.f, vain.Brokers), Wipe(ctx, s.run, s.f, vain))
}

// value is the node as it is handed on.
func (n *node) value(pid int) rundir.Node {
	port := brokerPort
	if !n.broker {
		port = controllerPort
	}
	return rundir.Node{ID: n.id, Host: n.host.Name, Listener: n.address(port), PID: pid, LogDir: n.dir, LogFile: n.logFile, Asked: n.asked}
}
