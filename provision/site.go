package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/experiment"
	"krig/internal/kafka"
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

// newSite finds the distribution that the hosts were prepared with, which must be the cell's.
func newSite(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*site, error) {
	s := &site{run: run, f: f, l: layoutOf(run), cell: c, hosts: hosts, limit: readyLimit(p)}
	var err error
	if s.dist, err = inUse(ctx, run, hosts, p, c); err != nil {
		return nil, err
	}
	s.jars, err = jarNames(s.dist.libs)
	return s, err
}

// inUse is the one distribution on all hosts. Prepare has checked its jars, on
// this machine and on the hosts.
func inUse(ctx context.Context, run *rundir.Run, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*distribution, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	var d *distribution
	for _, h := range p.Hosts {
		if !slices.ContainsFunc(hosts, func(o rundir.Host) bool { return o.Name == h.Name }) {
			continue
		}
		if d == nil {
			d, err = describe(h.Distribution, filepath.Join(cache, h.Distribution))
			if errors.Is(err, fs.ErrNotExist) { // the cache was emptied meanwhile
				d, err = resolve(ctx, run, c.Kafka)
			}
			if err != nil {
				return nil, err
			}
		}
		if h.Distribution != d.id || d.version != c.Kafka.Version {
			return nil, fmt.Errorf("%s was prepared with Kafka %s, the cell needs %s: prepare it again", h.Name, h.Distribution, c.Kafka.Version)
		}
	}
	if d == nil {
		return nil, fmt.Errorf("none of the %d hosts was prepared", len(hosts))
	}
	return d, nil
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

// settle brings to every host what its nodes are started with and judges what
// their log directories hold. It returns how those are formatted that must be,
// by name. When a directory is somebody else's it returns a table of all, and nothing was formatted.
func (s *site) settle(ctx context.Context, cluster string, nodes []*node) (map[string]string, error) {
	on := byHost(nodes)
	names := sortedKeys(on)
	found, how := make([]map[string]logDir, len(on)), make([]map[string]string, len(on))
	err := s.f.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		i := slices.Index(names, name)
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			how[i], err = s.equip(ctx, c, cluster, on[name])
			return err
		})
		g.Go(func() (err error) {
			found[i], err = inspect(ctx, c, dirsOf(on[name]))
			return err
		})
		return g.Wait()
	})
	if err != nil {
		return nil, err
	}
	format := map[string]string{}
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
			if v == fresh {
				format[n.name()] = how[i][n.name()]
			}
		}
	}
	return format, factsError(problems)
}

func dirsOf(nodes []*node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.dir
	}
	return out
}

// equip puts configurations and what log directories are made of on a host, all
// at once, and says how each node is formatted if it must be.
func (s *site) equip(ctx context.Context, c *remote.Conn, cluster string, nodes []*node) (map[string]string, error) {
	tmp, err := os.MkdirTemp("", "krig-nodes-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := writeFile(filepath.Join(tmp, loggingFile), []byte(logConfig(s.jars))); err != nil {
		return nil, err
	}
	how := map[string]string{}
	for _, n := range nodes {
		if err := writeFile(filepath.Join(tmp, n.name(), configFile), kafka.WriteProperties(n.asked)); err != nil {
			return nil, err
		}
		// Nothing is removed on the host: another version's files must not join these.
		from := path.Join(n.name(), formatDir, s.dist.id, n.roles())
		known, err := s.layFormat(ctx, n, cluster, filepath.Join(tmp, from))
		if err != nil {
			return nil, fmt.Errorf("formatting %s: %w", n.name(), err)
		}
		how[n.name()] = "tool:" + cluster
		if known {
			how[n.name()] = "copy:" + path.Join(s.l.nodes(), from)
		}
	}
	return how, c.Put(ctx, tmp, s.l.nodes())
}

// bringUp starts nodes side by side and waits until the whole cluster cl, of
// which they are a part, is ready. It returns their process ids by name. A node
// that dies ends the waiting at once.
func (s *site) bringUp(ctx context.Context, cl *rundir.Cluster, nodes []*node, format map[string]string) (map[string]int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("Kafka was not ready after %s", s.limit))
	defer cancel()
	begun := time.Now()
	pids, err := s.headStart(ctx, nodes, format)
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return pids[n.name()] != 0 })
	if err := s.launch(ctx, rest, format, pids); err != nil {
		return nil, err
	}
	s.say("", "waiting for brokers to register; processes started: %d", len(pids))
	err = s.whileAlive(ctx, nodes, pids, func(ctx context.Context) error { return s.ready(ctx, cl) })
	if err != nil {
		return nil, err
	}
	s.say("", "Kafka %s is ready after %.1f s; brokers: %d", s.dist.version, time.Since(begun).Seconds(), len(cl.Brokers))
	return pids, nil
}

// headStart starts the controllers alone, and waits until they listen, where
// hosts share this machine's processors: a broker without a controller keeps a
// processor busy asking for it (seen with 4.4), and several of them hold
// up the very controller that they wait for.
func (s *site) headStart(ctx context.Context, nodes []*node, format map[string]string) (map[string]int, error) {
	pids := map[string]int{}
	first := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n.broker || !n.host.SharesKernel() })
	if err := s.launch(ctx, first, format, pids); err != nil {
		return nil, err
	}
	return pids, s.whileAlive(ctx, first, pids, func(ctx context.Context) error { return s.listening(ctx, first) })
}

// listening waits until every controller takes connections.
func (s *site) listening(ctx context.Context, controllers []*node) error {
	for _, n := range controllers {
		c, err := s.f.Conn(ctx, n.host.Name)
		if err == nil {
			err = poll(ctx, func(ctx context.Context) error { return dial(ctx, c, n.address(controllerPort)) })
		}
		if err != nil {
			return fmt.Errorf("%s on %s does not listen: %w", n.name(), n.host.Name, err)
		}
	}
	return nil
}

// whileAlive calls wait, whose context ends as soon as a node's process has
// ended, which is then the error.
func (s *site) whileAlive(ctx context.Context, nodes []*node, pids map[string]int, wait func(context.Context) error) error {
	g, gctx := errgroup.WithContext(ctx)
	waiting, done := context.WithCancel(gctx)
	g.Go(func() error { return s.watch(waiting, nodes, pids) })
	g.Go(func() error {
		defer done()
		return wait(waiting)
	})
	return g.Wait()
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
	return errors.Join(cause, endNodes(ctx, s.run, s.f, vain.Brokers, 0), Wipe(ctx, s.run, s.f, vain))
}

// value is the node as it is handed on.
func (n *node) value(pid int) rundir.Node {
	port := brokerPort
	if !n.broker {
		port = controllerPort
	}
	return rundir.Node{ID: n.id, Name: n.name(), Host: n.host.Name, Listener: n.address(port), PID: pid, LogDirs: []string{n.dir}, LogFile: n.logFile, Asked: n.asked}
}
