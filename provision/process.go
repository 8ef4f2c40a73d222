package provision

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed start.sh
var startScript string

//go:embed stop.sh
var stopScript string

//go:embed alive.sh
var aliveScript string

//go:embed watch.sh
var watchScript string

// launch starts nodes side by side and adds their process ids to pids, by name.
// format says how those are formatted that must be, by name.
func (s *site) launch(ctx context.Context, nodes []*node, format map[string]string, pids map[string]int) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		g.Go(func() error {
			pid, err := s.launchOne(ctx, n, cmp.Or(format[n.name()], "none"))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			pids[n.name()] = pid
			return nil
		})
	}
	return g.Wait()
}

func (s *site) launchOne(ctx context.Context, n *node, format string) (int, error) {
	c, err := s.f.Conn(ctx, n.host.Name)
	if err != nil {
		return 0, err
	}
	config := s.l.config(n.name())
	jars := s.l.dist(s.dist.id) + "/*"
	args := append([]string{n.logFile, config, n.dir, format, n.prepared.Java, jars},
		jvmFlags(n, s.cell.Kafka.JVM, s.l.logging(), s.jars)...)
	var out string
	entry := rundir.Entry{Kind: kindKafka, Scope: n.host.Name, Ref: config}
	err = s.run.Ledger.Do(entry, func() (err error) {
		out, err = runScript(ctx, c, startScript, args...)
		return err
	})
	if err != nil {
		if why := s.lastWords(ctx, n.host.Name, n.logFile); why != "" {
			return 0, fmt.Errorf("starting %s on %s: %s", n.name(), n.host.Name, why)
		}
		return 0, fmt.Errorf("starting %s: %w", n.name(), err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("starting %s on %s: no process id in %q", n.name(), n.host.Name, out)
	}
	return pid, nil
}

// watch returns an error as soon as one of the nodes' processes has ended,
// nil when ctx ends first.
func (s *site) watch(ctx context.Context, nodes []*node, pids map[string]int) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		g.Go(func() error {
			c, err := s.f.Conn(ctx, n.host.Name)
			if err == nil {
				_, err = runScript(ctx, c, watchScript, strconv.Itoa(pids[n.name()]))
			}
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("watching %s: %w", n.name(), err)
			}
			return fmt.Errorf("%s on %s died: %s", n.name(), n.host.Name, s.lastWords(ctx, n.host.Name, n.logFile))
		})
	}
	return g.Wait()
}

// lastLines is how much of a dead node's log an error shows.
const lastLines = 25

// lastWords is why a node died, as far as its log says, and the log's end.
func (s *site) lastWords(ctx context.Context, host, log string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	c, err := s.f.Conn(ctx, host)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	text, err := c.Root(ctx, "tail", "-n", "200", log)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-lastLines):]
	end := fmt.Sprintf("the end of %s:\n%s", path.Base(log), strings.Join(lines, "\n"))
	if why := cause(text); why != "" {
		return why + "; " + end
	}
	return end
}

// politely is how long a broker may take to leave a cluster that stands.
const politely = 15 * time.Second

// endProcesses ends the nodes with the given configurations on one host.
func endProcesses(ctx context.Context, run *rundir.Run, c *remote.Conn, host string, limit time.Duration, configs []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit+30*time.Second)
	defer cancel()
	args := append([]string{strconv.Itoa(int(limit / time.Second))}, asConfigs(configs)...)
	if _, err := runScript(ctx, c, stopScript, args...); err != nil {
		return fmt.Errorf("stopping Kafka: %w", err)
	}
	return undone(run, host, kindKafka, configs...)
}

// asConfigs marks paths, so that a script that looks for processes with them
// as an argument does not find itself.
func asConfigs(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = "config=" + p
	}
	return out
}

// alive tells which of the given configurations a process on the host has, and
// its id.
func alive(ctx context.Context, c *remote.Conn, configs []string) (map[string]int, error) {
	text, err := runScript(ctx, c, aliveScript, asConfigs(configs)...)
	if err != nil {
		return nil, fmt.Errorf("looking for Kafka's processes: %w", err)
	}
	out := map[string]int{}
	for line := range strings.Lines(text) {
		pid, config, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); ok && err == nil {
			out[config] = n
		}
	}
	return out, nil
}
