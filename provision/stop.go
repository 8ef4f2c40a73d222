package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"krig/internal/remote"
	"krig/internal/rundir"
)

// abruptly is how long Kafka may take to end where its data is no longer needed:
// enough for its last words, too little to hand on leadership.
const abruptly = time.Second

// Stop ends the cluster's processes at once, brokers and controllers side by side, and brings their logs
// home to logs/<host>/. The data is as a crash leaves it: Stop is for clusters that are wiped, or destroyed
// with their hosts, next. It does what it can on every host, and may be called again.
func Stop(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	run.Report(rundir.Event{Stage: "cluster", Message: "stopping Kafka"})
	return endNodes(ctx, run, f, slices.Concat(cl.Brokers, cl.Controllers), abruptly)
}

// endNodes ends nodes side by side and brings their logs home; what does not end
// within limit is killed.
func endNodes(ctx context.Context, run *rundir.Run, f *remote.Fleet, nodes []rundir.Node, limit time.Duration) error {
	on := onHosts(nodes)
	return f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var configs []string
		for _, n := range on[name] {
			configs = append(configs, layoutOf(run).config(n.Name))
		}
		return errors.Join(endProcesses(ctx, run, c, name, limit, configs), bringLogs(ctx, run, c, name, on[name]))
	})
}

func onHosts(nodes []rundir.Node) map[string][]rundir.Node {
	on := map[string][]rundir.Node{}
	for _, n := range nodes {
		on[n.Host] = append(on[n.Host], n)
	}
	return on
}

const logsLimit = 2 * time.Minute

// bringLogs brings the logs of a host's nodes home to logs/<host>/.
func bringLogs(ctx context.Context, run *rundir.Run, c *remote.Conn, host string, nodes []rundir.Node) error {
	ctx, cancel := context.WithTimeout(ctx, logsLimit)
	defer cancel()
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		wait.Go(func() { errs[i] = bringLog(ctx, run, c, host, n.LogFile) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func bringLog(ctx context.Context, run *rundir.Run, c *remote.Conn, host, file string) error {
	err := c.Exec(ctx, remote.Cmd{Argv: []string{"test", "-e", file}})
	var no *remote.ExitError
	if errors.As(err, &no) {
		return nil // the node never came to write one
	}
	if err != nil {
		return err
	}
	return c.Get(ctx, file, run.Path("logs", host, path.Base(file)))
}

// Wipe removes what a stopped cluster left on the data disks, only inside
// directories that krig made.
func Wipe(ctx context.Context, run *rundir.Run, f *remote.Fleet, cl *rundir.Cluster) error {
	l := layoutOf(run)
	on := onHosts(slices.Concat(cl.Brokers, cl.Controllers))
	return f.Each(ctx, sortedKeys(on), func(ctx context.Context, name string, c *remote.Conn) error {
		var dirs, configs []string
		for _, n := range on[name] {
			for _, dir := range n.LogDirs {
				if !l.owns(dir) {
					return fmt.Errorf("%s is outside of krig's own directories: not wiped", dir)
				}
			}
			dirs, configs = append(dirs, n.LogDirs...), append(configs, l.config(n.Name))
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
