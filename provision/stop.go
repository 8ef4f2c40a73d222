package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"krig/internal/remote"
	"krig/internal/rundir"
)

// stopCluster is Stop: brokers first, while there is a quorum to say goodbye to.
func stopCluster(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	run.Report(rundir.Event{Stage: "cluster", Message: "stopping Kafka"})
	return errors.Join(
		stopNodes(ctx, run, f, cl.Brokers, stopLimit),
		stopNodes(ctx, run, f, cl.Controllers, stopLimit),
		bringLogs(ctx, run, f, slices.Concat(cl.Brokers, cl.Controllers)),
	)
}

// stopNodes ends nodes side by side; what does not end within limit is killed.
func stopNodes(ctx context.Context, run *rundir.Run, f *remote.Fleet, nodes []rundir.Node, limit time.Duration) error {
	on := onHosts(nodes)
	return f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var configs []string
		for _, n := range on[name] {
			configs = append(configs, layoutOf(run).config(nodeName(n)))
		}
		return endProcesses(ctx, run, c, name, limit, configs)
	})
}

// nodeName is the name of a node's files, from its value alone: a log
// directory is called like its node.
func nodeName(n rundir.Node) string { return path.Base(n.LogDir) }

func onHosts(nodes []rundir.Node) map[string][]rundir.Node {
	on := map[string][]rundir.Node{}
	for _, n := range nodes {
		on[n.Host] = append(on[n.Host], n)
	}
	return on
}

const logsLimit = 2 * time.Minute

// bringLogs brings nodes' logs home to logs/<host>/.
func bringLogs(ctx context.Context, run *rundir.Run, f *remote.Fleet, nodes []rundir.Node) error {
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	on := onHosts(nodes)
	return f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var errs []error
		for _, n := range on[name] {
			if err := c.Exec(ctx, remote.Cmd{Argv: []string{"test", "-e", n.LogFile}}); err != nil {
				var no *remote.ExitError
				if errors.As(err, &no) {
					continue // it never came to write one
				}
				return err
			}
			errs = append(errs, c.Get(ctx, n.LogFile, run.Path("logs", name, path.Base(n.LogFile))))
		}
		return errors.Join(errs...)
	})
}

// wipeCluster is Wipe.
func wipeCluster(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	l := layoutOf(run)
	on := onHosts(slices.Concat(cl.Brokers, cl.Controllers))
	return f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var dirs, configs []string
		for _, n := range on[name] {
			if !l.owns(n.LogDir) {
				return fmt.Errorf("%s is outside of krig's own directories: not wiped", n.LogDir)
			}
			dirs, configs = append(dirs, n.LogDir), append(configs, l.config(nodeName(n)))
		}
		pids, err := alive(ctx, c, configs)
		if err != nil {
			return err
		}
		if len(pids) > 0 {
			return fmt.Errorf("Kafka still runs (%s): it must be stopped before its data is wiped", strings.Join(sortedKeys(pids), ", "))
		}
		if _, err := c.Root(ctx, append([]string{"rm", "-rf", "--one-file-system", "--"}, dirs...)...); err != nil {
			return fmt.Errorf("wiping: %w", err)
		}
		return nil
	})
}

// owns tells whether a path lies strictly within the directories that krig
// made on hosts for this run.
func (l layout) owns(dir string) bool {
	if l.short == "" || path.Clean(dir) != dir {
		return false
	}
	return strings.HasPrefix(dir, l.dir()+"/") || strings.HasPrefix(dir, l.state()+"/")
}
