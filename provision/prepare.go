package provision

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/agent"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed home.sh
var homeScript string

// prepareLimit bounds the preparation of one host.
const prepareLimit = 20 * time.Minute

// Prepare checks all facts of the hosts first, then makes each one ready, side by side: packages, data
// disk, agent, Kafka. A host prepared earlier (in have) is left alone where it has what the cell needs; where
// its Kafka is another, or it lacks a Java or a collector's program for it, that alone is brought. When
// facts stand against it the error is a *FactsError with all of them, and no host was changed.
func Prepare(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, c *experiment.Cell, have *rundir.Prepared) (*rundir.Prepared, error) {
	d, err := resolve(ctx, run, c.Kafka)
	if err != nil {
		return nil, err
	}
	done := map[string]rundir.PreparedHost{}
	if have != nil {
		for _, p := range have.Hosts {
			done[p.Name] = p
		}
	}
	todo := slices.DeleteFunc(slices.Clone(hosts), func(h rundir.Host) bool {
		p, ok := done[h.Name]
		return ok && serves(p, c, d)
	})
	w := &work{run: run, fleet: f, cell: c, dist: d, had: done}
	if len(todo) > 0 {
		if err := w.all(ctx, hosts, todo); err != nil {
			return nil, err
		}
	}
	out := &rundir.Prepared{}
	for _, h := range hosts {
		p, ok := w.made[h.Name]
		if !ok {
			p = done[h.Name]
		}
		out.Hosts = append(out.Hosts, p)
	}
	return out, nil
}

// serves tells whether a prepared host has all that a cell needs.
func serves(p rundir.PreparedHost, c *experiment.Cell, d *distribution) bool {
	return p.Distribution == d.id && p.Facts.JavaMajor >= javaFor(d.version) && (p.Facts.Sysstat != "" || !collects(c))
}

// work is the preparation of hosts for a cell.
type work struct {
	run    *rundir.Run
	fleet  *remote.Fleet
	cell   *experiment.Cell
	dist   *distribution
	agents map[string]string // krig-agent on this machine, by architecture
	had    map[string]rundir.PreparedHost

	mu   sync.Mutex
	made map[string]rundir.PreparedHost
}

// all looks at everything first, and changes something only where nothing stands against it.
func (w *work) all(ctx context.Context, hosts, todo []rundir.Host) error {
	var err error
	if w.agents, err = findAgents(todo); err != nil {
		return err
	}
	if err := w.dist.checkKnown(ctx, w.cell.Kafka.Broker, nil, "", ""); err != nil && !errors.Is(err, errNoJava) {
		return err
	}
	surveys, err := w.look(ctx, hosts, todo)
	if err != nil {
		return err
	}
	w.made = map[string]rundir.PreparedHost{}
	return w.fleet.Each(ctx, namesOf(todo), func(ctx context.Context, name string, conn *remote.Conn) error {
		h := todo[slices.IndexFunc(todo, func(h rundir.Host) bool { return h.Name == name })]
		p, err := w.host(ctx, conn, h, surveys[name])
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.made[name] = *p
		return nil
	})
}

// look asks hosts for their facts, and workers for their ways to brokers, side
// by side. The error names all that stands against the cell.
func (w *work) look(ctx context.Context, hosts, todo []rundir.Host) (map[string]*survey, error) {
	size, err := sizeOf(w.dist.libs)
	if err != nil {
		return nil, err
	}
	w.run.Report(rundir.Event{Stage: "prepare", Message: fmt.Sprintf("asking %d hosts for their facts", len(todo))})
	isNew := map[string]bool{}
	for _, h := range todo {
		_, had := w.had[h.Name]
		isNew[h.Name] = !had
	}
	var closed []HostProblem
	var wait sync.WaitGroup
	wait.Go(func() { closed = closedWays(ctx, w.fleet, hosts, isNew) })
	l := layoutOf(w.run)
	surveys, problems := surveyAll(ctx, w.fleet, l, todo)
	wait.Wait()
	for _, h := range todo {
		if s := surveys[h.Name]; s != nil {
			problems = append(problems, judge(l, h, s, w.cell, size)...)
		}
	}
	return surveys, factsError(append(problems, closed...))
}

// host prepares one host: what does not need something else goes on side by side.
func (w *work) host(ctx context.Context, c *remote.Conn, h rundir.Host, s *survey) (*rundir.PreparedHost, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	l := layoutOf(w.run)
	out, had := w.had[h.Name]
	if !had {
		if err := makeHome(ctx, w.run, c, h); err != nil {
			return nil, err
		}
		out = rundir.PreparedHost{Name: h.Name, Facts: s.facts, Dir: l.dir(), Agent: l.agent()}
	}
	var installed []string
	g, gctx := errgroup.WithContext(ctx)
	if !had {
		g.Go(func() error { return c.Put(gctx, w.agents[h.Arch], l.agent()) })
		g.Go(func() (err error) {
			out.DataDir, err = makeDisk(gctx, w.run, c, h, s)
			return err
		})
	}
	g.Go(func() error { return c.Put(gctx, w.dist.libs, l.dist(w.dist.id)) })
	g.Go(func() (err error) {
		installed, err = install(gctx, w.run, c, h.Name, missing(s, w.cell))
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out.Kafka, out.Distribution = l.dist(w.dist.id), w.dist.id
	out.Install = append(slices.Clone(out.Install), installed...)
	if err := w.java(ctx, c, s, len(installed) > 0, &out); err != nil {
		return nil, err
	}
	w.run.Report(rundir.Event{Stage: "prepare", Host: h.Name, Message: "ready for Kafka"})
	return &out, nil
}

// makeHome makes krig's own directory, which belongs to the login.
func makeHome(ctx context.Context, run *rundir.Run, c *remote.Conn, h rundir.Host) error {
	dir := layoutOf(run).dir()
	err := run.Ledger.Do(rundir.Entry{Kind: kindDirectory, Scope: h.Name, Ref: dir}, func() error {
		_, err := runScript(ctx, c, homeScript, dir, h.SSH.User)
		return err
	})
	if err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}

// java fills in the host's Java, looked for again where something was installed.
func (w *work) java(ctx context.Context, c *remote.Conn, s *survey, again bool, out *rundir.PreparedHost) error {
	if again {
		var err error
		if s, err = askFacts(ctx, c, out.Dir); err != nil {
			return err
		}
	}
	if left := missing(s, w.cell); len(left) > 0 {
		return fmt.Errorf("%s although %s is installed: %s", left[0].what, left[0].pkg, left[0].remedy)
	}
	j, _ := s.bestJava(javaFor(w.dist.version)) // there, or it would be missing
	out.Java = j.path
	out.Facts.Java, out.Facts.JavaMajor = j.full, j.major
	out.Facts.JVMStart = j.start.Seconds()
	out.Facts.Sysstat = s.facts.Sysstat
	return nil
}

// findAgents finds krig-agent for every architecture among the hosts.
func findAgents(hosts []rundir.Host) (map[string]string, error) {
	out := map[string]string{}
	for _, h := range hosts {
		file, err := agent.Program(h.Arch)
		if err != nil {
			return nil, err
		}
		out[h.Arch] = file
	}
	return out, nil
}

func sizeOf(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

func namesOf(hosts []rundir.Host) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.Name
	}
	return out
}
